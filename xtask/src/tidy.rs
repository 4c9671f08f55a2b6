//! Holds the rules of the repository that no compiler holds.
//!
//! A rule that holds today is a function that returns findings. A rule that the code still has to reach is a [`Count`]
//! with a limit that may only shrink.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

mod circles;
mod forbidden;
mod graph;
mod limits;
mod rooms;
mod size;
mod source;
mod subjects;
mod words;

use graph::Graph;
use limits::Count;
use source::Source;

/// The crate table of `ARCHITECTURE.md`: who may depend on whom. Dependencies for development are free.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("dendrer-object", &[]),
    ("dendrer-kernel", &["dendrer-object"]),
    ("dendrer-chain", &["dendrer-object"]),
    ("dendrer-graph", &["dendrer-object", "dendrer-kernel"]),
    ("dendrer-store", &["dendrer-object"]),
    ("dendrer-store-postgres", &["dendrer-object", "dendrer-store"]),
    ("dendrer-wasm", &["dendrer-object", "dendrer-kernel"]),
    (
        "dendrer",
        &[
            "dendrer-object",
            "dendrer-chain",
            "dendrer-kernel",
            "dendrer-graph",
            "dendrer-store",
            "dendrer-wasm",
        ],
    ),
    ("dendrer-view", &["dendrer-object", "dendrer-chain", "dendrer"]),
    ("dendrer-wire", &["dendrer-object", "dendrer-chain", "dendrer"]),
    ("dendrer-capture", &["dendrer-object", "dendrer", "dendrer-wire"]),
    ("dendrer-server", &["dendrer-object", "dendrer", "dendrer-view"]),
    ("dendrer-fleet", &["dendrer-object", "dendrer-kernel", "dendrer-store", "dendrer"]),
    ("dendrer-testkit", &["dendrer-object", "dendrer-kernel", "dendrer-store", "dendrer"]),
    (
        "dendrer-cli",
        &[
            "dendrer-object",
            "dendrer-chain",
            "dendrer-kernel",
            "dendrer-store",
            "dendrer-store-postgres",
            "dendrer",
            "dendrer-view",
            "dendrer-wire",
            "dendrer-capture",
            "dendrer-fleet",
            "dendrer-server",
        ],
    ),
    (
        "dendrer-python",
        &["dendrer-object", "dendrer-kernel", "dendrer", "dendrer-view", "dendrer-wire", "dendrer-cli"],
    ),
    ("xtask", &[]),
];

/// The requirements that this stage answers for, as ranges of ids.
const OWNED: &[(&str, &[(u32, u32)])] = &[
    (
        "D",
        &[
            (1, 11),
            (14, 35),
            (37, 42),
            (53, 56),
            (59, 61),
            (63, 65),
            (67, 70),
            (86, 86),
            (104, 104),
            (107, 107),
            (115, 115),
            (123, 126),
            (128, 130),
            (138, 138),
            (143, 147),
            (153, 156),
            (158, 165),
            (174, 174),
            (178, 180),
            (189, 190),
            (192, 195),
        ],
    ),
    (
        "C",
        &[
            (1, 24),
            (27, 63),
            (67, 69),
            (74, 75),
            (78, 78),
            (80, 80),
            (87, 101),
            (103, 106),
            (128, 130),
            (133, 135),
            (139, 139),
            (141, 141),
        ],
    ),
    ("F", &[(1, 62)]),
    ("W", &[(1, 78)]),
    ("X", &[(1, 7), (9, 16)]),
    ("Y", &[(1, 27)]),
];

/// What the pure crates may not touch, so that it cannot be forgotten in their `clippy.toml`.
const IMPURE: &[&str] = &[
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::time::SystemTime",
    "std::time::Instant",
    "std::fs::File",
    "std::process::Command",
    "std::env::var",
    "std::thread::spawn",
    "std::println",
    "ring::rand::SystemRandom::new",
];

/// Features of serde_json that change what a document means, for every crate in the build.
const SERDE_JSON_OFF: &[&str] = &["preserve_order", "arbitrary_precision", "unbounded_depth"];

