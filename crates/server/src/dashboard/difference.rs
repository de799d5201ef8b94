//! What differs between two texts, line by line: the longest common part stays, the rest goes or comes.

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Same,
    Gone,
    New,
}

/// Longer texts are shown whole, the old and then the new, as the comparison takes the product of both.
const LINES: usize = 800;

/// The lines of both, in order.
pub(super) fn lines<'a>(old: &'a str, new: &'a str) -> Vec<(Change, &'a str)> {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    if old.len().max(new.len()) > LINES {
        let gone = old.into_iter().map(|line| (Change::Gone, line));
        return gone
            .chain(new.into_iter().map(|line| (Change::New, line)))
            .collect();
    }
    // How much is common from each pair of places on.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for at in (0..old.len()).rev() {
        for to in (0..new.len()).rev() {
            common[at][to] = if old[at] == new[to] {
                common[at + 1][to + 1] + 1
            } else {
                common[at + 1][to].max(common[at][to + 1])
            };
        }
    }
    let (mut at, mut to, mut changes) = (0, 0, Vec::new());
    while at < old.len() || to < new.len() {
        if at < old.len() && to < new.len() && old[at] == new[to] {
            changes.push((Change::Same, old[at]));
            (at, to) = (at + 1, to + 1);
        } else if to == new.len() || (at < old.len() && common[at + 1][to] >= common[at][to + 1]) {
            changes.push((Change::Gone, old[at]));
            at += 1;
        } else {
            changes.push((Change::New, new[to]));
            to += 1;
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_part_stays_and_the_rest_goes_or_comes() {
        let changes = lines("a\nb\nc", "a\nx\nc\nd");
        let told: Vec<String> = changes
            .iter()
            .map(|(change, line)| format!("{change:?} {line}"))
            .collect();
        assert_eq!(told, ["Same a", "Gone b", "New x", "Same c", "New d"]);
        assert!(
            lines("same", "same")
                .iter()
                .all(|(change, _)| *change == Change::Same)
        );
    }
}
