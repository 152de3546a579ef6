//! A look at what a file holds, without reading it.

use super::npy;
use super::npz::Archive;
use super::source::{Files, Format, format_of, split_pick};
use multikernel::error::Result;
use std::path::Path;

/// Whether a file looks like given matrices rather than features: a folder, arrays of three dimensions, or square
/// arrays of one size. Only headers are read.
pub fn holds_given_matrices(name: &str) -> Result<bool> {
    let (path, picks) = split_pick(name);
    if Path::new(&path).is_dir() {
        return Ok(true);
    }
    let files = Files {
        memory: None,
        observer: &(),
    };
    let shapes = match format_of(&path)? {
        Format::Npy => {
            let (header, _) = npy::open(&files.source(&path)?)?;
            vec![header.shape]
        }
        Format::Npz => {
            let source = files.source(&path)?;
            let mut archive = Archive::open(&source)?;
            let names = if picks.is_empty() {
                archive.names()
            } else {
                picks
            };
            let shape = |name: String| Ok(archive.member(&name)?.header.shape);
            names.into_iter().map(shape).collect::<Result<_>>()?
        }
        _ => return Ok(false),
    };
    let size = shapes.first().and_then(|shape| shape.first());
    Ok(shapes.iter().all(|shape| match shape[..] {
        [rows, cols] => rows == cols && Some(&rows) == size,
        [_, _, _] => true,
        _ => false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ArrayWriter;

    #[test]
    fn square_arrays_of_one_size_are_matrices() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |file: &str, shapes: &[&[usize]]| -> String {
            let path = folder.path().join(file);
            let mut writer = ArrayWriter::create(&path).expect("writable");
            for (k, shape) in shapes.iter().enumerate() {
                let values = vec![0.0; shape.iter().product()];
                writer
                    .array(&format!("a{k}"), shape, |sink| sink.write(&values))
                    .expect("written");
            }
            writer.finish().expect("complete");
            path.to_str().expect("Unicode").to_owned()
        };
        let looks = |name: &str| holds_given_matrices(name).expect("readable");
        assert!(looks(&write("square.npz", &[&[3, 3], &[3, 3]])));
        assert!(looks(&write("cube.npy", &[&[2, 3, 3]])));
        assert!(looks(&write("folder", &[&[3, 3]])));
        assert!(!looks(&write("views.npz", &[&[3, 3], &[3, 5]])));
        assert!(!looks(&write("sizes.npz", &[&[3, 3], &[4, 4]])));
        assert!(!looks(&write("x.npy", &[&[3, 5]])));
        assert!(looks(&format!(
            "{}:a0",
            write("pick.npz", &[&[3, 3], &[3, 5]])
        )));
        assert!(!looks("no-such-file.csv"));
        assert!(holds_given_matrices("no-such-file.npy").is_err());
    }
}
