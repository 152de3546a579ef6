//! The guide shows how to add a kernel, a loss and a solver on toys: they are quoted as they are.

use std::fs;
use std::path::Path;

/// Each toy: its file, the file of the table that it is in, and its line there.
const TOYS: [[&str; 3]; 3] = [
    ["kernel/kinds/toy.rs", "kernel/kinds/mod.rs", "toy::POWER,"],
    [
        "loss/toy.rs",
        "loss/scalar.rs",
        "toy::Absolute = \"|t − y|\",",
    ],
    [
        "train/toy.rs",
        "train/solvers.rs",
        "Turns = toy::TURNS, \"An SVM and a weight step in turns: a toy.\";",
    ],
];

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn toys_are_quoted_as_they_are() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = read(&home.join("../../CONTRIBUTING.md"));
    for [file, table, line] in TOYS {
        let text = read(&home.join("src").join(file));
        assert!(
            guide.contains(&format!("```rust\n{text}```")),
            "CONTRIBUTING.md does not quote {file} as it is"
        );
        assert!(
            guide.contains(&format!("crates/multikernel/src/{file}")),
            "CONTRIBUTING.md does not name {file}"
        );
        assert!(
            guide.contains(&format!("`{line}`")),
            "CONTRIBUTING.md lacks {line}"
        );
        assert!(
            read(&home.join("src").join(table)).contains(line),
            "{table} lacks {line}"
        );
    }
}
