//! Three-way merges of random histories, held against git itself and against the slow definition: ancestors as sets, and each
//! place by what all last common records had there (design, section 4).

#![allow(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::print_stderr, reason = "a test that cannot run here says so")]
#![expect(clippy::print_stdout, reason = "the deep run adds it up")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use dendrer::merge::{MergeInput, MergeTerms, Strategy, merge};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::store::Shared;
use dendrer::{Trace, fork};
use dendrer_kernel::step::Start;
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::{Intent, Pointer, Value};
use dendrer_testkit::{Dice, memory, run_name};

type Files = BTreeMap<String, String>;

/// How many files there are, and how many lines one of them may have.
const NAMES: usize = 4;
const LINES: usize = 4;

/// A state of the model: what it follows, what is in it, and the commit of git that has the same files.
struct Node {
    parents: Vec<usize>,
    files: Files,
    commit: Option<String>,
}

/// Runs git in a directory, with something on its standard input.
fn git(dir: &Path, args: &[&str], input: &str) -> (bool, String) {
    let mut child = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .envs([
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@a"),
            ("GIT_AUTHOR_DATE", "1700000000 +0000"),
        ])
        .envs([
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@a"),
            ("GIT_COMMITTER_DATE", "1700000000 +0000"),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap().trim_end().to_owned())
}

/// A repository with the lines that files may have.
struct Repository {
    dir: tempfile::TempDir,
    /// The id of each file that may be there, with its name and line.
    blobs: Vec<(String, String)>,
}

impl Repository {
    /// `None` where there is no git that merges trees without a working copy.
    fn new() -> Option<Repository> {
        let dir = tempfile::tempdir().unwrap();
        Command::new("git").arg("--version").output().ok()?;
        git(dir.path(), &["init", "-q"], "");
        // No file has a line of another one: git sees renames also where it is told not to look for them.
        let blob = |(name, line): (usize, usize)| {
            let text = format!("f{name} v{line}");
            (git(dir.path(), &["hash-object", "-w", "--stdin"], &format!("{text}\n")).1, text)
        };
        let all = (0..NAMES).flat_map(|name| (0..LINES).map(move |line| (name, line)));
        let blobs = all.map(blob).collect();
        let empty = git(dir.path(), &["mktree"], "").1;
        let commit = git(dir.path(), &["commit-tree", &empty, "-m", "x"], "").1;
        let made = git(dir.path(), &["merge-tree", "--write-tree", &commit, &commit], "");
        made.0.then_some(Repository { dir, blobs })
    }

    /// Makes a commit. The message is its number, so that no two are the same one.
    fn commit(&self, number: usize, files: &Files, parents: &[&str]) -> String {
        let line = |(name, text): (&String, &String)| {
            let text = format!("{name} {text}");
            let (blob, _) = self.blobs.iter().find(|(_, known)| *known == text).unwrap();
            format!("100644 blob {blob}\t{name}\n")
        };
        let tree = git(self.dir.path(), &["mktree"], &files.iter().map(line).collect::<String>()).1;
        let number = number.to_string();
        let mut args = vec!["commit-tree", &tree, "-m", &number];
        args.extend(parents.iter().flat_map(|parent| ["-p", parent]));
        git(self.dir.path(), &args, "").1
    }

    /// The merged files, or the names of the files in conflict; `None` if there is no single merge base.
    fn merge(&self, a: &str, b: &str) -> Option<Result<Files, BTreeSet<String>>> {
        let bases = git(self.dir.path(), &["merge-base", "--all", a, b], "").1;
        if bases.lines().count() != 1 {
            return None;
        }
        let args = ["merge-tree", "--write-tree", "--no-messages", "--name-only", a, b];
        let (is_clean, text) = git(self.dir.path(), &args, "");
        let (tree, names) = text.split_once('\n').unwrap_or((&text, ""));
        if !is_clean {
            return Some(Err(names.lines().map(str::to_owned).collect()));
        }
        let listed = git(self.dir.path(), &["ls-tree", tree], "").1;
        let file = |line: &str| {
            let (kind, name) = line.split_once('\t').unwrap();
            let blob = kind.split(' ').nth(2).unwrap();
            let (_, text) = self.blobs.iter().find(|(known, _)| known == blob).unwrap();
            (name.to_owned(), text.split_once(' ').unwrap().1.to_owned())
        };
        Some(Ok(listed.lines().map(file).collect()))
    }
}

fn ancestors(nodes: &[Node], node: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut open = vec![node];
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(&nodes[next].parents);
        }
    }
    found
}

