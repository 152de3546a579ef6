//! From what a user asked for to the kernels of their data.

use super::{KernelSpec, default_bank, default_bank_in_words, expand};
use crate::data::{View, ViewData, Views};
use crate::error::{Error, Result};

/// The kernels of `views` that were asked for, each on its view, with name and group; and sentences about what was
/// chosen automatically.
///
/// Without `specs` it is the default bank. Every given matrix that no spec looks at is a kernel of its own. `groups`,
/// if not empty, names the group of each given matrix that is a kernel, in order.
pub fn choose(
    specs: &[KernelSpec],
    groups: &[String],
    views: &Views,
) -> Result<(Vec<KernelSpec>, Vec<String>)> {
    let only_matrices = views
        .iter()
        .all(|view| matches!(view.data, ViewData::Pairwise(_)));
    let mut notes = Vec::new();
    let mut wanted = specs.to_vec();
    if specs.is_empty() {
        wanted = default_bank(views);
        if !only_matrices {
            notes.push(default_bank_in_words(views));
        }
    }
    let looked_at = |view: &View| {
        wanted.iter().any(|spec| {
            spec.kind.applies_to(&view.data)
                && spec.view.as_ref().is_none_or(|name| *name == view.name)
        })
    };
    // Products and sums may name them, so they stand before.
    let mut all: Vec<KernelSpec> = views
        .iter()
        .filter(|view| matches!(view.data, ViewData::Pairwise(_)) && !looked_at(view))
        .map(|view| KernelSpec::precomputed().on(&view.name))
        .collect();
    all.append(&mut wanted);
    let mut chosen = expand(&all, views)?;
    if !groups.is_empty() {
        let given: Vec<&mut KernelSpec> = chosen
            .iter_mut()
            .filter(|spec| spec.kind.is_precomputed())
            .collect();
        if given.len() != groups.len() {
            return Err(Error::input(
                "groups",
                format!(
                    "{} groups for {} precomputed kernels",
                    groups.len(),
                    given.len()
                ),
                "name one group for each precomputed kernel",
            ));
        }
        for (spec, group) in given.into_iter().zip(groups) {
            spec.group = Some(group.clone());
        }
    }
    Ok((chosen, notes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dense, Pairwise};

    fn views() -> Views {
        let view = |name: &str, data| View {
            name: name.into(),
            columns: Vec::new(),
            data,
        };
        let matrix = || Pairwise::new(2, 2, vec![1.0, 0.0, 0.0, 1.0]).map(ViewData::Pairwise);
        Views::new(vec![
            view(
                "x",
                ViewData::Dense(Dense::new(2, 1, vec![0.0, 1.0]).expect("dense")),
            ),
            view("a", matrix().expect("matrix")),
            view("b", matrix().expect("matrix")),
        ])
        .expect("views")
    }

    fn names(specs: &str, groups: &[&str]) -> Result<Vec<(String, String)>> {
        let mut all = Vec::new();
        for spec in specs.split_whitespace() {
            all.extend(KernelSpec::parse(spec)?);
        }
        let groups: Vec<String> = groups.iter().map(|g| (*g).to_owned()).collect();
        let (chosen, _) = choose(&all, &groups, &views())?;
        Ok(chosen
            .into_iter()
            .map(|s| (s.name.unwrap_or_default(), s.group.unwrap_or_default()))
            .collect())
    }

    #[test]
    fn matrices_that_nothing_looks_at_are_kernels() {
        let found = names("linear distance:from=a,width=1 product:of=b*b", &[]).expect("good");
        let found: Vec<&str> = found.iter().map(|f| f.0.as_str()).collect();
        assert_eq!(found, ["b", "x/linear", "a/distance(1)", "b*b"]);
    }

    #[test]
    fn the_default_bank_is_said_and_holds_every_matrix_once() {
        let (chosen, notes) = choose(&[], &[], &views()).expect("good");
        assert_eq!(chosen.len(), 8);
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn groups_are_counted() {
        let found = names("linear", &["g", "h"]).expect("good");
        let given: Vec<&(String, String)> = found.iter().filter(|f| f.0 != "x/linear").collect();
        assert_eq!(given.iter().filter(|f| f.1 == "g" || f.1 == "h").count(), 2);
        let error = names("linear", &["g"]).expect_err("one group for two matrices");
        assert!(
            error.to_string().contains("1 groups for 2 precomputed"),
            "{error}"
        );
    }
}
