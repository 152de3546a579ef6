//! The house: rooms of the library and of the program stand in the order of `docs/architecture.md`, and doors open one way.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The first words of the indented lines under a heading of the architecture page.
fn listed(heading: &str) -> Vec<String> {
    let page = read(&root().join("docs/architecture.md"));
    let section = page
        .split("\n## ")
        .find(|section| section.starts_with(heading))
        .unwrap_or_else(|| panic!("docs/architecture.md has no section '{heading}'"));
    let rooms: Vec<String> = section
        .lines()
        .filter(|line| line.starts_with("    "))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert!(!rooms.is_empty(), "no rooms under '{heading}'");
    rooms
}

/// One source file: its module path from the root of the crate and its text without comments and tests.
struct Source {
    module: Vec<String>,
    code: String,
}

fn sources(folder: &Path, module: &[String], all: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("the sources can be read") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        if stem == "tests" || stem == "test" {
            continue;
        }
        let mut inner = module.to_vec();
        if path.is_dir() {
            inner.push(stem);
            sources(&path, &inner, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_root = module.is_empty() && (stem == "lib" || stem == "main");
            if is_root {
                continue;
            }
            if stem != "mod" {
                inner.push(stem);
            }
            all.push(Source {
                module: inner,
                code: without_tests(&read(&path)),
            });
        }
    }
}

/// Drops comments and what stands under `#[cfg(test)]` at the end of a file: tests may use the whole house.
fn without_tests(text: &str) -> String {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end]
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect::<Vec<_>>()
        .join("\n")
}

/// All paths in `code` that begin with `crate::`, or with `super::` as often as it takes to leave a room, from the root of the crate.
fn paths(source: &Source) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in source.code.match_indices("crate::") {
        expand(&source.code[at + "crate::".len()..], &[], &mut found);
    }
    for (at, _) in source.code.match_indices("super::") {
        if source.code[..at].ends_with("super::") {
            continue;
        }
        let mut rest = &source.code[at..];
        let mut up = 0;
        while let Some(after) = rest.strip_prefix("super::") {
            rest = after;
            up += 1;
        }
        // An inline module has one level more than the file; it then climbs less than this reckons, never more.
        let depth = source.module.len().saturating_sub(up);
        expand(rest, &source.module[..depth], &mut found);
    }
    found
}