/// Returns notes on the counts, then findings: each rule that does not hold.
pub(crate) fn check(root: &Path) -> (Vec<String>, Vec<String>) {
    let files = files(root);
    let (mut notes, mut findings) = limits::compare(&counts(root, &files), &limits::table(root));
    notes.push(format!("words are counted in {} lines of comments", size::comment_lines(&files)));
    match subjects::check(root) {
        Ok(long) => findings.extend(long),
        Err(why) => notes.push(why),
    }
    match metadata(root) {
        Ok(metadata) => {
            let members = members(&metadata);
            findings.extend(arrows(&members));
            findings.extend(explained(root, &members));
            findings.extend(json_features(&metadata));
        }
        Err(why) => findings.push(why),
    }
    let sources = sources(root);
    findings.extend(sources.iter().flat_map(|path| source(root, path)));
    findings.extend(purity(root));
    findings.extend(requirements(root));
    findings.extend(second_reader(root));
    findings.extend(preimages(root, &sources));
    (notes, findings)
}

/// Returns every place that the count `key` found; `None` if there is no such count.
pub(crate) fn explain(root: &Path, key: &str) -> Option<Vec<String>> {
    counts(root, &files(root)).into_iter().find(|count| count.key == key).map(|count| count.lines)
}

/// Writes counts that are below their limit into the table.
pub(crate) fn lower_limits(root: &Path) -> Result<(), String> {
    limits::lower(root, &counts(root, &files(root)))
}

/// Returns lines of production code by crate, and lines of comments.
pub(crate) fn lines(root: &Path) -> (BTreeMap<String, usize>, usize) {
    let files = files(root);
    let crates = size::by_crate(&files).into_iter().map(|(member, lines)| (member.to_owned(), lines));
    (crates.collect(), size::comment_lines(&files))
}

/// Reads the files below `crates/*/src`.
fn files(root: &Path) -> Vec<Source> {
    sources(root).iter().filter_map(|path| Source::read(root, path)).collect()
}

fn counts(root: &Path, sources: &[Source]) -> Vec<Count> {
    let members: BTreeSet<&str> = sources.iter().map(|source| source.member.as_str()).collect();
    let mut counts = Vec::new();
    for member in members {
        let graph = Graph::of(sources.iter().filter(|source| source.member == member));
        counts.push(circles::count(member, &graph));
        counts.extend(rooms::count(member, &graph));
    }
    counts.extend(size::count(root, sources));
    counts.extend(words::count(sources));
    counts.extend(forbidden::count(sources));
    counts
}

fn metadata(root: &Path) -> Result<Value, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

struct Member {
    name: String,
    /// Name, and whether it is for development only.
    dependencies: Vec<(String, bool)>,
}

