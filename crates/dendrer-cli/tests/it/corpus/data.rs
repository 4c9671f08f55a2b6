//! The corpus beside the workspace, and the packs that speak of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use dendrer_object::{Object, Value, json};

use super::say;
use crate::support::Place;

/// The published runs, in a directory beside the workspace.
pub(super) struct Corpus {
    directory: PathBuf,
}

/// The corpus, or nothing where it is not, or cannot be read: then it is said that nothing was tested.
pub(super) fn corpus() -> Option<Corpus> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if !directory.join("runs.jsonl").is_file() {
        say(&format!("SKIPPED: no corpus at {}\n", directory.display()));
        return None;
    }
    let works = Command::new(python()).args(["-c", "import yaml"]).output();
    if works.is_ok_and(|output| output.status.success()) {
        return Some(Corpus { directory });
    }
    assert!(
        std::env::var_os("DENDRER_PYTHON").is_none(),
        "DENDRER_PYTHON is {}, and has no PyYAML",
        python()
    );
    say("SKIPPED: no python3 with the package PyYAML; scripts/test.sh installs it\n");
    None
}

/// What a run is about, which decides its pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    Airline,
    Retail,
    Banking,
    Slack,
    Workspace,
    Log,
}

/// A published run.
pub(super) struct Run {
    directory: PathBuf,
    /// Its file in the corpus.
    pub(super) file: String,
    /// How many ticks it has.
    pub(super) n: u64,
    /// The hash of the environment before the first tick, where one is rebuilt.
    pub(super) env_s0: Option<String>,
    /// The ticks that changed the environment, each with its hash after it.
    pub(super) env_changes: Vec<(u64, String)>,
    /// What is asked of it.
    pub(super) cases: Vec<Case>,
}

/// A question with its answer.
pub(super) struct Case {
    /// Its place among all.
    pub(super) at: usize,
    pub(super) predicate: String,
    pub(super) words: String,
    pub(super) onset: Option<u64>,
    pub(super) class: String,
    pub(super) monotone: bool,
    pub(super) intervals: Vec<[u64; 2]>,
    /// Whether a person read the run and judged the onset.
    pub(super) audited: bool,
}

impl Corpus {
    /// The lines of one of its tables.
    pub(super) fn lines(&self, table: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.directory.join(table)).unwrap();
        text.lines().map(|line| json::parse_door(line.as_bytes()).unwrap()).collect()
    }

    /// The runs of a domain, those with most to do first.
    pub(super) fn runs(&self, domain: Domain) -> Vec<Run> {
        let mut cases: BTreeMap<String, Vec<Case>> = BTreeMap::new();
        let audited: Vec<String> = self.lines("audited.jsonl").iter().map(|line| text(line, "id")).collect();
        for (place, line) in self.lines("expected.jsonl").iter().enumerate() {
            let audited = audited.contains(&text(line, "id"));
            cases.entry(text(line, "file")).or_default().push(Case { audited, ..Case::of(place, line) });
        }
        let lines = self.lines("runs.jsonl");
        let mine = lines.iter().filter(|line| text(line, "domain") == domain.name());
        let run = |line: &Value| {
            let file = text(line, "file");
            Run {
                directory: self.directory.clone(),
                n: line.get("n").and_then(Value::as_u64).unwrap(),
                env_s0: line.get("env_sha256_s0").and_then(Value::as_str).map(str::to_owned),
                env_changes: items(line.get("env_changes")).map(change).collect(),
                cases: cases.remove(&file).unwrap_or_default(),
                file,
            }
        };
        let mut runs: Vec<Run> = mine.map(run).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.n));
        runs
    }
}

impl Run {
    pub(super) fn path(&self) -> PathBuf {
        self.directory.join(&self.file)
    }
}

impl Case {
    fn of(place: usize, line: &Value) -> Case {
        let number = |value: &Value| value.as_u64().unwrap();
        let interval = |value: &Value| [number(&at(value, 0)), number(&at(value, 1))];
        Case {
            at: place,
            predicate: text(line, "predicate"),
            words: text(line, "words"),
            onset: line.get("onset").and_then(Value::as_u64),
            class: text(line, "class"),
            monotone: line.get("monotone").and_then(Value::as_bool).unwrap(),
            intervals: items(line.get("intervals")).map(interval).collect(),
            audited: false,
        }
    }
}

fn change(value: &Value) -> (u64, String) {
    (at(value, 0).as_u64().unwrap(), at(value, 1).as_str().unwrap().to_owned())
}

pub(super) fn at(value: &Value, index: usize) -> Value {
    value.as_array().and_then(|items| items.get(index)).cloned().unwrap()
}

