//! Tasks that `cargo` has no command for: `tidy` holds the rules that no compiler holds, `limits` lowers the limits of its
//! counts, `lines` prints the size of each crate, `additions` tries what a new verb touches, `vectors` adds test vectors, `altered` makes them again with other
//! messages, `deep` tries every fault many times, `release` makes the files of one.
//!
//! `tidy` prints every rule that does not hold, not only the first; exit code 1 if there is any.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers speaks to its terminal"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

mod additions;
mod altered;
mod deep;
mod release;
mod tidy;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["tidy"] => tidy(),
        ["tidy", key] => explain(key),
        ["limits"] => limits(),
        ["lines"] => lines(),
        ["additions"] => additions::run(&root(), None),
        ["additions", name] => additions::run(&root(), Some(name)),
        ["vectors"] => vectors(),
        ["altered"] => altered::altered(),
        ["deep", ref rows @ ..] => {
            deep::run(&root(), &rows.iter().map(|row| (*row).to_owned()).collect::<Vec<_>>())
        }
        ["release", ref rest @ ..] => release::run(&root(), rest),
        _ => {
            eprintln!(
                "usage: cargo run -p xtask -- tidy [COUNT] | limits | lines | additions [NAME] | vectors | altered | deep [ROW ...] | release [--program FILE] DIR"
            );
            ExitCode::from(2)
        }
    }
}

/// The directory of the workspace.
fn root() -> PathBuf {
    // Asked when it runs and not when it was built: two checkouts may share what they build.
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&manifest).parent().expect("xtask lies in the workspace").to_owned()
}

fn tidy() -> ExitCode {
    let (notes, findings) = tidy::check(&root());
    for line in notes.iter().chain(&findings) {
        println!("{line}");
    }
    println!(
        "tidy: {}",
        if findings.is_empty() {
            "every rule holds".to_owned()
        } else {
            format!("{} findings", findings.len())
        }
    );
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints every place that a count found.
fn explain(key: &str) -> ExitCode {
    let Some(lines) = tidy::explain(&root(), key) else {
        eprintln!("tidy counts no {key}: xtask/limits.txt names what it counts");
        return ExitCode::from(2);
    };
    for line in lines {
        println!("{line}");
    }
    ExitCode::SUCCESS
}

fn limits() -> ExitCode {
    match tidy::lower_limits(&root()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Prints lines of production code by crate.
fn lines() -> ExitCode {
    let (crates, comments) = tidy::lines(&root());
    for (member, lines) in &crates {
        println!("{member:20} {lines:7}");
    }
    println!("{:20} {:7}", "total", crates.values().sum::<usize>());
    println!("{:20} {comments:7}", "lines of comments");
    ExitCode::SUCCESS
}

/// Runs the test that knows the vectors, with leave to add what is new.
fn vectors() -> ExitCode {
    let mut command = Command::new(env!("CARGO"));
    command.args([
        "test",
        "--quiet",
        "-p",
        "dendrer",
        "--test",
        "vectors",
        "every_vector_holds_and_none_was_edited",
    ]);
    match command.env("DENDRER_WRITE_VECTORS", "1").current_dir(root()).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
