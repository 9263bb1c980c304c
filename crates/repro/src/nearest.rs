//! Names that look like a given one.

/// The `count` candidates with the least edit distance to `name`, nearest first, ties in given order.
pub fn nearest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
    count: usize,
) -> Vec<String> {
    let mut ranked: Vec<(usize, &str)> =
        candidates.map(|candidate| (distance(name, candidate), candidate)).collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked.into_iter().take(count).map(|(_, candidate)| candidate.to_owned()).collect()
}

/// Insertions, deletions and substitutions that turn one into the other (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(&b) {
            let substituted = diagonal + usize::from(from != *to);
            diagonal = *cell;
            left = substituted.min(left + 1).min(*cell + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("fig3", "fig4", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }
}