pub(super) fn items(value: Option<&Value>) -> impl Iterator<Item = &Value> {
    value.and_then(Value::as_array).into_iter().flat_map(|items| items.iter())
}

pub(super) fn text(value: &Value, member: &str) -> String {
    value.get(member).and_then(Value::as_str).unwrap_or_default().to_owned()
}

impl Domain {
    pub(super) const ALL: [Domain; 6] =
        [Domain::Airline, Domain::Retail, Domain::Banking, Domain::Slack, Domain::Workspace, Domain::Log];

    /// What the corpus calls it.
    fn name(self) -> &'static str {
        match self {
            Domain::Airline => "airline",
            Domain::Retail => "retail",
            Domain::Banking => "banking",
            Domain::Slack => "slack",
            Domain::Workspace => "workspace",
            Domain::Log => "log",
        }
    }

    /// The pack with its rules and predicates.
    pub(super) fn pack(self) -> PathBuf {
        let file = match self {
            Domain::Airline | Domain::Retail => format!("tau-{}.yaml", self.name()),
            Domain::Banking | Domain::Slack | Domain::Workspace => format!("agentdojo-{}.yaml", self.name()),
            Domain::Log => "who-and-when.yaml".to_owned(),
        };
        packs().join(file)
    }

    /// The state before the first tick, as JSON; nothing where no environment is rebuilt.
    pub(super) fn s0(self, run: &Run) -> Option<Vec<u8>> {
        match self {
            Domain::Airline | Domain::Retail => {
                let directory = run.directory.join(format!("tau-{}/data/db", self.name()));
                let mut tables = Object::default();
                for entry in std::fs::read_dir(directory).unwrap() {
                    let path = entry.unwrap().path();
                    let table = json::parse_door(&std::fs::read(&path).unwrap()).unwrap();
                    tables.set(path.file_stem().unwrap().to_str().unwrap(), table);
                }
                Some(json::to_vec(&Value::Object(tables)))
            }
            Domain::Banking | Domain::Slack => {
                let suite = run.directory.join(format!("agentdojo/data/env-2024-06/{}", self.name()));
                let mut made = Command::new(python());
                made.arg(packs().join("prepare.py")).arg("agentdojo").arg(run.path()).arg(suite);
                let made = made.output().unwrap();
                assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
                Some(made.stdout)
            }
            Domain::Workspace | Domain::Log => None,
        }
    }

    /// The predicates that the pack declares with their words, in the order of the file.
    pub(super) fn predicates(self) -> Vec<(String, String)> {
        let pack = self.shown();
        let names = order_of_predicates(&std::fs::read_to_string(self.pack()).unwrap());
        let predicates = pack.get("predicates").unwrap();
        names.into_iter().map(|name| (name.clone(), text(predicates.get(&name).unwrap(), "words"))).collect()
    }

    /// The tools that the pack declares.
    pub(super) fn tools(self) -> Vec<String> {
        let tools = self.shown().get("tools").and_then(Value::as_object).cloned().unwrap_or_default();
        tools.iter().map(|(name, _)| name.to_string()).collect()
    }

    /// What a predicate of the pack says must hold.
    pub(super) fn holds(self, predicate: &str) -> String {
        let pack = self.shown();
        text(pack.get("predicates").and_then(|all| all.get(predicate)).unwrap(), "holds")
    }

    /// The pack as the program reads it.
    fn shown(self) -> &'static Value {
        static SHOWN: OnceLock<BTreeMap<&str, Value>> = OnceLock::new();
        let shown = SHOWN.get_or_init(|| {
            let place = Place::new();
            let show = |domain: Domain| {
                let (code, said) = place.json(&["pack", "show", domain.pack().to_str().unwrap()]);
                assert_eq!(code, 0, "{said}");
                (domain.name(), said.get("pack").unwrap().clone())
            };
            Domain::ALL.into_iter().map(show).collect()
        });
        &shown[self.name()]
    }
}

/// The names of the predicates as a reader of the file meets them; a document does not keep the order of names.
fn order_of_predicates(pack: &str) -> Vec<String> {
    let section = pack.lines().skip_while(|line| *line != "predicates:").skip(1);
    let section = section.take_while(|line| line.is_empty() || line.starts_with(' '));
    let names = section.filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    names.filter(|name| !name.starts_with(' ')).map(str::to_owned).collect()
}

pub(super) fn packs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs")
}

/// A Python with PyYAML, with which the environments of one data set are made.
fn python() -> String {
    std::env::var("DENDRER_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}
