//! "Did you mean …?"

use super::super::kinds::KindInfo;

/// Words that people know from elsewhere, and ours; those of kinds stand with the kinds.
const KNOWN_ELSEWHERE: [(&str, &str); 5] = [
    ("sigma", "width"),
    ("bandwidth", "width"),
    ("offset", "coef0"),
    ("cosine", "spherical"),
    ("unit", "spherical"),
];

/// The allowed word that was probably meant.
pub(super) fn nearest<'a>(
    word: &str,
    allowed: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let word = word.to_lowercase();
    let elsewhere = KindInfo::known_as(&word).or_else(|| {
        let known = KNOWN_ELSEWHERE.iter().find(|(other, _)| *other == word);
        known.map(|(_, ours)| *ours)
    });
    let length = word.chars().count();
    // Names of views and kernels can be long; spellings further apart than this are other words.
    let most = (length / 3).clamp(1, 4);
    allowed
        .into_iter()
        .filter_map(|candidate| {
            if elsewhere == Some(candidate) {
                return Some((0, candidate));
            }
            let apart = candidate.chars().count().abs_diff(length);
            let distance = (apart <= most).then(|| edits(&word, &candidate.to_lowercase()))?;
            (distance <= most).then_some((distance, candidate))
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// "; did you mean 'x'?" or nothing.
pub(super) fn did_you_mean<'a>(word: &str, allowed: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, allowed).map_or_else(String::new, |best| format!("; did you mean '{best}'?"))
}

/// Letters to insert, remove or change (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_near_spellings_and_words_from_elsewhere() {
        let kinds = ["linear", "poly", "rbf", "laplacian"];
        assert_eq!(nearest("laplacean", kinds), Some("laplacian"));
        assert_eq!(nearest("RBF", kinds), Some("rbf"));
        assert_eq!(nearest("gaussian", kinds), Some("rbf"));
        assert_eq!(nearest("spectrum", kinds), None);
        assert_eq!(edits("kitten", "sitting"), 3);
    }
}
