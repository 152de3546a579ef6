//! How many things a user of the library can name: everything reachable from its root by `pub mod` and `pub use`, modules among
//! them; methods and fields not, and the types of the record apart, which are the keys of a JSON object.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The number may fall and must not rise: what is not for users is `pub(crate)`.
const MOST: usize = 229;

/// A module's own items, the modules below it, and what it exports from elsewhere.
#[derive(Default)]
struct Module {
    items: Vec<String>,
    below: Vec<String>,
    open: Vec<String>,
    exports: Vec<Vec<String>>,
}

fn source(module: &[String]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let Some((last, above)) = module.split_last() else {
        return root.join("lib.rs");
    };
    let folder = above.iter().fold(root, |path, part| path.join(part));
    let file = folder.join(format!("{last}.rs"));
    match file.exists() {
        true => file,
        false => folder.join(last).join("mod.rs"),
    }
}

fn parse(text: &str) -> Module {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines: Vec<&str> = text[..end]
        .lines()
        .map(|line| line.split("//").next().unwrap_or(""))
        .collect();
    let mut module = Module::default();
    let word = |text: &str| -> String {
        let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_'));
        text[..end.unwrap_or(text.len())].to_owned()
    };
    for (at, line) in lines.iter().enumerate() {
        // Items of a file begin at its left edge: rustfmt sees to it.
        if let Some(exported) = line.strip_prefix("pub use ") {
            let rest = lines[at + 1..].iter().flat_map(|line| ["", line]);
            let text: String = [exported].into_iter().chain(rest).collect();
            let path = text.split(';').next().unwrap_or("");
            export(path, &[], &mut module.exports);
            continue;
        }
        let (is_public, mut rest) = match line.strip_prefix("pub ") {
            Some(rest) => (true, rest),
            None => (false, line.strip_prefix("pub(crate) ").unwrap_or(line)),
        };
        for qualifier in ["unsafe ", "async "] {
            rest = rest.strip_prefix(qualifier).unwrap_or(rest);
        }
        rest = match rest.strip_prefix("const fn ") {
            Some(_) => &rest["const ".len()..],
            None => rest,
        };
        let Some((what, name)) = rest.split_once(' ') else {
            continue;
        };
        let name = word(name);
        match what {
            "mod" if rest.ends_with(';') => {
                if is_public {
                    module.open.push(name.clone());
                }
                module.below.push(name);
            }
            "struct" | "enum" | "union" | "trait" | "fn" | "const" | "static" | "type"
                if is_public =>
            {
                module.items.push(name);
            }
            _ => {}
        }
    }
    module
}

/// Follows an exported path to its names: `a::{b::c, d}` is `a::b::c` and `a::d`.
fn export(text: &str, before: &[String], found: &mut Vec<Vec<String>>) {
    let text = text.trim();
    let mut path = before.to_vec();
    let Some((head, group)) = text.split_once('{') else {
        path.extend(text.split("::").map(|part| part.trim().to_owned()));
        found.push(path);
        return;
    };
    path.extend(
        head.split("::")
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned),
    );
    let group = group.trim_end().trim_end_matches('}');
    let (mut depth, mut start) = (0, 0);
    for (at, sign) in group.char_indices().chain([(group.len(), ',')]) {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !group[start..at].trim().is_empty() {
                    export(&group[start..at], &path, found);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

#[derive(Default)]
struct Crate {
    modules: BTreeMap<Vec<String>, Module>,
    /// Where things are defined; what is exported by several ways counts once.
    found: BTreeSet<Vec<String>>,
}

impl Crate {
    fn module(&mut self, path: &[String]) -> &Module {
        self.modules.entry(path.to_vec()).or_insert_with(|| {
            let file = source(path);
            let text = fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            parse(&text)
        })
    }

    /// Where the things are defined that an exported path names.
    fn defined(&mut self, from: &[String], path: &[String]) -> Vec<Vec<String>> {
        let mut at = from.to_vec();
        let mut path = path;
        while let [first, rest @ ..] = path
            && !rest.is_empty()
        {
            match first.as_str() {
                "crate" => at.clear(),
                "self" => {}
                "super" => drop(at.pop()),
                name if self.module(&at).below.iter().any(|below| below == name) => {
                    at.push(first.clone());
                }
                // Of another crate.
                _ => return vec![[&at[..], path].concat()],
            }
            path = rest;
        }
        let named = |name: &str| [&at[..], &[name.to_owned()]].concat();
        let module = self.module(&at);
        let (items, exports) = (module.items.clone(), module.exports.clone());
        let wanted = path[0].split(" as ").next().unwrap_or("");
        if wanted == "*" {
            let mut all: Vec<Vec<String>> = items.iter().map(|name| named(name)).collect();
            for export in &exports {
                all.extend(self.defined(&at, export));
            }
            return all;
        }
        let elsewhere = exports
            .iter()
            .find(|export| export.last().is_some_and(|name| name == wanted));
        match elsewhere {
            Some(export) if !items.iter().any(|name| name == wanted) => self.defined(&at, export),
            _ => vec![named(wanted)],
        }
    }

    fn walk(&mut self, path: &[String]) {
        let module = self.module(path);
        let (items, exports) = (module.items.clone(), module.exports.clone());
        let open = module.open.clone();
        for name in items {
            self.found.insert([path, &[name]].concat());
        }
        for export in exports {
            let found = self.defined(path, &export);
            self.found.extend(found);
        }
        for name in open {
            let below = [path, &[name]].concat();
            self.found.insert(below.clone());
            self.walk(&below);
        }
    }
}

#[test]
fn few_things_have_names_for_users() {
    let mut library = Crate::default();
    library.walk(&[]);
    let of_users: Vec<&Vec<String>> = library
        .found
        .iter()
        .filter(|path| path[0] != "record")
        .collect();
    let mut rooms: BTreeMap<&str, usize> = BTreeMap::new();
    for path in &of_users {
        *rooms.entry(&path[0]).or_default() += 1;
    }
    for known in ["train::Mkl", "data::views::View", "error::Error"] {
        let is_seen = of_users.iter().any(|path| path.join("::") == known);
        assert!(is_seen, "{known} is public and was not seen");
    }
    assert!(
        of_users.len() <= MOST,
        "{} items: {rooms:?}",
        of_users.len()
    );
}

#[test]
fn every_spelling_of_an_export_is_seen() {
    let module = parse(
        "pub mod a;\nmod b;\npub(crate) mod c;\npub use b::{\n    One,\n    inner::{Two, Three},\n};\npub use b::Four; // pub use b::No;\n\
         pub struct Five(u8);\npub const fn six() {}\npub const SEVEN: u8 = 7;\npub unsafe fn eight() {}\nimpl Five {\n    pub fn no(&self) {}\n}\n\
         pub(crate) struct No;\n#[cfg(test)]\nmod tests {\npub struct No;\n}\n",
    );
    assert_eq!(module.open, ["a"]);
    assert_eq!(module.below, ["a", "b", "c"]);
    assert_eq!(module.items, ["Five", "six", "SEVEN", "eight"]);
    let exports: Vec<String> = module.exports.iter().map(|path| path.join("::")).collect();
    assert_eq!(
        exports,
        ["b::One", "b::inner::Two", "b::inner::Three", "b::Four"]
    );
}