/// The slow definition: merged files, and the names in conflict.
fn slow(nodes: &[Node], a: usize, b: usize) -> (Files, BTreeSet<String>) {
    let common: BTreeSet<usize> = ancestors(nodes, a).intersection(&ancestors(nodes, b)).copied().collect();
    let is_followed =
        |node: &usize| common.iter().any(|other| other != node && ancestors(nodes, *other).contains(node));
    let bases: Vec<usize> = common.iter().filter(|node| !is_followed(node)).copied().collect();
    let names: BTreeSet<&String> =
        [a, b].iter().chain(&bases).flat_map(|node| nodes[*node].files.keys()).collect();
    let (mut files, mut conflicts) = (Files::new(), BTreeSet::new());
    for name in names {
        let at = |node: usize| nodes[node].files.get(name);
        let (ours, theirs) = (at(a), at(b));
        let base: BTreeSet<Option<&String>> = bases.iter().map(|node| at(*node)).collect();
        let is_base = |side: Option<&String>| base.len() == 1 && base.contains(&side);
        let value = match (ours, theirs) {
            _ if ours == theirs => ours,
            _ if is_base(ours) => theirs,
            _ if is_base(theirs) => ours,
            // No common record: what one side lacks is taken from the other.
            (Some(one), None) | (None, Some(one)) if bases.is_empty() => Some(one),
            _ => {
                conflicts.insert(name.clone());
                continue;
            }
        };
        files.extend(value.map(|value| (name.clone(), value.clone())));
    }
    (files, conflicts)
}

/// One store with a random history.
struct History<'g> {
    store: Shared,
    repository: Option<&'g Repository>,
    nodes: Vec<Node>,
    /// Runs, each with the node of its last state.
    heads: Vec<(String, usize)>,
    clock: u64,
}

impl History<'_> {
    fn surroundings(&mut self) -> Box<Fixed> {
        self.clock += 1_000_000;
        Box::new(Fixed::new("merge", self.clock, 1_000))
    }

    fn add(&mut self, parents: Vec<usize>, files: Files) -> usize {
        let commits: Vec<String> =
            parents.iter().filter_map(|parent| self.nodes[*parent].commit.clone()).collect();
        let commits: Vec<&str> = commits.iter().map(String::as_str).collect();
        let commit = self.repository.map(|repository| repository.commit(self.nodes.len(), &files, &commits));
        self.nodes.push(Node { parents, files, commit });
        self.nodes.len() - 1
    }

    fn change(&mut self, dice: &mut Dice, head: usize) {
        let (run, node) = self.heads[head].clone();
        let mut files = self.nodes[node].files.clone();
        let mut ops = Vec::new();
        for _ in 0..=dice.below(2) {
            let name = format!("f{}", dice.below(NAMES as u64));
            let path = Pointer::of([&*name]);
            if dice.below(3) == 0 {
                if files.remove(&name).is_some() {
                    ops.push(Op { action: Action::Remove, path, value: None });
                }
            } else {
                let text = format!("v{}", dice.below(LINES as u64));
                ops.push(Op::set(path, Value::from(text.as_str())));
                files.insert(name, text);
            }
        }
        let mut intent = Intent::new("memory.write".parse().unwrap(), "a");
        intent.delta = Some(Delta(ops));
        let surroundings = self.surroundings();
        let mut recorder = Recorder::resume(&self.store, &run_name(&run), surroundings).unwrap();
        recorder.propose(&intent).unwrap();
        recorder.commit().unwrap();
        drop(recorder);
        self.heads[head].1 = self.add(vec![node], files);
    }

    fn fork(&mut self, head: usize) {
        let (run, node) = self.heads[head].clone();
        let name = format!("r{}", self.heads.len());
        let parent = Trace::open(&self.store, &run_name(&run)).unwrap();
        let (terms, surroundings) = (fork::ForkTerms::new(run_name(&name)), self.surroundings());
        let made = fork::fork(&parent, &self.store, parent.tip(), &terms, surroundings).unwrap();
        { made }.0.commit().unwrap();
        let files = self.nodes[node].files.clone();
        let node = self.add(vec![node], files);
        self.heads.push((name, node));
    }

    /// Merges two runs both ways, and holds what comes out against the model and against git.
    fn merge(&mut self, a: usize, b: usize) -> (bool, bool) {
        let made: Vec<(Files, BTreeSet<String>)> = [(a, b), (b, a)]
            .into_iter()
            .enumerate()
            .map(|(turn, (a, b))| {
                let name = format!("{}{}", ["r", "turned"][turn], self.heads.len());
                let traces = [a, b].map(|at| Trace::open(&self.store, &run_name(&self.heads[at].0)).unwrap());
                let sources = traces.each_ref().map(|trace| MergeInput { trace, tick: trace.tip() });
                let terms = MergeTerms {
                    run: run_name(&name),
                    artifacts: Vec::new(),
                    strategy: Strategy::Manual,
                    seed_only: false,
                    although: None,
                };
                let surroundings = self.surroundings();
                let (mut recorder, merged) = merge(&sources, &self.store, &terms, surroundings).unwrap();
                let members = recorder.head().state().as_object().unwrap().iter();
                let members = members.filter(|(name, _)| &***name != "kernel_unknown");
                let files =
                    members.map(|(name, value)| (name.to_string(), value.as_str().unwrap().to_owned()));
                let files: Files = files.collect();
                let conflicts = merged.conflicts.iter().map(|one| one.path.as_str()[1..].to_owned());
                let conflicts: BTreeSet<String> = conflicts.collect();
                match turn == 0 && conflicts.is_empty() {
                    true => drop(recorder.commit().unwrap()),
                    false => drop(recorder.discard()),
                }
                (files, conflicts)
            })
            .collect();
        assert_eq!(made[0], made[1], "symmetric");
        let (a, b) = (self.heads[a].1, self.heads[b].1);
        assert_eq!(made[0], slow(&self.nodes, a, b), "the slow definition");
        let by_git = self.repository.and_then(|repository| {
            repository.merge(self.nodes[a].commit.as_ref()?, self.nodes[b].commit.as_ref()?)
        });
        let (files, conflicts) = made.into_iter().next().unwrap();
        match &by_git {
            Some(Ok(merged)) => assert_eq!((merged, conflicts.len()), (&files, 0), "git merges it"),
            Some(Err(names)) => assert_eq!(*names, conflicts, "git says what is in conflict"),
            None => {}
        }
        if conflicts.is_empty() {
            let node = self.add(vec![a, b], files);
            self.heads.push((format!("r{}", self.heads.len()), node));
        }
        (by_git.is_some(), !conflicts.is_empty())
    }
}

