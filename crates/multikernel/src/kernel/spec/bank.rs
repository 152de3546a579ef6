//! From descriptions to the kernels of given views: which view each one looks at, its name and its group.

use super::super::kinds::Width;
use super::suggest::did_you_mean;
use super::text::{shortened, within};
use super::{KernelSpec, Normalize, listed};
use crate::data::{View, ViewData, Views};
use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};

/// Widths of the default Gaussian kernels, in means.
const DEFAULT_WIDTHS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// Length of the k-mers of the default spectrum kernel.
const DEFAULT_K: u32 = 3;
/// Longest k-mer of the default weighted-degree kernel.
const DEFAULT_DEGREE: u32 = 10;

/// The kernels used when none are asked for; [`default_bank_in_words`] states them.
pub fn default_bank(views: &Views) -> Vec<KernelSpec> {
    let mut bank = Vec::new();
    for View { name, data, .. } in views {
        let mut add =
            |kernel: KernelSpec, normalize| bank.push(kernel.on(name).normalized(normalize));
        match data {
            ViewData::Dense(_) | ViewData::Sparse(_) => {
                add(KernelSpec::linear(), Normalize::Spherical);
                for factor in DEFAULT_WIDTHS {
                    add(KernelSpec::rbf(Width::Mean(factor)), Normalize::None);
                }
            }
            ViewData::Strings(strings) => {
                add(KernelSpec::spectrum(DEFAULT_K), Normalize::Spherical);
                if of_equal_length(strings) {
                    let kernel = KernelSpec::weighted_degree(DEFAULT_DEGREE, 0);
                    add(kernel, Normalize::Spherical);
                }
            }
            ViewData::Pairwise(_) => add(KernelSpec::precomputed(), Normalize::None),
        }
    }
    bank
}

/// The default bank, in a sentence.
pub fn default_bank_in_words(views: &Views) -> String {
    let count =
        |wanted: fn(&ViewData) -> bool| views.iter().filter(|view| wanted(&view.data)).count();
    let numbers = count(|data| matches!(data, ViewData::Dense(_) | ViewData::Sparse(_)));
    let equal =
        count(|data| matches!(data, ViewData::Strings(strings) if of_equal_length(strings)));
    let strings = count(|data| matches!(data, ViewData::Strings(_)));
    let given = count(|data| matches!(data, ViewData::Pairwise(_)));
    let mut parts = Vec::new();
    if numbers > 0 {
        parts.push(
            "for each view of numbers a linear kernel on rows of unit length and Gaussian kernels of width 1/4, 1/2, 1, 2 \
             and 4 times the mean squared distance"
                .to_owned(),
        );
    }
    if strings > 0 {
        let degree = format!(" and a weighted-degree kernel (degree {DEFAULT_DEGREE})");
        parts.push(format!(
            "for each view of strings a spectrum kernel (k = {DEFAULT_K}){}, normalised to k(x,x) = 1",
            match equal {
                0 => String::new(),
                _ if equal == strings => degree,
                _ => format!("{degree} where the strings have equal length"),
            }
        ));
    }
    if given > 0 {
        parts.push("every given matrix as it is".to_owned());
    }
    if parts.is_empty() {
        parts.push("nothing, because there are no views".to_owned());
    }
    format!(
        "No kernels were asked for, so the default bank is used: {}.",
        parts.join("; ")
    )
}

fn of_equal_length(strings: &[Vec<u8>]) -> bool {
    strings
        .first()
        .is_some_and(|first| !first.is_empty() && strings.iter().all(|s| s.len() == first.len()))
}

/// Gives every kernel its view (one kernel for each view it can look at, if it names none), a name of its own and a group.
///
/// Kernels that a product or a sum names must stand before it, so there are no cycles.
pub fn expand(specs: &[KernelSpec], views: &Views) -> Result<Vec<KernelSpec>> {
    let mut all = Vec::new();
    for spec in specs {
        spec.check()
            .and_then(|()| place(spec, views, &mut all))
            .map_err(|error| at(spec, error))?;
    }
    let mut taken = HashSet::new();
    for spec in &all {
        if let Some(name) = &spec.name
            && !taken.insert(name.clone())
        {
            let error = Error::input(
                "",
                format!("there is another kernel called '{name}'"),
                "name one of them differently",
            );
            return Err(at(spec, error));
        }
    }
    let mut used = HashMap::new();
    let mut groups: HashMap<String, String> = HashMap::new();
    for spec in &mut all {
        let name = match &spec.name {
            Some(name) => name.clone(),
            None => unused(&automatic_name(spec), &mut taken, &mut used),
        };
        let mut group = spec.group.clone().or_else(|| spec.view.clone());
        if let Some((_, of)) = spec.kind.made_of() {
            for part in of {
                if *part == name {
                    let error = Error::input("", "it is made of itself", "name other kernels");
                    return Err(at(spec, error));
                }
                if !groups.contains_key(part) {
                    return Err(at(spec, missing(part, &taken, &groups)));
                }
            }
            // Of one group, if all its parts are.
            let first = &groups[&of[0]];
            if group.is_none() && of.iter().all(|part| groups[part] == *first) {
                group = Some(first.clone());
            }
        }
        let group = group.unwrap_or_else(|| name.clone());
        groups.insert(name.clone(), group.clone());
        spec.name = Some(name);
        spec.group = Some(group);
    }
    Ok(all)
}

