//! A forger of bundles and stores, with the signing key and without it.
//!
//! The attacks by name make the tables of `docs/testing.md`, which a change of a verdict changes (`DENDRER_UPDATE=1` writes
//! them). The drawn edits have the same limits: no forgery is VERIFIED, and without the key none is INTACT and COMPLETE with a
//! record less. 300 of them go through `docs/verify.py` as well.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::print_stdout, reason = "figures with --nocapture")]
#![expect(clippy::print_stderr, reason = "a skipped test must say so loudly")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use dendrer::bundle::{self, Opened};
use dendrer::evidence::shown::ShownTree;
use dendrer::object::record::Kind;
use dendrer::object::{Code, Digest};
use dendrer::run::trace::Trace;
use dendrer::verify::facts::ComparedWord;
use dendrer::verify::judge::{VerifiedLog, chains_of, compare_histories};
use dendrer::verify::{self, VerifyReport, VerifyTerms, VerifyVerdict};
use dendrer_testkit::forger::{ATTACKS, Attack, DrawnForgery, Handed, How, Means, Stock, draw};
use dendrer_testkit::{Dice, records_of};

/// The verdict on what was handed over.
struct Judged {
    report: Result<VerifyReport, Code>,
    opened: Option<Opened>,
}

impl Judged {
    fn verdict(&self) -> VerifyVerdict {
        self.report.as_ref().map_or(VerifyVerdict::Malformed, |report| report.verdict)
    }

    fn is_complete(&self) -> bool {
        self.report.as_ref().is_ok_and(|report| report.whole.is_complete())
    }

    /// Writes the cell of a table: the verdict, and the codes and words that tell it.
    fn cell(&self) -> String {
        let report = match &self.report {
            Ok(report) => report,
            Err(code @ (Code::E0803 | Code::E0811)) => return format!("not read {code}"),
            Err(code) => return format!("MALFORMED {code}"),
        };
        let mut cell = report.verdict.to_string();
        let mut codes: Vec<Code> = Vec::new();
        for finding in &report.findings {
            if !codes.contains(&finding.code) {
                codes.push(finding.code);
            }
        }
        codes.iter().take(3).for_each(|code| write!(cell, " {code}").unwrap());
        if report.verdict <= VerifyVerdict::Unverifiable {
            let whys: BTreeSet<&str> = report.whole.partial.iter().map(|run| run.why.as_str()).collect();
            match report.whole.is_complete() {
                true => cell.push_str(", COMPLETE"),
                false => write!(cell, ", {}", whys.into_iter().collect::<Vec<_>>().join(" ")).unwrap(),
            }
            let notes: BTreeSet<&str> = report.notes.iter().map(|note| note.code.as_str()).collect();
            notes.iter().for_each(|note| write!(cell, ", {note}").unwrap());
            let is_open = report.compared.as_ref().is_some_and(|log| log.word == ComparedWord::NotCompared);
            cell.push_str(if is_open { ", NOT COMPARED" } else { "" });
            let is_foreign = !report.is_key_known;
            cell.push_str(if is_foreign { ", another key" } else { "" });
        }
        cell
    }
}

fn judge(text: &[u8], terms: &VerifyTerms) -> Judged {
    match bundle::open(PathBuf::from("forged.dnd"), text) {
        Ok(opened) => {
            let report = verify::bundle(&opened, terms).unwrap();
            Judged { report: Ok(report), opened: Some(opened) }
        }
        Err(error) => Judged { report: Err(error.code()), opened: None },
    }
}

/// The terms of a reader who has the key of the log from elsewhere.
fn known(stock: &Stock) -> VerifyTerms {
    VerifyTerms { keys: vec![stock.info.key.clone()], ..VerifyTerms::default() }
}

/// The terms of a reader who has kept the honest checkpoint as well.
fn kept(stock: &Stock) -> VerifyTerms {
    let tree = stock.log(0).tree();
    VerifyTerms { checkpoints: vec![(tree.size, tree.root)], ..known(stock) }
}

