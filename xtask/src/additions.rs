//! Additions: how many files a new verb, importer, member of the intent or document touches, tried in a copy of the tree.
//!
//! A file `xtask/additions/NAME.txt` is the recipe of CONTRIBUTING as edits:
//!
//! ```text
//! files 7                          the limit, without page, test and changelog
//! === crates/a/src/x.rs            the text of a new file follows
//! === crates/a/src/lib.rs after pub mod w;
//! pub mod x;
//! === crates/a/src/lib.rs instead of const NUMBER: u8 = 5;
//! const NUMBER: u8 = 6;
//! === place/x.json                 a file beside which the commands run
//! $ schema x-question              arguments of the program, and what its output has
//! > "title"
//! ```
//!
//! Rule: an addition without lines, schema or Python fails, because a command of its recipe asks for each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// One edit of a recipe.
struct Edit {
    path: String,
    /// A text of the line that the edit follows or replaces; `None` for a new file.
    line: Option<String>,
    /// Whether the line is replaced.
    replaces: bool,
    lines: Vec<String>,
}

/// A recipe.
#[derive(Default)]
struct Recipe {
    files_max: usize,
    edits: Vec<Edit>,
    /// Arguments of the program, and the texts that its output must have.
    commands: Vec<(String, Vec<String>)>,
}

/// Tries every addition, or one.
pub(crate) fn run(root: &Path, only: Option<&str>) -> ExitCode {
    let recipes = match fs::read_dir(root.join("xtask/additions")) {
        Ok(found) => found.filter_map(|entry| Some(entry.ok()?.path())),
        Err(why) => {
            println!("xtask/additions: {why}");
            return ExitCode::FAILURE;
        }
    };
    let named = |path: &PathBuf| path.file_stem().is_some_and(|stem| only.is_none_or(|name| *stem == *name));
    let mut recipes: Vec<PathBuf> = recipes.filter(named).collect();
    recipes.sort();
    let mut failed = recipes.is_empty();
    for path in recipes {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match attempt(root, &name, &path) {
            Ok(line) => println!("{line}"),
            Err(why) => {
                println!("{name}: {why}");
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn attempt(root: &Path, name: &str, path: &Path) -> Result<String, String> {
    let recipe = read(&fs::read_to_string(path).map_err(|why| why.to_string())?)?;
    let mut touched: Vec<&str> = recipe.edits.iter().map(|edit| edit.path.as_str()).collect();
    touched.sort_unstable();
    touched.dedup();
    let is_counted = |path: &&str| {
        !(path.starts_with("docs/")
            || path.starts_with("place/")
            || path.contains("/tests/")
            || **path == *"CHANGELOG.md")
    };
    let files = touched.iter().filter(|path| is_counted(path)).count();
    if files > recipe.files_max {
        return Err(format!("{files} files are touched, and the limit is {}: {touched:?}", recipe.files_max));
    }
    let tree = root.join("target/additions").join(name);
    copy_tree(root, &tree)?;
    for edit in &recipe.edits {
        apply(&tree, edit)?;
    }
    let target = root.join("target/additions/target");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "-p", "dendrer-cli", "--bin", "dendrer"])
        .current_dir(&tree)
        .env("CARGO_TARGET_DIR", &target)
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("the tree with it does not build".to_owned());
    }
    let program = target.join("debug").join(format!("dendrer{}", std::env::consts::EXE_SUFFIX));
    let place = tree.join("place");
    fs::create_dir_all(&place).map_err(|why| why.to_string())?;
    for (command, wanted) in &recipe.commands {
        let output = Command::new(&program)
            .args(command.split_whitespace())
            .current_dir(&place)
            .env("HOME", &place)
            .output()
            .map_err(|why| format!("{}: {why}", program.display()))?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        if let Some(missing) = wanted.iter().find(|wanted| !text.contains(wanted.as_str())) {
            return Err(format!("`dendrer {command}` has no {missing:?}:\n{text}"));
        }
    }
    Ok(format!("{name}: {files} of {} files, {} commands", recipe.files_max, recipe.commands.len()))
}

fn read(text: &str) -> Result<Recipe, String> {
    let mut recipe = Recipe::default();
    for line in text.lines() {
        if let Some(number) = line.strip_prefix("files ") {
            recipe.files_max = number.trim().parse().map_err(|_| format!("no number: {line}"))?;
        } else if let Some(place) = line.strip_prefix("=== ") {
            let after = place.split_once(" after ");
            let instead = place.split_once(" instead of ").filter(|_| after.is_none());
            let (path, line) = after.or(instead).unwrap_or((place, ""));
            let line = (path != place).then(|| line.to_owned());
            let (path, replaces) = (path.to_owned(), instead.is_some());
            recipe.edits.push(Edit { path, line, replaces, lines: Vec::new() });
        } else if let Some(command) = line.strip_prefix("$ ") {
            recipe.commands.push((command.to_owned(), Vec::new()));
        } else if let Some((_, wanted)) = recipe.commands.last_mut() {
            wanted.extend(line.strip_prefix("> ").map(str::to_owned));
        } else if let Some(edit) = recipe.edits.last_mut() {
            edit.lines.push(line.to_owned());
        }
    }
    Ok(recipe)
}

/// Copies the files that git tracks, or would.
fn copy_tree(root: &Path, tree: &Path) -> Result<(), String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .map_err(|why| format!("git: {why}"))?;
    if tree.exists() {
        fs::remove_dir_all(tree).map_err(|why| format!("{}: {why}", tree.display()))?;
    }
    for name in String::from_utf8_lossy(&listed.stdout).split('\0').filter(|name| !name.is_empty()) {
        let to = tree.join(name);
        fs::create_dir_all(to.parent().unwrap_or(tree)).map_err(|why| why.to_string())?;
        // A file that was removed and not committed is listed all the same. `copy` keeps no time, so nothing is built twice.
        if root.join(name).is_file() {
            fs::copy(root.join(name), &to).map_err(|why| format!("{name}: {why}"))?;
        }
    }
    Ok(())
}

fn apply(tree: &Path, edit: &Edit) -> Result<(), String> {
    let path = tree.join(&edit.path);
    let Some(wanted) = &edit.line else {
        fs::create_dir_all(path.parent().unwrap_or(tree)).map_err(|why| why.to_string())?;
        return fs::write(&path, edit.lines.join("\n") + "\n").map_err(|why| format!("{}: {why}", edit.path));
    };
    let text = fs::read_to_string(&path).map_err(|why| format!("{}: {why}", edit.path))?;
    let mut lines: Vec<&str> = text.lines().collect();
    let places: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].contains(wanted.as_str())).collect();
    let [at] = places[..] else {
        return Err(format!("{} has {} lines with {wanted:?}, and one is needed", edit.path, places.len()));
    };
    let kept = if edit.replaces { at..at + 1 } else { at + 1..at + 1 };
    lines.splice(kept, edit.lines.iter().map(String::as_str));
    fs::write(&path, lines.join("\n") + "\n").map_err(|why| format!("{}: {why}", edit.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_has_edits_and_commands() {
        let text =
            "files 2\n=== a.rs\nnew\n=== b.rs after pub mod w;\npub mod x;\n$ schema x\n> title\n> a = b\n";
        let recipe = read(text).unwrap();
        assert_eq!((recipe.files_max, recipe.edits.len()), (2, 2));
        assert_eq!(recipe.edits[1].line.as_deref(), Some("pub mod w;"));
        assert_eq!(recipe.commands, [("schema x".to_owned(), vec!["title".to_owned(), "a = b".to_owned()])]);
    }
}