fn at(spec: &KernelSpec, error: Error) -> Error {
    within(error, &format!("kernel '{}'", shortened(&spec.to_string())))
}

/// The kernel on its view, or on every view it can look at.
fn place(spec: &KernelSpec, views: &Views, all: &mut Vec<KernelSpec>) -> Result<()> {
    if spec.kind.is_composite() {
        all.push(spec.clone());
        return Ok(());
    }
    let word = spec.kind.word();
    if let Some(name) = &spec.view {
        let Some(view) = views.get(name) else {
            let names = || views.iter().map(|view| view.name.as_str());
            return Err(Error::input(
                "",
                format!("there is no view '{name}'"),
                format!(
                    "the views are {}{}",
                    listed(names()),
                    did_you_mean(name, names())
                ),
            ));
        };
        if !spec.kind.applies_to(&view.data) {
            return Err(Error::input(
                "",
                format!(
                    "{word} needs {} but view '{name}' is {}",
                    spec.kind.info().looks_at.in_words(),
                    in_words(&view.data)
                ),
                "name another view or kind of kernel",
            ));
        }
        all.push(spec.clone());
        return Ok(());
    }
    let fitting: Vec<&View> = views
        .iter()
        .filter(|view| spec.kind.applies_to(&view.data))
        .collect();
    if fitting.is_empty() {
        let present: Vec<String> = views
            .iter()
            .map(|view| format!("'{}' ({})", view.name, in_words(&view.data)))
            .collect();
        return Err(Error::input(
            "",
            format!(
                "{word} needs {} but there is no such view",
                spec.kind.info().looks_at.in_words()
            ),
            format!(
                "the views are {}",
                listed(present.iter().map(String::as_str))
            ),
        ));
    }
    let several = fitting.len() > 1;
    for view in fitting {
        let mut spec = spec.clone().on(&view.name);
        if let (Some(name), true) = (&spec.name, several) {
            spec.name = Some(format!("{}/{name}", view.name));
        }
        all.push(spec);
    }
    Ok(())
}

fn in_words(data: &ViewData) -> &'static str {
    match data {
        ViewData::Dense(_) => "dense numbers",
        ViewData::Sparse(_) => "sparse numbers",
        ViewData::Strings(_) => "strings",
        ViewData::Pairwise(_) => "a given matrix",
    }
}

/// Names shown in a message.
const SHOWN: usize = 12;

fn missing(part: &str, taken: &HashSet<String>, earlier: &HashMap<String, String>) -> Error {
    if taken.contains(part) {
        return Error::input(
            "",
            format!("'{part}' comes after it"),
            "put the kernels it is made of first",
        );
    }
    let mut names: Vec<&str> = earlier.keys().map(String::as_str).collect();
    names.sort_unstable();
    let more = if names.len() > SHOWN { " …" } else { "" };
    let remedy = if names.is_empty() {
        "give the kernels it is made of before it, with name=".to_owned()
    } else {
        let shown = names
            .iter()
            .take(SHOWN)
            .copied()
            .collect::<Vec<_>>()
            .join(", ");
        format!(
            "the kernels before it are {shown}{more}{}",
            did_you_mean(part, names)
        )
    };
    Error::input("", format!("there is no kernel '{part}'"), remedy)
}

/// `view/kind(parameters)`, with what is usual left out.
fn automatic_name(spec: &KernelSpec) -> String {
    let own = spec.kind.parameters().enumerate();
    let mut parameters: Vec<String> = own
        .filter_map(|(place, (key, parameter))| key.in_name(parameter, place == 0))
        .collect();
    if spec.normalize != Normalize::None {
        parameters.push(spec.normalize.word().to_owned());
    }
    let view = spec.view.as_deref().unwrap_or_default();
    let mut name = match spec.kind.made_of() {
        Some((how, of)) => of.join(how.sign()),
        // A given matrix is known by its name.
        None if spec.kind.is_precomputed() => view.to_owned(),
        None => format!("{view}/{}", spec.kind.word()),
    };
    if !parameters.is_empty() {
        name = format!("{name}({})", parameters.join(","));
    }
    name
}

/// The name, or with a number behind it that makes it new; `used` remembers the last number of each name.
fn unused(name: &str, taken: &mut HashSet<String>, used: &mut HashMap<String, usize>) -> String {
    let mut candidate = name.to_owned();
    while !taken.insert(candidate.clone()) {
        let number = used.entry(name.to_owned()).or_insert(1);
        *number += 1;
        candidate = format!("{name}#{number}");
    }
    candidate
}
