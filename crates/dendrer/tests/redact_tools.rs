//! Redaction on texts as tools print them, written by another hand than the rules (witness-log paper 2.4).
//!
//! `DENDRER_SHOW=1` prints the texts that fail, two of each template; `DENDRER_SEED=7` draws others.

#![expect(clippy::print_stdout, reason = "the figures of docs/redaction.md")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use dendrer::redact::{PackRules, RedactionProfile, Redactor, SecretSpan};
use dendrer_object::{Value, json};
use dendrer_testkit::tool_outputs::{TextClass, ToolText, harmless_cases, secret_cases};

/// Least share of secrets that are redacted, in thousandths, by class and over all. A limit only rises, to at least 990,
/// 970, 900 and 600, and 950 over all.
const RECALL: [(TextClass, u64); 4] =
    [(TextClass::Vendor, 990), (TextClass::Named, 970), (TextClass::Disguised, 940), (TextClass::Prose, 900)];
const RECALL_ALL: u64 = 970;

/// Least share of hits that overlap a secret, in thousandths, over texts with secrets. It only rises; at least 970.
const PRECISION: u64 = 983;

/// Largest share of look-alikes of which a part is redacted, in thousandths. It only falls, to at most 5.
const DAMAGED: u64 = 5;

/// Most hits in 10,000 lines of source code, in hundredths: the standard library of Python 3.11, the crates of `Cargo.lock`
/// that are unpacked. They only fall, to at most 100.
const PYTHON_HITS: u64 = 100;
const RUST_HITS: u64 = 100;
const BINDINGS_HITS: u64 = 3000;

/// A rest of a secret that is shorter is no help to find it.
const REST: usize = 4;

/// Texts that are drawn: each template about seven times.
const SECRET_TEXTS: usize = 4_000;
const HARMLESS_TEXTS: usize = 2_000;

#[derive(Debug, Default)]
struct Score {
    secrets: u64,
    taken: u64,
    hits: u64,
    false_hits: u64,
    /// Characters that were redacted outside of secrets and optional parts.
    spilled: u64,
}

impl Score {
    fn add(&mut self, other: &Self) {
        self.secrets += other.secrets;
        self.taken += other.taken;
        self.hits += other.hits;
        self.false_hits += other.false_hits;
        self.spilled += other.spilled;
    }

    fn recall(&self) -> u64 {
        self.taken * 1000 / self.secrets.max(1)
    }

    fn precision(&self) -> u64 {
        (self.hits - self.false_hits) * 1000 / self.hits.max(1)
    }
}

/// Texts that fail, by template: at most two of each are printed.
#[derive(Debug, Default)]
struct Failures {
    by_template: BTreeMap<String, Vec<String>>,
}

impl Failures {
    fn add(&mut self, case: &ToolText, why: &str, made: &str) {
        let template = case.name.split(' ').next().unwrap_or_default().to_owned();
        let text = format!("{why}: {}\n{}\n  ->\n{made}\n", case.name, case.text);
        self.by_template.entry(template).or_default().push(text);
    }

    fn print(&self) {
        if std::env::var_os("DENDRER_SHOW").is_none() {
            return;
        }
        for (template, texts) in &self.by_template {
            println!("---- {template}: {} failed", texts.len());
            for text in texts.iter().take(2) {
                println!("{text}");
            }
        }
    }
}

fn redactor() -> Redactor {
    Redactor::new(RedactionProfile::Default, &PackRules::default(), &[], None).unwrap()
}

