//! Circles in a graph: sets of files in which each one reaches every other one.

use std::collections::{BTreeMap, BTreeSet};

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The strongly connected components with more than one node, each sorted, by Tarjan's algorithm.
pub(super) fn find(graph: &Graph) -> Vec<Vec<String>> {
    let mut search = Search::new(graph);
    for node in graph.keys() {
        if !search.numbers.contains_key(node.as_str()) {
            search.visit(node);
        }
    }
    search.circles.sort();
    search.circles
}

struct Search<'a> {
    graph: &'a Graph,
    /// Order in which nodes were met.
    numbers: BTreeMap<&'a str, usize>,
    /// The earliest node on the stack that each one reaches.
    lows: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    circles: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph) -> Search<'a> {
        let (numbers, lows) = (BTreeMap::new(), BTreeMap::new());
        Search { graph, numbers, lows, stack: Vec::new(), circles: Vec::new() }
    }

    fn visit(&mut self, node: &'a str) {
        let number = self.numbers.len();
        self.numbers.insert(node, number);
        self.lows.insert(node, number);
        self.stack.push(node);
        for next in self.graph.get(node).into_iter().flatten() {
            if !self.numbers.contains_key(next.as_str()) {
                self.visit(next);
                self.lower(node, self.lows[next.as_str()]);
            } else if self.stack.contains(&next.as_str()) {
                self.lower(node, self.numbers[next.as_str()]);
            }
        }
        if self.lows[node] == number {
            let at = self.stack.iter().position(|other| *other == node).expect("it was pushed above");
            let mut circle: Vec<String> = self.stack.drain(at..).map(str::to_owned).collect();
            circle.sort();
            if circle.len() > 1 {
                self.circles.push(circle);
            }
        }
    }

    fn lower(&mut self, node: &'a str, low: usize) {
        let known = self.lows.get_mut(node).expect("a node has a low from its visit on");
        *known = low.min(*known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_and_chains_are_not() {
        let arrows = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d"), ("f", "a")];
        let mut graph = Graph::new();
        for (from, to) in arrows {
            graph.entry(from.into()).or_default().insert(to.into());
            graph.entry(to.into()).or_default();
        }
        assert_eq!(find(&graph), [vec!["a", "b", "c"], vec!["d", "e"]]);
    }
}