fn histories(seed: u64, count: u64, repository: Option<&Repository>) -> (u64, u64, u64) {
    let mut dice = Dice(seed);
    let (mut merges, mut against_git, mut in_conflict) = (0, 0, 0);
    for _ in 0..count {
        let store = memory(3);
        let start = Start { state: Value::object(), ..Start::new(run_name("r0")) };
        Recorder::begin(&store, &start, Box::new(Fixed::new("r0", 1_790_000_000_000, 1_000)))
            .unwrap()
            .commit()
            .unwrap();
        let mut history =
            History { store, repository, nodes: Vec::new(), heads: Vec::new(), clock: 1_790_000_000_000 };
        let root = history.add(Vec::new(), Files::new());
        history.heads.push(("r0".to_owned(), root));
        for _ in 0..24 {
            let head = dice.below(history.heads.len() as u64) as usize;
            match dice.below(6) {
                0..=2 => history.change(&mut dice, head),
                3 => history.fork(head),
                _ => {
                    let other = dice.below(history.heads.len() as u64) as usize;
                    if other != head {
                        let (by_git, has_conflict) = history.merge(head, other);
                        merges += 1;
                        against_git += u64::from(by_git);
                        in_conflict += u64::from(has_conflict);
                    }
                }
            }
        }
    }
    (merges, against_git, in_conflict)
}

/// `DENDRER_DEEP=1`: 500 histories beside git.
#[test]
fn merges_agree_with_git() {
    let Some(repository) = Repository::new() else {
        eprintln!("SKIPPED: no git that merges trees without a working copy (2.38 or later)");
        return;
    };
    let count = if std::env::var_os("DENDRER_DEEP").is_some() { 500 } else { 40 };
    let (merges, against_git, in_conflict) = histories(3, count, Some(&repository));
    assert!(against_git > merges / 2 && in_conflict > count / 4, "{merges} {against_git} {in_conflict}");
    println!("deep: merge {count}");
}

/// Criss-cross histories, which git merges by other rules, against the slow definition. `DENDRER_DEEP=1`: 10,000 of them.
#[test]
fn merges_agree_with_the_slow_definition() {
    let count = if std::env::var_os("DENDRER_DEEP").is_some() { 10_000 } else { 300 };
    let (merges, _, in_conflict) = histories(22, count, None);
    assert!(merges > count && in_conflict > count / 4, "{merges} {in_conflict}");
    println!("deep: merge {count}");
}