fn seed() -> u64 {
    std::env::var("DENDRER_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// Returns whether no run of [`REST`] characters of a secret is outside of the hits.
fn is_taken(text: &str, parts: &[Range<usize>], found: &[SecretSpan]) -> bool {
    let mut rest = 0;
    let characters = parts.iter().flat_map(|part| part.clone()).filter(|at| text.is_char_boundary(*at));
    for at in characters {
        let is_found = found.iter().any(|span| span.start <= at && at < span.end);
        rest = if is_found { 0 } else { rest + 1 };
        if rest >= REST {
            return false;
        }
    }
    true
}

fn overlaps(span: &SecretSpan, ranges: &[Range<usize>]) -> bool {
    ranges.iter().any(|range| span.start < range.end && range.start < span.end)
}

/// Compares the hits of a text with its secrets.
fn score(case: &ToolText, found: &[SecretSpan], failures: &mut Failures, made: &str) -> Score {
    let mut score = Score { hits: found.len() as u64, ..Score::default() };
    for parts in &case.secrets {
        score.secrets += 1;
        if is_taken(&case.text, parts, found) {
            score.taken += 1;
        } else {
            failures.add(case, "left", made);
        }
    }
    let mut allowed: Vec<Range<usize>> = case.secrets.concat();
    allowed.extend(case.optional.iter().cloned());
    for span in found {
        if !overlaps(span, &allowed) {
            score.false_hits += 1;
            failures.add(case, &format!("false hit {:?}", &case.text[span.start..span.end]), made);
        }
        let outside = |at: &usize| !allowed.iter().any(|range| range.contains(at));
        score.spilled += (span.start..span.end).filter(outside).count() as u64;
    }
    score
}

/// Writes the texts for other programs, if `scripts/bench-secrets.sh` asks for it.
fn write_texts() {
    let Some(folder) = std::env::var_os("DENDRER_TOOL_TEXTS_TO").map(PathBuf::from) else { return };
    let redactor = redactor();
    let mut labels = String::new();
    let cases = secret_cases(seed(), SECRET_TEXTS).into_iter().chain(harmless_cases(seed(), HARMLESS_TEXTS));
    for (number, case) in cases.enumerate() {
        let file = format!("{number:05}.txt");
        std::fs::write(folder.join(&file), format!("{}\n", case.text)).unwrap();
        let class = Some(case.class.name()).filter(|_| !case.secrets.is_empty()).map(Value::from);
        let label = Value::record([
            ("class", class.unwrap_or(Value::Null)),
            ("dendrer", Value::from(!redactor.find(&case.text).is_empty())),
            ("file", Value::from(file)),
        ]);
        labels.push_str(&format!("{}\n", json::to_string(&label)));
    }
    std::fs::write(folder.join("labels.jsonl"), labels).unwrap();
}

/// W-34 to W-38, W-77, W-78, on texts that the rules were not written with.
#[test]
fn secrets_of_forty_tools_are_taken() {
    write_texts();
    let redactor = redactor();
    let mut failures = Failures::default();
    let mut scores: BTreeMap<TextClass, Score> = BTreeMap::new();
    for case in secret_cases(seed(), SECRET_TEXTS) {
        let found = redactor.find(&case.text);
        let (made, _) = redactor.text(&case.text);
        scores.entry(case.class).or_default().add(&score(&case, &found, &mut failures, &made));
    }
    failures.print();
    let mut all = Score::default();
    println!("{:10} {:>8} {:>8} {:>9} {:>8}", "class", "secrets", "recall", "precision", "spilled");
    for (class, score) in &scores {
        all.add(score);
        print_score(class.name(), score);
    }
    print_score("all", &all);
    for (class, limit) in RECALL {
        let recall = scores[&class].recall();
        assert!(recall >= limit, "{}: {recall} of 1000 secrets are taken, limit {limit}", class.name());
    }
    assert!(all.recall() >= RECALL_ALL, "{} of 1000 secrets are taken", all.recall());
    assert!(all.precision() >= PRECISION, "{} of 1000 hits are secrets", all.precision());
}

fn print_score(name: &str, score: &Score) {
    let (recall, precision) = (score.recall() as f64 / 1000.0, score.precision() as f64 / 1000.0);
    println!("{name:10} {:8} {recall:8.3} {precision:9.3} {:8}", score.secrets, score.spilled);
}

#[test]
fn look_alikes_of_forty_tools_stay() {
    let redactor = redactor();
    let mut failures = Failures::default();
    let mut damaged = 0;
    let cases = harmless_cases(seed(), HARMLESS_TEXTS);
    for case in &cases {
        let found = redactor.find(&case.text);
        if !found.is_empty() {
            damaged += 1;
            let hits: Vec<&str> = found.iter().map(|span| &case.text[span.start..span.end]).collect();
            failures.add(case, &format!("false hits {hits:?}"), &redactor.text(&case.text).0);
        }
    }
    failures.print();
    let share = damaged * 1000 / cases.len() as u64;
    println!("look-alikes: {damaged} of {} damaged", cases.len());
    assert!(share <= DAMAGED, "{share} of 1000 look-alikes are damaged");
}

/// What is printed is redacted again when it is read and recorded: nothing more may go then.
#[test]
fn redacting_a_redacted_text_takes_nothing_more() {
    let redactor = redactor();
    let mut differ = 0;
    for case in secret_cases(seed() + 1, 1_000) {
        let made = redactor.text(&case.text).0;
        let (again, taken) = redactor.text(&made);
        if again != made || !taken.is_empty() {
            differ += 1;
            if std::env::var_os("DENDRER_SHOW").is_some() {
                println!("{}\n{made}\n  ->\n{again}\n", case.name);
            }
        }
    }
    assert_eq!(differ, 0, "of 1000 texts");
}

/// Counts the hits in files, and prints those that are asked for.
fn hits_in(files: &[PathBuf]) -> (u64, u64) {
    let redactor = redactor();
    let (mut lines, mut hits) = (0, 0);
    for file in files {
        // A few files of the test data of Python are not UTF-8.
        let text = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
        lines += text.lines().count() as u64;
        for span in redactor.find(&text) {
            hits += 1;
            if std::env::var_os("DENDRER_SHOW").is_some() {
                let number = text[..span.start].matches('\n').count();
                let line = text.lines().nth(number).unwrap_or_default();
                let hit = &text[span.start..span.end];
                println!("{}:{}: {hit:?} ({}) in {line}", file.display(), number + 1, span.kind);
            }
        }
    }
    (hits, lines)
}

fn check_source(name: &str, files: &[PathBuf], limit: u64) {
    let (hits, lines) = hits_in(files);
    let per = hits * 1_000_000 / lines.max(1);
    let shown = per as f64 / 100.0;
    println!("{name}: {hits} hits in {lines} lines of {} files: {shown} in 10,000 lines", files.len());
    assert!(lines > 0, "{name} has no line");
    assert!(per <= limit, "{name}: {shown} hits in 10,000 lines");
}

/// Adds the files below a folder that end in `.py`, without installed packages.
fn python_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("site-packages") && !path.ends_with("dist-packages") {
            python_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            files.push(path);
        }
    }
}

