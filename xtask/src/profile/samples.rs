//! Samples as `perf script` prints them: a thread, and frames from the innermost one outwards.
//!
//! Inlined code counts as a frame of its own. perf asks `addr2line` for that, which calls the innermost frame of an
//! address by the name of the function in the symbol table, and what that function is made of comes behind it. Here the
//! function stands where it belongs, and the innermost frame, whose own name is lost, goes by its file.

use std::collections::BTreeMap;

/// Fields of a sample that perf has to print.
pub(super) const FIELDS: &str = "comm,ip,sym,srcline";

/// One look at a thread that used the CPU.
#[derive(Debug, PartialEq)]
pub(super) struct Sample {
    pub(super) thread: String,
    /// From the innermost outwards.
    pub(super) frames: Vec<Frame>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) function: String,
    /// The source file, as the compiler knew it; empty if unknown.
    pub(super) file: String,
}

/// A frame as it is printed.
struct Printed<'a> {
    address: &'a str,
    frame: Frame,
    is_inlined: bool,
}

pub(super) fn read(script: &str) -> Vec<Sample> {
    let blocks = script.split("\n\n").map(|block| block.trim_matches('\n'));
    blocks.filter(|block| !block.is_empty()).map(read_one).collect()
}

fn read_one(block: &str) -> Sample {
    let mut lines = block.lines();
    let thread = lines.next().unwrap_or_default().trim().to_owned();
    let mut printed: Vec<Printed<'_>> = Vec::new();
    for line in lines {
        // A tab, the address, the function; then two blanks, the place and what kind of frame it is.
        if let Some((address, function)) =
            line.strip_prefix('\t').and_then(|line| line.trim_start().split_once(' '))
        {
            let frame = Frame { function: function.trim().to_owned(), file: String::new() };
            printed.push(Printed { address, frame, is_inlined: false });
        } else if let Some(last) = printed.last_mut() {
            let place = line.trim();
            last.is_inlined = place.ends_with("(inlined)");
            last.frame.file = file(place.trim_end_matches("(inlined)").trim_end()).to_owned();
        }
    }
    Sample { thread, frames: in_order(printed) }
}

/// `src/main.rs:12` without the line. The kernel has `[kernel.kallsyms][ffffffff81000130]` instead.
fn file(place: &str) -> &str {
    match place.rsplit_once(':') {
        Some((file, _)) if !place.starts_with('[') => file,
        _ => "",
    }
}

fn in_order(printed: Vec<Printed<'_>>) -> Vec<Frame> {
    let mut frames = Vec::new();
    for group in printed.chunk_by(|a, b| a.address == b.address) {
        let first = frames.len();
        frames.extend(group.iter().map(|printed| printed.frame.clone()));
        if group.len() > 1 && !group[0].is_inlined {
            let file = &group[0].frame.file;
            let lost = file.rsplit('/').next().unwrap_or(file).to_owned();
            let function = std::mem::replace(&mut frames[first].function, lost);
            frames.last_mut().expect("the group has frames").function = function;
        }
    }
    frames
}

/// Counts equal stacks, outermost frame first: the lines that flame graphs are made of.
pub(super) fn fold(samples: &[Sample]) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for sample in samples {
        let functions = sample.frames.iter().rev().map(|frame| frame.function.as_str());
        // Where the copy of the stack ended, an address without a name remains.
        let known = functions.filter(|function| *function != "[unknown]");
        let names = std::iter::once(sample.thread.as_str()).chain(known);
        // A semicolon is what separates frames.
        let stack: Vec<String> = names.map(|name| name.replace(';', ":")).collect();
        *counts.entry(stack.join(";")).or_default() += 1;
    }
    counts.into_iter().map(|(stack, count)| format!("{stack} {count}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "engine \n\
        \t          9c2c42 tree::Store::digest\n\
        \x20 /rustc/1/library/core/num.rs:560\n\
        \t          9c2c42 xxh3\n\
        \x20 /registry/xxhash/src/xxh3.rs:657 (inlined)\n\
        \t          9c2c42 digest\n\
        \x20 /build/crates/tree/src/digest.rs:44 (inlined)\n\
        \t          9c136c tree::Store::create\n\
        \x20 /build/crates/tree/src/change.rs:48\n\
        \tffffffffffffffff [unknown]\n\
        \n\
        worker-0 \n\
        \tffffffff8200ec5b tcp_sendmsg\n\
        \x20 [kernel.kallsyms][ffffffff8200ec5b]\n\
        \t          10aba4 __libc_send\n\
        \x20 ./socket/send.c:28 (inlined)\n\
        \t          10aba4 __libc_send\n\
        \x20 ./socket/send.c:23 (inlined)\n\n";

    fn frame(function: &str, file: &str) -> Frame {
        Frame { function: function.to_owned(), file: file.to_owned() }
    }

    #[test]
    fn inlined_frames_stand_inside_of_their_function() {
        let samples = read(SCRIPT);
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[0].thread, "engine");
        let expected = [
            frame("num.rs", "/rustc/1/library/core/num.rs"),
            frame("xxh3", "/registry/xxhash/src/xxh3.rs"),
            frame("tree::Store::digest", "/build/crates/tree/src/digest.rs"),
            frame("tree::Store::create", "/build/crates/tree/src/change.rs"),
            frame("[unknown]", ""),
        ];
        assert_eq!(samples[0].frames, expected);
    }

    #[test]
    fn frames_in_the_right_order_stay() {
        let samples = read(SCRIPT);
        assert_eq!(samples[1].thread, "worker-0");
        let send = frame("__libc_send", "./socket/send.c");
        assert_eq!(samples[1].frames, [frame("tcp_sendmsg", ""), send.clone(), send]);
    }

    #[test]
    fn equal_stacks_are_counted() {
        let sample = |functions: &[&str]| Sample {
            thread: "engine".to_owned(),
            frames: functions.iter().map(|function| frame(function, "")).collect(),
        };
        let samples =
            [sample(&["b", "a"]), sample(&["a"]), sample(&["b", "a", "[unknown]"]), sample(&["[u8; 4]"])];
        assert_eq!(fold(&samples), ["engine;[u8: 4] 1", "engine;a 1", "engine;a;b 2"]);
    }
}
