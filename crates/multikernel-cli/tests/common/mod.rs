//! The real binary in a folder of its own.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program uses its part of this"
)]

use assert_cmd::Command;
use multikernel_io::ArrayWriter;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Output;
use tempfile::TempDir;

pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The names of everything in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.0.path())
            .expect("the folder")
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("written");
    }

    pub fn array(&self, name: &str, shape: &[usize], value: impl Fn(usize) -> f32) {
        self.arrays(name, &[("a", shape)], |_, k| value(k));
    }

    pub fn arrays(
        &self,
        file: &str,
        arrays: &[(&str, &[usize])],
        value: impl Fn(usize, usize) -> f32,
    ) {
        let mut writer = ArrayWriter::create(self.path(file)).expect("writable");
        for (a, (name, shape)) in arrays.iter().enumerate() {
            let values: Vec<f32> = (0..shape.iter().product()).map(|k| value(a, k)).collect();
            writer
                .array(name, shape, |sink| sink.write(&values))
                .expect("written");
        }
        writer.finish().expect("complete");
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::cargo_bin("multikernel").expect("the program");
        command.args(arguments).current_dir(self.0.path());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it starts")
    }

    /// Stdout of a run that must succeed.
    pub fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            stderr(&output)
        );
        String::from_utf8(output.stdout).expect("text")
    }

    /// The result object of a run that must succeed.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let mut arguments = arguments.to_vec();
        arguments.extend(["--json", "-"]);
        serde_json::from_str(&self.good(&arguments)).expect("JSON alone on stdout")
    }

    /// The sentence of a run that must fail with status 1 and leave nothing new behind.
    pub fn bad(&self, arguments: &[&str]) -> String {
        let before = self.names();
        let output = self.run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(said.starts_with("error: "), "{arguments:?}: {said}");
        assert!(
            said.trim_end().lines().count() <= 3,
            "at most a few lines: {said}"
        );
        assert_eq!(self.names(), before, "{arguments:?} left something behind");
        said
    }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Numbers that look random and are the same everywhere.
pub fn noise(k: usize) -> f32 {
    let mut random = multikernel::random::Random::new(k as u64);
    random.normal() as f32
}

/// A number of a result object.
#[track_caller]
pub fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("a number: {value}"))
}

/// Arguments and more of them.
pub fn with<'a>(first: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [first, more].concat()
}

/// Two classes in two views, one of them noise, with labels beside: `name`.npz and `name`.txt; `from` makes other samples of
/// the same kind.
pub fn two_views(folder: &Folder, name: &str, n: usize, from: usize) {
    let file = format!("{name}.npz");
    folder.arrays(&file, &[("good", &[n, 3]), ("bad", &[n, 2])], |a, k| {
        let class = if a == 0 { (k / 3 % 2) as f32 } else { 0.0 };
        1.5 * class + noise(from + 5000 * a + k)
    });
    let labels: Vec<&str> = (0..n).map(|i| ["no", "yes"][i % 2]).collect();
    folder.write(&format!("{name}.txt"), labels.join("\n"));
}

/// Training on what [`two_views`] made, as `v`.
pub const TRAIN: [&str; 9] = [
    "train",
    "--features",
    "v.npz",
    "--labels",
    "v.txt",
    "--model",
    "m.mk",
    "--kernel",
    "rbf",
];

/// The lines of a CSV file that 'predict' wrote.
pub fn lines(folder: &Folder, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.path(name)).expect("predictions");
    text.lines().map(str::to_owned).collect()
}

/// The digits as a .npz of two views, with labels.
pub fn digits(folder: &Folder, n: usize) {
    let data = multikernel::data::digits().expect("inside the library");
    let rows: Vec<usize> = (0..n).collect();
    let views = data.views.select(&rows).expect("rows");
    let columns = |v: usize| match &views.iter().nth(v).expect("a view").data {
        multikernel::data::ViewData::Dense(x) => x.values().to_vec(),
        _ => panic!("pixels"),
    };
    let (upper, lower) = (columns(0), columns(3));
    folder.arrays("d.npz", &[("a", &[n, 16]), ("b", &[n, 16])], |v, k| {
        [&upper, &lower][v][k]
    });
    let labels = data.labels.expect("labels").select(&rows);
    let targets =
        multikernel::data::Targets::new(Some(&labels), multikernel::data::Task::Classify, n);
    let Ok(multikernel::data::Targets::Classes { names, index }) = targets else {
        panic!("classes")
    };
    let labels: Vec<&str> = index.iter().map(|&c| names[c as usize].as_str()).collect();
    folder.write("y.txt", labels.join("\n"));
}

/// The classes of [`table`].
pub const LABELS: [&str; 3] = ["Rot, dunkel", "grün", "Blau"];

/// A feature of sample `i`: the class moves the first two columns, the third is noise.
pub fn feature(i: usize, column: usize, seed: usize) -> f32 {
    let class = i % 3;
    let mean = match column {
        0 => 4.0 * class as f32,
        1 => 4.0 * (class == 1) as u8 as f32,
        _ => 0.0,
    };
    mean + noise(seed + 10 * i + column)
}

/// A CSV file with an id, three features in the order given and a label of three classes.
pub fn table(folder: &Folder, name: &str, n: usize, seed: usize, columns: [usize; 3]) {
    let mut text = String::from("id,");
    text.push_str(&columns.map(|c| format!("x{c},")).concat());
    text.push_str("colour\n");
    for i in 0..n {
        let values = columns
            .map(|c| format!("{},", feature(i, c, seed)))
            .concat();
        text.push_str(&format!("s{i},{values}\"{}\"\n", LABELS[i % 3]));
    }
    folder.write(name, text);
}
