//! Puts the built files of the page into the program, if they are there. Never runs npm.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    collect(&dist, &mut files);
    files.sort();
    let mut table = String::from("/// The files of the page: path, type, bytes.\n");
    table.push_str("const ASSETS: &[(&str, &str, &[u8])] = &[\n");
    for file in &files {
        let path = file.strip_prefix(&dist).expect("the file is below the directory").display().to_string();
        let kind = match file.extension().and_then(|end| end.to_str()) {
            Some("html") => "text/html; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "application/octet-stream",
        };
        let full = file.canonicalize().expect("the file is there");
        let _ = writeln!(
            table,
            "    ({:?}, {kind:?}, include_bytes!({:?})),",
            format!("/{path}"),
            full.display().to_string()
        );
    }
    table.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("assets.rs");
    fs::write(out, table).expect("the directory of the build can be written");
}

fn collect(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => collect(&path, into),
            path => into.push(path),
        }
    }
}
