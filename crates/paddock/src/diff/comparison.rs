//! Two walks side by side: each step takes the znode that comes first, or both if they have the same path.

use std::cmp::Ordering;
use std::io::Write;

use super::failure::DiffFailure;
use super::seen::{Seen, order_of};
use super::side::Side;
use crate::moving::ProgressLine;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) equal: u64,
    pub(super) only_a: u64,
    pub(super) only_b: u64,
    pub(super) changed: u64,
}

impl Totals {
    pub(super) fn differences(&self) -> u64 {
        self.only_a + self.only_b + self.changed
    }
}

pub(super) struct Comparison<'a> {
    a: Side<'a>,
    b: Side<'a>,
    /// Differences that are printed.
    limit: u64,
    totals: Totals,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(a: Side<'a>, b: Side<'a>, limit: u64) -> Comparison<'a> {
        Comparison { a, b, limit, totals: Totals::default() }
    }

    pub(super) async fn run(
        &mut self,
        line: &mut ProgressLine,
        out: &mut dyn Write,
    ) -> Result<Totals, DiffFailure> {
        let (mut a, mut b) = (self.a.next().await?, self.b.next().await?);
        while a.is_some() || b.is_some() {
            let order = order_of(a.as_ref(), b.as_ref());
            if let Some(difference) = self.note(order, a.as_ref(), b.as_ref())
                && self.totals.differences() <= self.limit
            {
                line.clear();
                writeln!(out, "{difference}")?;
            }
            if order.is_le() {
                a = self.a.next().await?;
            }
            if order.is_ge() {
                b = self.b.next().await?;
            }
            let Totals { equal, .. } = self.totals;
            let differences = self.totals.differences();
            line.show_text(|| format!("{equal} znodes equal, {differences} not"));
        }
        if self.totals.differences() > self.limit {
            writeln!(out, "… and {} more", self.totals.differences() - self.limit)?;
        }
        Ok(self.totals)
    }

    pub(super) async fn close(&self) {
        self.a.close().await;
        self.b.close().await;
    }

    /// Counts a step; returns its difference.
    fn note(&mut self, order: Ordering, a: Option<&Seen>, b: Option<&Seen>) -> Option<String> {
        match (order, a, b) {
            (Ordering::Equal, Some(a), Some(b)) => {
                let differences = a.differences(b);
                if differences.is_empty() {
                    self.totals.equal += 1;
                    return None;
                }
                self.totals.changed += 1;
                Some(format!("different  {}: {}", a.path, differences.join(", ")))
            }
            (Ordering::Less, Some(a), _) => {
                self.totals.only_a += 1;
                Some(format!("only in A  {}", a.path))
            }
            (_, _, Some(b)) => {
                self.totals.only_b += 1;
                Some(format!("only in B  {}", b.path))
            }
            (_, _, None) => unreachable!("the order of two znodes is that of their paths"),
        }
    }
}
