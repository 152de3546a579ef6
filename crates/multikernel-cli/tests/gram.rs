//! `multikernel gram` through the real binary.

mod common;

use common::{Folder, noise, stderr};
use multikernel::data::ViewData;
use multikernel_io::{LoadOptions, load};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The matrices in a file that `gram` wrote, by name.
fn matrices(folder: &Folder, name: &str) -> Vec<(String, Vec<f32>)> {
    let options = LoadOptions {
        gram: vec![folder.path(name).to_str().expect("Unicode").into()],
        ..LoadOptions::default()
    };
    let data = load(&options, &()).expect("readable");
    let rows = |view: &multikernel::data::View| match &view.data {
        ViewData::Pairwise(x) => (0..x.rows()).flat_map(|i| x.row(i).to_vec()).collect(),
        _ => panic!("a matrix"),
    };
    data.views
        .iter()
        .map(|v| (v.name.clone(), rows(v)))
        .collect()
}

#[test]
fn archive_folder_and_stack_hold_the_same_kernels() {
    let folder = Folder::new();
    let (n, d) = (30, 4);
    folder.array("x.npy", &[n, d], noise);
    let specs = ["--kernel", "rbf:width=2|4", "--kernel", "linear"];
    for out in ["k.npz", "k/", "k.npy"] {
        let mut arguments = vec!["gram", "--features", "x.npy", "--out", out];
        arguments.extend(specs);
        let text = folder.good(&arguments);
        assert!(text.contains("3 kernels of 30 samples"), "{text}");
    }
    assert_eq!(folder.names(), ["k", "k.npy", "k.npz", "x.npy"]);
    let archive = matrices(&folder, "k.npz");
    let names: Vec<&str> = archive.iter().map(|m| m.0.as_str()).collect();
    assert_eq!(names, ["x/rbf(2)", "x/rbf(4)", "x/linear"]);
    let x: Vec<f32> = (0..n * d).map(noise).collect();
    for i in 0..n {
        for j in 0..n {
            let pairs = || x[i * d..(i + 1) * d].iter().zip(&x[j * d..(j + 1) * d]);
            let distance: f32 = pairs().map(|(a, b)| (a - b).powi(2)).sum();
            let dot: f32 = pairs().map(|(a, b)| a * b).sum();
            let expected = [(-distance / 2.0).exp(), (-distance / 4.0).exp(), dot];
            for (m, expected) in archive.iter().zip(expected) {
                let found = m.1[i * n + j];
                assert!(
                    (found - expected).abs() < 2e-5,
                    "{}: {found} {expected}",
                    m.0
                );
            }
        }
    }
    let mut in_folder = matrices(&folder, "k");
    in_folder.sort_by_key(|m| names.iter().position(|n| n.replace('/', "_") == m.0));
    let stacked = matrices(&folder, "k.npy");
    for ((a, b), c) in archive.iter().zip(&in_folder).zip(&stacked) {
        assert_eq!(a.1, b.1);
        assert_eq!(a.1, c.1);
    }
}

#[test]
fn the_result_object_names_kernels_arrays_and_cost() {
    let folder = Folder::new();
    folder.array("x.npy", &[20, 3], noise);
    let result = folder.json(&[
        "gram",
        "--features",
        "x.npy",
        "--kernel",
        "rbf",
        "--out",
        "k/",
    ]);
    assert_eq!(result["n_samples"], 20);
    let kernel = &result["kernels"][0];
    assert_eq!(kernel["name"], "x/rbf(mean)");
    assert_eq!(kernel["array"], "x_rbf(mean)");
    assert!(
        kernel["spec"]
            .as_str()
            .is_some_and(|s| s.starts_with("rbf:width=")),
        "{kernel}"
    );
    assert!(result["seconds"]["total"].as_f64() > Some(0.0));
    assert!(folder.path("k/x_rbf(mean).npy").exists());
}

#[test]
fn the_default_kernels_are_said_and_quiet_is_quiet() {
    let folder = Folder::new();
    folder.array("x.npy", &[20, 3], noise);
    let text = folder.good(&["gram", "--features", "x.npy", "--out", "k.npz"]);
    assert!(
        text.contains("note: No kernels were asked for, so the default bank is used"),
        "{text}"
    );
    assert!(text.contains("6 kernels of 20 samples"), "{text}");
    let output = folder.run(&["gram", "--features", "x.npy", "--out", "k.npz", "--quiet"]);
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty());
}

#[test]
fn views_of_a_table_scaling_and_kernels_from_a_file() {
    let folder = Folder::new();
    let mut table = String::from("id,len,width,c_red,c_blue,class\n");
    for i in 0..12 {
        table += &format!(
            "s{i},{},{},{},{},{}\n",
            i,
            2 * i,
            noise(i),
            noise(i + 50),
            i % 2
        );
    }
    folder.write("t.csv", table);
    folder.write(
        "kernels.toml",
        "[[kernel]]\nkind = \"linear\"\nview = \"shape\"\nname = \"lin\"\n\n[[kernel]]\nkind = \"rbf\"\nwidth = [1, 2]\nview = \"colour\"\n",
    );
    folder.good(&[
        "gram",
        "--features",
        "t.csv",
        "--view",
        "shape=len,width",
        "--view",
        "colour=c_*",
        "--scale",
        "shape=standard",
        "--label-column",
        "class",
        "--id-column",
        "id",
        "--kernels",
        "kernels.toml",
        "--out",
        "k.npz",
    ]);
    let found = matrices(&folder, "k.npz");
    let names: Vec<&str> = found.iter().map(|m| m.0.as_str()).collect();
    assert_eq!(names, ["lin", "colour/rbf(1)", "colour/rbf(2)"]);
    // Both columns are i up to a factor: standardised they are the same, so k = 2 z z'.
    let z = |i: usize| (i as f64 - 5.5) / (143.0f64 / 12.0).sqrt();
    let expected = 2.0 * z(0) * z(11);
    assert!((f64::from(found[0].1[11]) - expected).abs() < 1e-4);
}

