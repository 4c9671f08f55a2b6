//! A build in which every message is altered makes all vectors and the demo again, to the same ids: nothing that is on record
//! depends on the wording of a sentence (design, section 3).

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::root;

/// What each altered message begins with.
const MARK: &str = "(altered) ";

/// Crates whose messages are altered.
const CRATES: [&str; 4] = ["dendrer-object", "dendrer-kernel", "dendrer-wire", "dendrer"];

/// Copies the workspace, alters every message of it, and runs the tests of vectors and of the demo there.
pub(crate) fn altered() -> ExitCode {
    let to = root().join("target/altered/workspace");
    let changed = match copy(&root(), &to, Path::new("")).and_then(|()| alter(&to)) {
        Ok(changed) => changed,
        Err(error) => {
            eprintln!("altered: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("altered: {changed} messages");
    if changed < 300 {
        eprintln!("altered: there are more messages than that; the patterns do not find them");
        return ExitCode::FAILURE;
    }
    let tests: [&[&str]; 2] = [
        &["-p", "dendrer", "--test", "vectors", "every_vector_holds_and_none_was_edited"],
        &["-p", "dendrer-cli", "--test", "demo_content", "demo_bytes_are_equal_on_every_machine"],
    ];
    let is_ok = tests.iter().all(|test| {
        let mut command = Command::new(env!("CARGO"));
        command.arg("test").arg("--quiet").args(*test).current_dir(&to);
        command.env("CARGO_TARGET_DIR", root().join("target/altered/build"));
        command.status().is_ok_and(|status| status.success())
    });
    if is_ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Copies all files of the workspace but what is built.
fn copy(from: &Path, to: &Path, below: &Path) -> std::io::Result<()> {
    let _ = std::fs::remove_dir_all(to.join(below));
    std::fs::create_dir_all(to.join(below))?;
    for entry in std::fs::read_dir(from.join(below))? {
        let entry = entry?;
        let name = below.join(entry.file_name());
        let is_left_out = matches!(entry.file_name().to_str(), Some("target" | ".git" | "node_modules"));
        match entry.file_type()? {
            kind if kind.is_dir() && !is_left_out => copy(from, to, &name)?,
            kind if kind.is_file() => drop(std::fs::copy(entry.path(), to.join(&name))?),
            _ => {}
        }
    }
    Ok(())
}

/// Alters the messages of the copied crates; returns how many there were.
fn alter(workspace: &Path) -> std::io::Result<usize> {
    let mut changed = 0;
    for name in CRATES {
        for file in sources(&workspace.join("crates").join(name).join("src"))? {
            let text = std::fs::read_to_string(&file)?;
            let (altered, count) = alter_text(&text, file.ends_with("dendrer-kernel/src/sealed.rs"));
            changed += count;
            std::fs::write(file, altered)?;
        }
    }
    Ok(changed)
}

fn sources(dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(sources(&path)?),
            false if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            false => {}
        }
    }
    Ok(found)
}

/// Puts the mark in front of each text of an error, and of each sentence of the file that holds sentences.
fn alter_text(text: &str, are_sentences: bool) -> (String, usize) {
    let mut out = String::new();
    let mut changed = 0;
    for line in text.split_inclusive('\n') {
        let is_comment = line.trim_start().starts_with("//");
        let line = match line.find("#[error(\"") {
            Some(at) => {
                changed += 1;
                let at = at + "#[error(\"".len();
                format!("{}{MARK}{}", &line[..at], &line[at..])
            }
            None if are_sentences && !is_comment => mark_sentences(line, &mut changed),
            None => line.to_owned(),
        };
        out.push_str(&line);
    }
    (out, changed)
}

/// Marks each literal of a line that holds a space.
fn mark_sentences(line: &str, changed: &mut usize) -> String {
    let mut parts = line.split('"');
    let mut out = parts.next().unwrap_or_default().to_owned();
    let mut is_inside = true;
    for part in parts {
        out.push('"');
        if is_inside && part.trim().contains(' ') {
            *changed += 1;
            out.push_str(MARK);
        }
        out.push_str(part);
        // An escaped quote does not end the literal.
        is_inside = if part.ends_with('\\') { is_inside } else { !is_inside };
    }
    out
}