/// Follows a path to its names: `a::{b::c, d}` is `a::b::c` and `a::d`.
fn expand(text: &str, before: &[String], found: &mut Vec<Vec<String>>) {
    if let Some(group) = text.strip_prefix('{') {
        let (mut depth, mut start) = (0, 0);
        for (at, sign) in group.char_indices() {
            match sign {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    expand(group[start..at].trim_start(), before, found);
                    start = at + 1;
                    if sign == '}' {
                        return;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
        return;
    }
    let end = text
        .find(|sign: char| !(sign.is_alphanumeric() || sign == '_'))
        .unwrap_or(text.len());
    if end == 0 {
        return;
    }
    let mut path = before.to_vec();
    path.push(text[..end].to_owned());
    match text[end..].strip_prefix("::") {
        Some(rest) if rest.starts_with(|sign: char| sign.is_alphabetic() || sign == '{') => {
            expand(rest, &path, found);
        }
        _ => found.push(path),
    }
}

/// The room of a path: the longest listed one it lies in.
fn room_of(path: &[String], rooms: &[String]) -> Option<usize> {
    (1..=path.len().min(2)).rev().find_map(|parts| {
        rooms
            .iter()
            .position(|room| *room == path[..parts].join("/"))
    })
}

fn doors_open_one_way(folder: &str, heading: &str) {
    let rooms = listed(heading);
    let mut all = Vec::new();
    sources(&root().join(folder), &[], &mut all);
    assert!(all.len() > 10, "{folder} was not found");

    let mut wrong = BTreeSet::new();
    let mut entered = BTreeSet::new();
    for source in &all {
        let Some(room) = room_of(&source.module, &rooms) else {
            // A folder of rooms, such as `solve`, has a `mod.rs` that only names them.
            let is_corridor = rooms
                .iter()
                .any(|room| room.starts_with(&format!("{}/", source.module.join("/"))));
            if !is_corridor {
                wrong.insert(format!("{} is in no listed room", source.module.join("::")));
            }
            continue;
        };
        entered.insert(room);
        for path in paths(source) {
            match room_of(&path, &rooms) {
                Some(used) if used <= room => {}
                Some(used) => {
                    wrong.insert(format!(
                        "{} uses {}: {} stands below {}",
                        source.module.join("::"),
                        path.join("::"),
                        rooms[used],
                        rooms[room]
                    ));
                }
                None => {
                    wrong.insert(format!(
                        "{} uses {}, which is no room: name the module it lives in",
                        source.module.join("::"),
                        path.join("::")
                    ));
                }
            }
        }
    }
    for (at, room) in rooms.iter().enumerate() {
        if !entered.contains(&at) {
            wrong.insert(format!("{room} is listed and has no sources"));
        }
    }
    let wrong: Vec<String> = wrong.into_iter().collect();
    assert!(wrong.is_empty(), "{heading}:\n{}", wrong.join("\n"));
}

#[test]
fn doors_of_the_library_open_one_way() {
    doors_open_one_way("crates/multikernel/src", "Rooms of the library");
}

#[test]
fn doors_of_the_program_open_one_way() {
    doors_open_one_way("crates/multikernel-cli/src", "Rooms of the program");
}

#[test]
fn the_crates_are_those_of_the_page_and_the_library_needs_none_of_them() {
    let listed: BTreeSet<String> = listed("Crates").into_iter().collect();
    let mut there: BTreeSet<String> = fs::read_dir(root().join("crates"))
        .expect("crates")
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    there.insert("python".to_owned());
    assert_eq!(listed, there);

    let library = read(&root().join("crates/multikernel/Cargo.toml"));
    for forbidden in [
        "multikernel-io",
        "multikernel-report",
        "parquet",
        "zip",
        "csv",
        "memmap2",
    ] {
        let needs = library
            .lines()
            .any(|line| line.split(['=', '.', ' ']).next() == Some(forbidden));
        assert!(!needs, "the library depends on {forbidden}");
    }
}

/// People who call the library from Rust or Python have no command line: sentences name settings as `this_one`.
#[test]
fn no_option_of_the_program_stands_in_a_sentence_of_the_library() {
    let mut all = Vec::new();
    sources(&root().join("crates/multikernel/src"), &[], &mut all);
    sources(&root().join("crates/multikernel-io/src"), &[], &mut all);
    for source in &all {
        for line in source.code.lines() {
            let option = line.match_indices("--").find(|(at, _)| {
                let before = line[..*at].chars().next_back();
                let after = line[at + 2..].chars().next();
                before.is_none_or(|c| !c.is_alphanumeric() && c != '-')
                    && after.is_some_and(|c| c.is_ascii_lowercase())
            });
            assert!(option.is_none(), "{}: {line}", source.module.join("::"));
        }
    }
}

/// The reader of paths itself: what it does not see, the other tests cannot refuse.
#[test]
fn paths_are_seen_in_every_spelling() {
    let source = Source {
        module: ["solve", "exact", "svm"].map(str::to_owned).to_vec(),
        code: without_tests(
            "use crate::{error::Error, gram::{Gram, rows::Row}};\nuse super::newton;\n\
             use super::super::steps::Theta; // crate::comment::Only\nlet x = crate::train::Mkl::default();\n\
             #[cfg(test)]\nmod tests { use crate::pipeline::Training; }",
        ),
    };
    let seen: BTreeSet<String> = paths(&source).iter().map(|path| path.join("::")).collect();
    let expected = [
        "error::Error",
        "gram::Gram",
        "gram::rows::Row",
        "solve::exact::newton",
        "solve::steps::Theta",
        "train::Mkl::default",
    ];
    assert_eq!(seen, expected.map(str::to_owned).into());
}
