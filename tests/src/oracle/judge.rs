//! Compares what two servers answer, and makes a failing sequence as short as it can be.

use std::fmt::Write;
use std::thread;

use super::play::{OracleStage, Transcript};
use super::sequence::{OracleStep, Sequence};

/// Two servers answered a sequence differently.
#[derive(Debug)]
pub struct Mismatch {
    pub sequence: Sequence,
    pub left: Transcript,
    pub right: Transcript,
}

/// Performs `sequence` on both at the same time.
pub fn perform(
    sequence: &Sequence,
    root: &str,
    left: &mut OracleStage,
    right: &mut OracleStage,
) -> (Transcript, Transcript) {
    thread::scope(|scope| {
        let left = scope.spawn(|| left.play(sequence, root));
        let right = right.play(sequence, root);
        (left.join().expect("the performance on the other server ends"), right)
    })
}

/// The mismatch, if the transcripts differ.
pub fn compare(sequence: &Sequence, (left, right): (Transcript, Transcript)) -> Option<Mismatch> {
    (left != right).then(|| Mismatch { sequence: sequence.clone(), left, right })
}

/// Leaves out steps, and requests of batches, for as long as `perform` still finds a mismatch, in at most as many
/// attempts.
pub fn shrink(
    mismatch: Mismatch,
    mut attempts: usize,
    mut perform: impl FnMut(&Sequence) -> Option<Mismatch>,
) -> Mismatch {
    let mut best = cut_after_the_first_difference(mismatch);
    let mut without = |best: &mut Mismatch, leave_out: &dyn Fn(&mut Sequence)| {
        let mut sequence = best.sequence.clone();
        leave_out(&mut sequence);
        attempts = attempts.saturating_sub(1);
        let still = if attempts > 0 { perform(&sequence) } else { None };
        still.map(|mismatch| *best = cut_after_the_first_difference(mismatch)).is_some()
    };
    let mut size = best.sequence.steps.len();
    while size > 0 {
        let mut at = 0;
        while at < best.sequence.steps.len() {
            let end = (at + size).min(best.sequence.steps.len());
            if !without(&mut best, &|sequence| drop(sequence.steps.drain(at..end))) {
                at += size;
            }
        }
        size /= 2;
    }
    for step in 0..best.sequence.steps.len() {
        let mut at = 0;
        while at < batch_len(&best.sequence, step) {
            if !without(&mut best, &|sequence| leave_out_call(sequence, step, at)) {
                at += 1;
            }
        }
    }
    best
}

/// The number of requests in a step, if there are several.
fn batch_len(sequence: &Sequence, step: usize) -> usize {
    match sequence.steps.get(step) {
        Some(OracleStep::Calls { calls, .. }) if calls.len() > 1 => calls.len(),
        _ => 0,
    }
}

fn leave_out_call(sequence: &mut Sequence, step: usize, call: usize) {
    if let OracleStep::Calls { calls, .. } = &mut sequence.steps[step] {
        calls.remove(call);
    }
}

fn first_difference(mismatch: &Mismatch) -> Option<usize> {
    (0..mismatch.left.len()).find(|&step| mismatch.left[step] != mismatch.right[step])
}

fn cut_after_the_first_difference(mut mismatch: Mismatch) -> Mismatch {
    if let Some(step) = first_difference(&mismatch) {
        mismatch.sequence.steps.truncate(step + 1);
        mismatch.left.truncate(step + 1);
        mismatch.right.truncate(step + 1);
    }
    mismatch
}

impl Mismatch {
    /// The sequence as a story, with both answers where they part.
    pub fn story(&self, left_name: &str, right_name: &str) -> String {
        let mut story = String::new();
        let mut tell = |line: &str| writeln!(story, "{line}").expect("a string takes everything");
        let parting = first_difference(self);
        for (number, step) in self.sequence.steps.iter().enumerate() {
            tell(&format!("{number:4}  {step}"));
            if Some(number) == parting {
                tell(&format!("  {left_name} answers"));
                self.left[number].iter().for_each(|line| tell(&format!("      {line}")));
                tell(&format!("  {right_name} answers"));
                self.right[number].iter().for_each(|line| tell(&format!("      {line}")));
                break;
            }
            self.left[number].iter().for_each(|line| tell(&format!("          {line}")));
        }
        if parting == Some(self.sequence.steps.len()) {
            tell("the trees differ in the end");
            for (left, right) in
                self.left.last().into_iter().flatten().zip(self.right.last().into_iter().flatten())
            {
                if left != right {
                    tell(&format!("  {left_name}: {left}\n  {right_name}: {right}"));
                }
            }
        }
        story
    }
}

#[cfg(test)]
mod tests {
    use super::super::sequence::Connect;
    use super::*;

    fn sequence(slots: &[usize]) -> Sequence {
        let connect = |&slot| OracleStep::Connect { slot, connect: Connect::new_session() };
        Sequence { whole_tree: false, steps: slots.iter().map(connect).collect() }
    }

    /// A server pair that disagrees about slot 7, once slot 3 has been seen.
    fn perform(sequence: &Sequence) -> Option<Mismatch> {
        let mut seen = false;
        let mut transcripts = (Vec::new(), Vec::new());
        for step in &sequence.steps {
            let OracleStep::Connect { slot, .. } = step else { unreachable!("there are no others here") };
            seen |= *slot == 3;
            let wrong = if seen && *slot == 7 { "wrong" } else { "right" };
            transcripts.0.push(vec!["right".to_string()]);
            transcripts.1.push(vec![wrong.to_string()]);
        }
        compare(sequence, transcripts)
    }

    #[test]
    fn equal_answers_are_no_mismatch() {
        assert!(perform(&sequence(&[1, 7, 3])).is_none());
    }

    #[test]
    fn one_wrong_answer_is_found_and_its_story_is_short() {
        let mismatch = perform(&sequence(&[1, 3, 4, 4, 2, 9, 7, 8, 7])).expect("slot 7 after slot 3");
        let shrunk = shrink(mismatch, 100, perform);
        let slots: Vec<usize> = shrunk.sequence.steps.iter().map(slot).collect();
        assert_eq!(slots, [3, 7]);
        assert!(shrunk.story("left", "right").contains("wrong"));
    }

    fn slot(step: &OracleStep) -> usize {
        match step {
            OracleStep::Connect { slot, .. } => *slot,
            other => panic!("no such step was made: {other}"),
        }
    }
}