/// The honest records of a bundle that a reader of the forged one has no equal of: of the runs that the answer is about, of what
/// they branched off from, and of the log, up to the size that the checkpoint covers.
fn missing(stock: &Stock, base: usize, judged: &Judged) -> usize {
    let (Ok(report), Some(opened)) = (&judged.report, &judged.opened) else { return 0 };
    let mut about: BTreeSet<String> = BTreeSet::new();
    for run in &report.runs {
        about.insert(run.run.to_string());
        if let Ok(trace) = Trace::open(&opened.store, &run.run) {
            about.extend(trace.lineage().iter().map(|(run, _)| run.to_string()));
        }
    }
    let is_due = |run: Option<&str>, kind| run.map_or(kind != Kind::Map, |run| about.contains(run));
    let due = stock.bundles[base].positions().filter(|(position, entry)| {
        *position < opened.bundle.size
            && is_due(entry.run.as_ref().map(dendrer::object::RunName::as_str), entry.kind)
    });
    due.filter(|(_, entry)| opened.store.find(&entry.hash).unwrap().is_none()).count()
}

/// Whether each record that opens is an honest one.
fn is_honest(honest: &BTreeSet<Digest>, judged: &Judged) -> bool {
    let Some(opened) = &judged.opened else { return true };
    opened.bundle.positions().all(|(_, entry)| honest.contains(&entry.hash))
}

fn ids(stock: &Stock) -> BTreeSet<Digest> {
    stock.records.iter().map(dendrer::object::Record::id).collect()
}

/// Compares a forged bundle with the honest one, as `verify` does of two logs of one key.
fn compared(stock: &Stock, base: usize, text: &[u8]) -> String {
    let honest = stock.bundles[base].write(&|_| vec![0]);
    let log = |text: &[u8]| {
        let judged = judge(text, &known(stock));
        let (Ok(report), Some(opened)) = (judged.report, judged.opened) else { return None };
        let runs = report.runs.iter().map(|run| run.run.clone()).collect();
        let info = opened.store.info();
        Some(VerifiedLog {
            name: "a.dnd".to_owned(),
            report,
            is_bundle: true,
            is_whole: true,
            of: Some((info.id, info.key.clone())),
            chains: chains_of(&opened.store, &runs),
            shown: ShownTree::of_bundle(&opened.bundle),
        })
    };
    let (Some(mut forged), Some(mut honest)) = (log(text), log(&honest)) else { return "-".to_owned() };
    compare_histories(&mut [&mut forged, &mut honest]);
    forged.report.compared.map_or_else(|| "-".to_owned(), |compared| compared.word.to_string())
}

const HEAD: [&str; 4] = ["attack", "edited", "sealed again", "signed again"];

/// Makes the table of bundles, and holds each cell against what no forger may achieve.
fn table_of_bundles(stock: &Stock) -> String {
    let honest = ids(stock);
    let mut table = format!(
        "| {} | a checkpoint was kept | signed again, beside the honest bundle |\n|{}\n",
        HEAD.join(" | "),
        " --- |".repeat(6)
    );
    for attack in ATTACKS {
        let mut row = format!("| {} |", attack.name);
        for means in [Means::Edits, Means::Seals, Means::Signs] {
            if !attack.means.contains(&means) {
                row.push_str(" - |");
                continue;
            }
            let judged = judge(&attack.bundle(stock, means), &known(stock));
            check(stock, attack.base(), &honest, means, &judged, attack.name);
            write!(row, " {} |", judged.cell()).unwrap();
        }
        if attack.means.contains(&Means::Signs) {
            let text = attack.bundle(stock, Means::Signs);
            let judged = judge(&text, &kept(stock));
            check(stock, attack.base(), &honest, Means::Signs, &judged, attack.name);
            writeln!(table, "{row} {} | {} |", judged.cell(), compared(stock, attack.base(), &text)).unwrap();
        } else {
            let judged = judge(&attack.bundle(stock, *attack.means.last().unwrap()), &kept(stock));
            writeln!(table, "{row} {} | - |", judged.cell()).unwrap();
        }
    }
    table
}

