//! What `cargo` cannot do by itself: `tidy` holds the rules that no compiler holds, `vectors` adds test vectors, `deep` tries
//! every fault many times.
//!
//! Prints every rule that does not hold, not only the first; exit code 1 if there is any.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for developers speaks to its terminal"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

mod deep;
mod tidy;

fn main() -> ExitCode {
    let task = std::env::args().nth(1);
    match task.as_deref() {
        Some("tidy") => report(&tidy::check(&root())),
        Some("vectors") => vectors(),
        Some("deep") => deep::run(&root(), &std::env::args().skip(2).collect::<Vec<_>>()),
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy | vectors | deep [ROW ...]");
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

fn report(findings: &[String]) -> ExitCode {
    for finding in findings {
        println!("{finding}");
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