#[test]
fn threads_do_not_change_a_bit() {
    let folder = Folder::new();
    folder.array("x.npy", &[700, 20], noise);
    for threads in ["1", "2", "5"] {
        let out = format!("k{threads}.npz");
        let specs = "rbf:width=mean*0.5|mean,normalize=center";
        folder.good(&[
            "gram",
            "--features",
            "x.npy",
            "--kernel",
            specs,
            "--threads",
            threads,
            "--out",
            &out,
        ]);
    }
    let one = matrices(&folder, "k1.npz");
    for other in ["k2.npz", "k5.npz"] {
        assert!(one == matrices(&folder, other), "{other}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn memory_is_a_bound() {
    let folder = Folder::new();
    let n = 4000;
    folder.array("x.npy", &[n, 20], noise);
    // Three statistics of 64 MB each would not fit.
    let limit = 80 << 20;
    let arguments = [
        "gram",
        "--features",
        "x.npy",
        "--kernel",
        "rbf",
        "--kernel",
        "linear",
        "--kernel",
        "laplacian",
        "--memory",
        "80MiB",
        "--threads",
        "2",
        "--out",
        "k.npz",
    ];
    let result = folder.json(&arguments);
    let peak = result["peak_memory_bytes"]
        .as_u64()
        .expect("known on Linux");
    assert!(peak <= limit, "{peak} bytes of {limit}");
    assert!(peak > 10 << 20, "{peak}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_model_with_weights_for_every_class_is_measured_within_the_bound() {
    let folder = Folder::new();
    let n = 2000;
    let class = |i: usize| i % 3;
    for view in 0..4 {
        folder.array(&format!("x{view}.npy"), &[n, 2], |k| {
            // hardly told apart, so that the model keeps nearly all samples
            let own = class(k / 2) == (view + k) % 3;
            noise(k + 7 * view) + 0.1 * f32::from(u8::from(own))
        });
    }
    let labels: Vec<String> = (0..n).map(|i| class(i).to_string()).collect();
    folder.write("y.txt", labels.join("\n"));
    // Four statistics between all samples and those kept, 64 MB, would not fit.
    let limit = 56 << 20;
    let mut arguments = vec!["train", "--labels", "y.txt", "--multiclass", "ovr"];
    for view in ["x0.npy", "x1.npy", "x2.npy", "x3.npy"] {
        arguments.extend(["--features", view]);
    }
    arguments.extend(["--memory", "56MiB", "--no-baselines", "--threads", "2"]);
    arguments.extend(["--tol", "0.1", "--model", "m.mk"]);
    let result = folder.json(&arguments);
    let peak = result["peak_memory_bytes"]
        .as_u64()
        .expect("known on Linux");
    assert!(peak <= limit, "{peak} bytes of {limit}");
}

#[test]
#[cfg(target_os = "linux")]
fn mapped_matrices_stay_within_the_bound_too() {
    let folder = Folder::new();
    let n = 3000;
    let shape: &[usize] = &[n, n];
    let names = [("a", shape), ("b", shape), ("c", shape), ("d", shape)];
    folder.arrays("k", &names, |a, k| {
        let distance = (k / n).abs_diff(k % n) as f32;
        (-distance / (1.0 + a as f32)).exp()
    });
    // 144 MB in all.
    let limit = 90 << 20;
    for command in [&["inspect"][..], &["gram", "--out", "again.npz"]] {
        let options = ["--gram", "k", "--memory", "90MiB", "--threads", "2"];
        let result = folder.json(&[command, &options].concat());
        let peak = result["peak_memory_bytes"]
            .as_u64()
            .expect("known on Linux");
        assert!(peak <= limit, "{command:?}: {peak} bytes of {limit}");
    }
    assert!(matrices(&folder, "k") == matrices(&folder, "again.npz"));
}

#[test]
fn too_little_memory_is_said_before_the_work() {
    let folder = Folder::new();
    folder.array("x.npy", &[2000, 20], noise);
    let said = folder.bad(&[
        "gram",
        "--features",
        "x.npy",
        "--kernel",
        "rbf",
        "--memory",
        "12MiB",
        "--out",
        "k.npz",
    ]);
    assert!(said.contains("may be used"), "{said}");
}

#[test]
fn a_stop_leaves_nothing_behind() {
    let folder = Folder::new();
    folder.array("x.npy", &[3000, 50], noise);
    let specs: Vec<String> = (1..200).map(|w| format!("rbf:width={w}")).collect();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("multikernel"));
    command
        .args(["gram", "--features", "x.npy", "--out", "k.npz"])
        .args(specs.iter().flat_map(|s| ["--kernel", s]))
        .current_dir(folder.path(""))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    // Once it writes, it is in the middle of the work.
    let begun = std::time::Instant::now();
    while folder.names().len() < 2 {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.expect("kill").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_eq!(folder.names(), ["x.npy"]);
}