/// Holds a verdict against the limits of every forger.
fn check(stock: &Stock, base: usize, honest: &BTreeSet<Digest>, means: Means, judged: &Judged, what: &str) {
    let verdict = judged.verdict();
    let (missing, is_honest) = (missing(stock, base, judged), is_honest(honest, judged));
    let is_forged = missing > 0 || !is_honest;
    assert!(!(verdict == VerifyVerdict::Verified && is_forged), "VERIFIED: {what}");
    if means < Means::Signs && verdict <= VerifyVerdict::Unverifiable {
        let is_other_key = judged.report.as_ref().is_ok_and(|report| !report.is_key_known);
        assert!(is_other_key || is_honest, "{verdict} without the key, and a record is another: {what}");
        assert!(
            !(judged.is_complete() && missing > 0) || is_other_key,
            "{verdict} and COMPLETE, and {missing} records are missing: {what}"
        );
    }
}

/// Makes the table of stores, whose reader has every entry.
fn table_of_stores(stock: &Stock) -> String {
    let mut table = format!("| {} | a checkpoint was kept |\n|{}\n", HEAD.join(" | "), " --- |".repeat(5));
    for attack in ATTACKS.iter().filter(|attack| attack.of_stores) {
        let judged = |means, terms: &VerifyTerms| {
            let store = attack.log(stock, How { means, handed: Handed::Store }).store();
            let judged = Judged { report: Ok(verify::store(&store, terms).unwrap()), opened: None };
            let records = records_of(&store);
            let is_less =
                stock.records.iter().any(|record| records.iter().all(|one| one.id() != record.id()));
            let verdict = judged.verdict();
            assert_ne!(verdict, VerifyVerdict::Verified, "{}", attack.name);
            let is_other_key = judged.report.as_ref().is_ok_and(|report| !report.is_key_known);
            // A log that ends earlier is what was signed then: only a checkpoint that was kept shows it.
            let is_told = terms.checkpoints.is_empty() || verdict == VerifyVerdict::Unverifiable;
            let is_older = records.len() == stock.older_size() && is_told;
            assert!(
                means == Means::Signs
                    || !is_less
                    || is_other_key
                    || is_older
                    || !(judged.is_complete() && verdict <= VerifyVerdict::Unverifiable),
                "{verdict} and COMPLETE without the key: {}",
                attack.name
            );
            judged.cell()
        };
        let cell = |means| {
            if attack.means.contains(&means) { judged(means, &known(stock)) } else { "-".to_owned() }
        };
        let last = judged(*attack.means.last().unwrap(), &kept(stock));
        let cells = [cell(Means::Edits), cell(Means::Seals), cell(Means::Signs), last];
        writeln!(table, "| {} | {} |", attack.name, cells.join(" | ")).unwrap();
    }
    table
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Compares a part of `docs/testing.md` with what it must be, or writes it.
fn check_page(name: &str, made: &str) {
    let path = docs().join("testing.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->\n"));
    let (before, rest) = page.split_once(&begin).expect("the page has the part");
    let (found, after) = rest.split_once(&end).expect("the part ends");
    if std::env::var_os("DENDRER_UPDATE").is_some() {
        std::fs::write(&path, format!("{before}{begin}{made}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(found, made, "the part \"{name}\" of docs/testing.md; DENDRER_UPDATE=1 writes it");
}

/// Both tables are in one page, so one test writes them.
#[test]
fn each_attack_has_the_verdict_of_the_page() {
    let stock = Stock::new();
    for (base, bundle) in stock.bundles.iter().enumerate() {
        let judged = judge(&bundle.write(&|_| vec![0]), &kept(&stock));
        let expected = if base < 3 { VerifyVerdict::Verified } else { VerifyVerdict::Unverifiable };
        assert_eq!(judged.verdict(), expected, "bundle {base}: {}", judged.cell());
        assert_eq!(missing(&stock, base, &judged), 0);
    }
    check_page("attacks on bundles", &table_of_bundles(&stock));
    check_page("attacks on stores", &table_of_stores(&stock));
}

/// How many forgeries are drawn: `DENDRER_FORGERIES`, or enough to see what a change broke.
fn forgeries() -> usize {
    std::env::var("DENDRER_FORGERIES").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

fn drawn(stock: &Stock, seed: u64, count: usize) -> impl Iterator<Item = (usize, DrawnForgery)> {
    let mut dice = Dice(seed);
    (0..count).map(move |at| (at, draw(stock, &mut dice)))
}

#[test]
fn no_drawn_forgery_is_verified_and_none_without_the_key_is_complete_with_less() {
    let (stock, count) = (Stock::new(), forgeries());
    let (honest, terms) = (ids(&stock), kept(&stock));
    let judge_part = |part: usize| {
        let mut verdicts: BTreeMap<VerifyVerdict, usize> = BTreeMap::new();
        let seed = 20_261_129 + part as u64;
        for (at, drawn) in drawn(&stock, seed, count / 2) {
            let judged = judge(&drawn.text, &terms);
            let what = format!("edit {at} of seed {seed}: {}", drawn.what);
            check(&stock, drawn.base, &honest, drawn.means, &judged, &what);
            *verdicts.entry(judged.verdict()).or_default() += 1;
        }
        verdicts
    };
    let parts = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..2).map(|part| scope.spawn(move || judge_part(part))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).collect::<Vec<_>>()
    });
    let mut all: BTreeMap<VerifyVerdict, usize> = BTreeMap::new();
    parts.iter().flatten().for_each(|(verdict, number)| *all.entry(*verdict).or_default() += number);
    println!("deep: forger {count}");
    println!("{all:?}");
    for verdict in [VerifyVerdict::Intact, VerifyVerdict::Unverifiable, VerifyVerdict::Tampered] {
        let found = all.get(&verdict).copied().unwrap_or(0);
        assert!(found > count / 100, "{found} of {count} edits are {verdict}: they show nothing");
    }
}