#[test]
fn source_code_of_python_stays() {
    let print = r#"import sysconfig; print(sysconfig.get_paths()["stdlib"])"#;
    let Ok(output) = Command::new("python3").args(["-c", print]).output() else {
        println!("SKIPPED: source_code_of_python_stays: no python3");
        return;
    };
    let folder = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    if !folder.is_dir() {
        println!("SKIPPED: source_code_of_python_stays: no folder {}", folder.display());
        return;
    }
    let mut files = Vec::new();
    python_files(&folder, &mut files);
    files.sort();
    check_source("python", &files, PYTHON_HITS);
}

/// Returns the folders of the crates in `Cargo.lock` that are unpacked.
fn crate_folders() -> Vec<PathBuf> {
    let lock =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock")).unwrap();
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let registries = home.and_then(|home| std::fs::read_dir(home.join("registry/src")).ok());
    let registries: Vec<PathBuf> =
        registries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    let value = |line: &str, key: &str| Some(line.strip_prefix(key)?.trim_matches('"').to_owned());
    let mut folders = Vec::new();
    let lines: Vec<&str> = lock.lines().collect();
    for two in lines.windows(2) {
        let (Some(name), Some(version)) = (value(two[0], "name = "), value(two[1], "version = ")) else {
            continue;
        };
        let places = registries.iter().map(|registry| registry.join(format!("{name}-{version}")));
        folders.extend(places.filter(|place| place.is_dir()));
    }
    folders
}

fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Returns the source files of the crates that are unpacked, of bindings to Windows or of all others. Cargo unpacks those
/// bindings only where a command asks for all platforms, and they are long lists of constants.
fn all_rust_files(bindings: bool) -> Vec<PathBuf> {
    let is_bindings =
        |folder: &Path| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("windows"));
    let mut files = Vec::new();
    for folder in crate_folders().iter().filter(|folder| is_bindings(folder) == bindings) {
        rust_files(folder, &mut files);
    }
    files.sort();
    files
}

#[test]
fn source_code_of_rust_stays() {
    for (name, bindings, limit) in [("rust", false, RUST_HITS), ("bindings", true, BINDINGS_HITS)] {
        match all_rust_files(bindings) {
            files if files.len() >= 100 => check_source(name, &files, limit),
            _ => println!(
                "SKIPPED: source_code_of_rust_stays: {name} of Cargo.lock not in ~/.cargo/registry/src"
            ),
        }
    }
}