fn members(metadata: &Value) -> Vec<Member> {
    let ids: Vec<&str> = list(&metadata["workspace_members"]).filter_map(Value::as_str).collect();
    let packages = list(&metadata["packages"])
        .filter(|package| package["id"].as_str().is_some_and(|id| ids.contains(&id)));
    let member = |package: &Value| Member {
        name: text(&package["name"]),
        dependencies: list(&package["dependencies"])
            .map(|to| (text(&to["name"]), to["kind"] == "dev"))
            .collect(),
    };
    packages.map(member).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// No crate knows another that its row does not name.
fn arrows(members: &[Member]) -> Vec<String> {
    let ours: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let mut findings = Vec::new();
    for member in members {
        let Some((_, allowed)) = MAY_DEPEND_ON.iter().find(|(name, _)| *name == member.name) else {
            findings
                .push(format!("{} has no row in the crate table of xtask and ARCHITECTURE.md", member.name));
            continue;
        };
        for (to, is_dev) in &member.dependencies {
            if !is_dev && ours.contains(&to.as_str()) && !allowed.contains(&to.as_str()) {
                findings.push(format!(
                    "{} may not depend on {to}: the crate table has no such arrow",
                    member.name
                ));
            }
        }
    }
    findings
}

/// Every dependency says what it saves and what it costs.
fn explained(root: &Path, members: &[Member]) -> Vec<String> {
    let page = read(&root.join("docs/dependencies.md"));
    let ours: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
    let all = members.iter().flat_map(|member| &member.dependencies).map(|(name, _)| name.as_str());
    let mut foreign: Vec<&str> = all.filter(|name| !ours.contains(name)).collect();
    foreign.sort_unstable();
    foreign.dedup();
    let has_line = |name: &str| page.lines().any(|line| line.starts_with(&format!("| `{name}` |")));
    let missing = foreign.into_iter().filter(|name| !has_line(name));
    missing.map(|name| format!("{name} has no line in docs/dependencies.md")).collect()
}

fn json_features(metadata: &Value) -> Vec<String> {
    let nodes = list(&metadata["resolve"]["nodes"]);
    let json = nodes.filter(|node| node["id"].as_str().is_some_and(|id| id.contains("#serde_json@")));
    let on = json.flat_map(|node| list(&node["features"])).filter_map(Value::as_str);
    let on = on.filter(|feature| SERDE_JSON_OFF.contains(feature));
    on.map(|feature| format!("serde_json has its feature {feature} on, which changes what a document means"))
        .collect()
}

/// Every Rust file of ours.
fn sources(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.join("crates"), root.join("xtask"), root.join("fuzz")];
    while let Some(directory) = open.pop() {
        let Ok(entries) = fs::read_dir(&directory) else { continue };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn source(root: &Path, path: &Path) -> Vec<String> {
    // Taken apart so that this file does not find itself.
    let unfinished = [
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
        concat!("dbg", "!("),
        concat!("#[", "ignore"),
    ];
    let content = read(path);
    let name = path.strip_prefix(root).unwrap_or(path).display();
    let mut findings = Vec::new();
    for (at, line) in content.lines().enumerate() {
        for word in unfinished.iter().filter(|word| line.contains(**word)) {
            findings.push(format!("{name}:{}: {word} has no place here", at + 1));
        }
    }
    findings
}

fn purity(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for member in ["dendrer-object", "dendrer-kernel"] {
        let list = read(&root.join("crates").join(member).join("clippy.toml"));
        let missing = IMPURE.iter().filter(|path| !list.contains(&format!("path = \"{path}\"")));
        findings.extend(missing.map(|path| format!("crates/{member}/clippy.toml does not deny {path}")));
    }
    findings
}

/// Every owned requirement has a row with an answer, and every test that a row names is there.
fn requirements(root: &Path) -> Vec<String> {
    let page = read(&root.join("docs/requirements.md"));
    let mut findings = Vec::new();
    for (letter, ranges) in OWNED {
        for number in ranges.iter().flat_map(|(from, to)| *from..=*to) {
            let start = format!("| {letter}-{number} |");
            let answer =
                page.lines().find(|line| line.starts_with(&start)).and_then(|line| line.split('|').nth(3));
            if answer.is_none_or(|answer| answer.trim().is_empty()) {
                findings.push(format!("docs/requirements.md does not answer {letter}-{number}"));
            }
        }
    }
    // Between backticks there is every second piece.
    let named = page.split('`').skip(1).step_by(2).filter_map(|quoted| quoted.split_once("::"));
    for (file, function) in named.filter(|(file, _)| file.ends_with(".rs")) {
        let defined = read(&root.join(file)).contains(&format!("fn {function}("));
        if !defined {
            findings
                .push(format!("docs/requirements.md names {file}::{function}, and there is no such test"));
        }
    }
    findings
}

/// Every tag that a preimage of a digest begins with stands in the page that says these are all.
fn preimages(root: &Path, sources: &[PathBuf]) -> Vec<String> {
    let page = read(&root.join("docs/format.md"));
    let mut tags = BTreeSet::new();
    for path in sources.iter().filter(|path| path.components().any(|part| part.as_os_str() == "src")) {
        for part in read(path).split("\"dendrer/").skip(1) {
            tags.extend(
                part.split_once("/v1\\n")
                    .map(|(name, _)| name.to_owned())
                    .filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || "-/".contains(c))),
            );
        }
    }
    let is_missing = |tag: &&String| !page.contains(&format!("dendrer/{tag}/v1"));
    tags.iter()
        .filter(is_missing)
        .map(|tag| format!("docs/format.md does not name dendrer/{tag}/v1"))
        .collect()
}

/// A second reader is only worth something if a person can read it at one sitting.
fn second_reader(root: &Path) -> Vec<String> {
    let text = read(&root.join("docs/verify.py"));
    let (lines, widest) =
        (text.lines().count(), text.lines().map(|line| line.chars().count()).max().unwrap_or(0));
    let fits = (1..=240).contains(&lines) && widest <= 100;
    if fits {
        Vec::new()
    } else {
        vec![format!("docs/verify.py has {lines} lines of up to {widest} characters; at most 240 of 100")]
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