/// Judges bundles in one process: their lengths and texts on standard input, one digit for each.
const DRIVER: &str = r#"
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import verify
out, data = [], sys.stdin.buffer
while line := data.readline():
    text = data.read(int(line))
    try: out.append(str(verify.check(text)[0]))
    except Exception: out.append("4")
print("".join(out))
"#;

#[test]
fn the_second_reader_refuses_the_same_forgeries() {
    let stock = Stock::new();
    let named = |attack: &'static Attack| {
        let bundle = |means: &Means| (format!("{}, {means:?}", attack.name), attack.bundle(&stock, *means));
        attack.means.iter().map(bundle).collect::<Vec<_>>()
    };
    let mut forged: Vec<(String, Vec<u8>)> = ATTACKS.iter().flat_map(named).collect();
    forged.extend(drawn(&stock, 7, 300).map(|(_, drawn)| (drawn.what, drawn.text)));
    let python = std::env::var("DENDRER_PYTHON");
    let command = python.clone().unwrap_or_else(|_| "python3".to_owned());
    let works = Command::new(&command).args(["-c", "import cryptography"]).stderr(Stdio::null()).status();
    if !works.is_ok_and(|status| status.success()) {
        assert!(python.is_err(), "DENDRER_PYTHON has no cryptography");
        eprintln!("SKIPPED: no python3 with the package cryptography");
        return;
    }
    let mut child = Command::new(&command)
        .args(["-c", DRIVER, docs().to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for (_, text) in &forged {
        writeln!(input, "{}", text.len()).unwrap();
        input.write_all(text).unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let there = String::from_utf8(output.stdout).unwrap();
    assert_eq!(there.trim().len(), forged.len());
    for ((what, text), there) in forged.iter().zip(there.bytes()) {
        let judged = judge(text, &VerifyTerms::default());
        let here = match (judged.verdict(), &judged.report) {
            (_, Err(Code::E0803 | Code::E0811)) | (VerifyVerdict::Unverifiable, _) => b'6',
            (VerifyVerdict::Verified | VerifyVerdict::Intact, _) => b'0',
            _ => b'4',
        };
        assert_eq!(here, there, "{what}: {}, and verify.py says {}", judged.cell(), there as char);
    }
}
