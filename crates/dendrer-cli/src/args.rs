//! The command line: verbs, flags, help. Nothing here does anything.

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};

use clap_complete::engine::ArgValueCompleter;
use dendrer::store::embedded::Options;

use crate::address::{Pos, index_arg, tick_arg};
use crate::codes::EXITS;
use crate::complete;
use crate::out::ColorChoice;
use crate::progress::ProgressChoice;

mod bisect;
mod contract;
mod diff;
mod fork;
mod help;
mod keep;
mod rebase;

pub(crate) use bisect::{Bisect, DiagnosisChoice, Label, NoteArgs};
pub(crate) use contract::{
    ContractCheck, ContractDiff, ContractExtend, ContractKeygen, ContractLint, ContractShow, ContractSuggest,
    ContractVerb,
};
pub(crate) use diff::{AlignChoice, Diff, KindChoice};
pub(crate) use fork::{Cherrypick, Fork, Reduce};
pub(crate) use help::{Completions, Explain, Help, Man, Schema};
pub(crate) use keep::{Backup, Doctor, Gc, Restore, SnapshotsChoice};
pub(crate) use rebase::{ConflictsResolve, ConflictsVerb, Merge, Rebase, StopOn, StrategyChoice};

/// Version control for the runs of AI agents.
#[derive(Debug, Parser)]
#[command(name = "dendrer", bin_name = "dendrer", version, about, long_about = None, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    /// Flags that every verb takes.
    #[command(flatten)]
    pub(crate) global: Global,
}

/// Flags that every verb takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    /// The store: a directory that holds .dendrer, or the .dendrer itself
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) store: Option<String>,
    /// Print exactly one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print one JSON item a line, and a summary
    #[arg(long, global = true)]
    pub(crate) jsonl: bool,
    /// The form of the answer: text, json, jsonl, and what the verb knows besides
    #[arg(long, global = true, value_name = "FORM")]
    pub(crate) format: Option<String>,
    /// Only these fields of the answer; "list" says which there are. A document cut like this need not have what its
    /// schema requires
    #[arg(long, global = true, value_name = "F,..", value_delimiter = ',')]
    pub(crate) fields: Vec<String>,
    /// Write the answer to a file
    #[arg(short = 'o', long = "output", global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<String>,
    /// When to use colour: auto, always, never
    #[arg(long, global = true, value_enum, default_value = "auto", hide_possible_values = true)]
    pub(crate) color: ColorChoice,
    /// Spell out every character that is not ASCII
    #[arg(long, global = true)]
    pub(crate) ascii: bool,
    /// How times are shown: local, utc, relative, none
    #[arg(long, global = true, value_enum, default_value = "local", hide_possible_values = true)]
    pub(crate) time: TimeChoice,
    /// Cut lines at N characters
    #[arg(long, global = true, value_name = "N")]
    pub(crate) width: Option<usize>,
    /// Shorten nothing
    #[arg(long, global = true)]
    pub(crate) full: bool,
    /// Do not page
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    /// How far long work has come, on stderr: auto, plain, json, never
    #[arg(long, global = true, value_enum, default_value = "auto", hide_possible_values = true)]
    pub(crate) progress: ProgressChoice,
    /// Say nothing but the answer and errors
    #[arg(short = 'q', long, global = true)]
    pub(crate) quiet: bool,
    /// Say what is opened, and how long it took
    #[arg(short = 'v', long, global = true)]
    pub(crate) verbose: bool,
    /// The file that holds the key of the log
    #[arg(long, global = true, value_name = "FILE", env = "DENDRER_KEY", hide_env_values = true, value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<String>,
    /// Whether the index is left alone, because it is damaged.
    #[arg(skip)]
    pub(crate) without_index: bool,
}

impl Global {
    /// How a store is opened for reading.
    pub(crate) fn reads(&self) -> Options {
        Options { index: !self.without_index, ..Options::read() }
    }
}

impl Verb {
    /// Tells whether the verb can be run again if it failed before it wrote anything: it takes nothing from a pipe, and leaves
    /// nothing behind but a signature.
    pub(crate) fn can_be_repeated(&self) -> bool {
        use Verb::{Backtrack, Bisect, Diff, Export, Fsck, Log, Replay, Runs, Show, State, Verify, Why};
        matches!(
            self,
            Backtrack(_)
                | Bisect(_)
                | Diff(_)
                | Export(_)
                | Fsck
                | Log(_)
                | Replay(_)
                | Runs(_)
                | Show(_)
                | State(_)
                | Verify(_)
                | Why(_)
        )
    }
}

impl Cli {
    /// The flags as they are where none was given, for what runs outside of a verb.
    pub(crate) fn default_global() -> Global {
        Cli::parse_from(["dendrer"]).global
    }
}

/// How times are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimeChoice {
    /// In the local time zone.
    Local,
    /// As recorded, in UTC.
    Utc,
    /// As the time that has passed since.
    Relative,
    /// Not at all.
    None,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Create a store
    #[command(after_help = "Examples:\n  dendrer init\n  dendrer init traces --key traces.key")]
    Init(Init),
    /// Make an offline sample store and print a tour
    #[command(after_help = "Examples:\n  dendrer demo\n  dendrer demo big --size 100000")]
    Demo(Demo),
    /// Take intents as JSON lines, through the kernel
    #[command(
        after_help = "Examples:\n  echo '{\"type\":\"observation.add\",\"intent\":{\"description\":\"hello\"}}' | dendrer commit --run first\n  dendrer commit --run first --file intents.jsonl"
    )]
    Commit(Commit),
    /// Bring in a trace that another program wrote
    #[command(
        after_help = "Examples:\n  dendrer import chat.json -n\n  dendrer import chat.json --run support-call\n  dendrer import steps.jsonl --map map.json"
    )]
    Import(Import),
    /// List runs
    #[command(visible_alias = "ls", after_help = "Examples:\n  dendrer runs\n  dendrer runs --sort ticks")]
    Runs(Runs),
    /// List transitions
    #[command(
        after_help = "Examples:\n  dendrer log logistics-run-47\n  dendrer log logistics-run-47 --from tick 20 --to tick 24"
    )]
    Log(Log),
    /// Show one transition with its state change
    #[command(
        after_help = "Examples:\n  dendrer show logistics-run-47@22\n  dendrer show logistics-run-47@22 --raw-json"
    )]
    Show(Show),
    /// Show the state at a tick, whole or one path
    #[command(
        after_help = "Examples:\n  dendrer state logistics-run-47@22\n  dendrer state logistics-run-47@22 --path risk_score"
    )]
    State(State),
    /// Check that the record is what was committed
    #[command(after_help = "Examples:\n  dendrer verify logistics-run-47 --replay\n  dendrer verify --all")]
    Verify(Verify),
    /// Make every state again from the record, without a model or a tool
    #[command(
        after_help = "Examples:\n  dendrer replay logistics-run-47\n  dendrer replay logistics-run-47 --to tick 21 --print state"
    )]
    Replay(Replay),
    /// Compare two runs by meaning, transition by transition
    #[command(
        after_help = "Paths: intent.., action.., result.., policy.., agent_id and the other members of transitions are theirs; state.x, and\nany other x, is what a transition wrote at x of the state, or what stands there in the end. Exit code: 0; with\n--exit-code 1 if the runs differ; 6 if something that was erased or withheld could not be compared.\n\nExamples:\n  dendrer diff logistics-run-47 logistics-planner-1 --to tick 12\n  dendrer diff logistics-run-47 logistics-run-47.dnd --exit-code"
    )]
    Diff(Diff),
    /// Find the first tick at which something is violated
    #[command(
        after_help = "Examples:\n  dendrer bisect logistics-run-47 --predicate kernel.policy_compliant\n  dendrer bisect logistics-run-47 --holds \"state.risk_score <= 0.75\" --from tick 1\n  dendrer bisect logistics-run-47 --predicate \"state.quality_score < 0.75\" --lift\n  dendrer bisect logistics-run-47 --policy-flip action.request\n  dendrer bisect logistics-run-47 --divergence logistics-planner-1"
    )]
    Bisect(Bisect),
    /// List every write of a place in the state, newest first
    #[command(
        after_help = "Examples:\n  dendrer backtrack logistics-run-47 risk_score --values\n  dendrer backtrack logistics-run-47 shipments --agent dispatcher --inputs"
    )]
    Backtrack(Backtrack),
    /// Show the last write of a place, what it rests on, and what that rests on
    #[command(
        after_help = "Examples:\n  dendrer why logistics-run-47@22 risk_score\n  dendrer why logistics-run-47 bookings_open --cross-agent"
    )]
    Why(Why),
    /// Predicates under names: register, list, show, test, retire
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer predicate list\n  dendrer predicate test kernel.policy_compliant logistics-run-47"
    )]
    Predicate(PredicateVerb),
    /// Hand runs over: a bundle that proves itself, or JSON lines
    #[command(
        after_help = "Examples:\n  dendrer export logistics-run-47 -o run.dnd\n  dendrer export logistics-run-47 --format jsonl"
    )]
    Export(Export),
    /// Check a pack, show what it declares, run its tests
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer pack check orders.yaml\n  dendrer pack show orders.yaml\n  dendrer pack test orders.yaml"
    )]
    Pack(PackVerb),
    /// Go on from an old tick of a run, as a new run
    #[command(
        after_help = "Examples:\n  dendrer fork logistics-run-47 --from tick 21 --tool-policy \"require source verification\"\n  dendrer fork --run logistics-run-47 --from tick 21 --policy risk_threshold=0.65 --replay-rest -n\n  dendrer fork logistics-run-47@21 --exec \"cat intents.jsonl\""
    )]
    Fork(Fork),
    /// Import a transition into a run that has what it was decided on
    #[command(
        visible_alias = "cherry-pick",
        after_help = "Examples:\n  dendrer cherrypick --run financial-agent-A --tick 23 --into financial-agent-C\n  dendrer cherrypick financial-agent-A@23 --into financial-agent-C -n --show-hash"
    )]
    Cherrypick(Cherrypick),
    /// Propose the intents of a run again on the state of another, as a new run
    #[command(
        after_help = "Examples:\n  dendrer rebase --run logistics-run-47 --onto logistics-planner-1@13 --plan\n  dendrer rebase logistics-run-47 --onto logistics-planner-1@13 --stop-on effectful -n"
    )]
    Rebase(Rebase),
    /// Begin a new run with what was chosen from several others; no merge of their histories
    #[command(
        after_help = "Examples:\n  dendrer merge --as all --from logistics-run-47 --from planning-run-12 --seed-only -n\n  dendrer merge --as picked --from logistics-run-47@21 --from trip-planner-a --seed-only"
    )]
    Merge(Merge),
    /// What a merge left open: list, show, resolve
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts list both"
    )]
    Conflicts(ConflictsVerb),
    /// Contracts of packs: list, show, compare and mend them, and check a run against them
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer contract check financial-agent-A\n  dendrer contract show acme.financial/v1\n  dendrer contract lint orders.yaml\n  dendrer contract suggest financial-agent-A financial-agent-B"
    )]
    Contract(ContractVerb),
    /// Reduce a recorded run again under another pack, into a new run
    #[command(
        after_help = "Examples:\n  dendrer reduce logistics-run-47 --pack orders.yaml --as logistics-run-47.orders\n  dendrer reduce trip-planner-a --pack orders.yaml --as trip-planner-a.orders --json"
    )]
    Reduce(Reduce),
    /// Names for moments: list them, put one on RUN or RUN@TICK, take one off
    #[command(
        after_help = "Examples:\n  dendrer label\n  dendrer label before-the-feed logistics-run-47@21\n  dendrer show before-the-feed"
    )]
    Label(Label),
    /// Remarks on moments: list them, or write one down
    #[command(
        after_help = "Examples:\n  dendrer note\n  dendrer note logistics-run-47@22 \"nobody checked this feed\"\n  dendrer note logistics-run-47"
    )]
    Note(NoteArgs),
    /// Copy the store while others write to it; the next time, only what followed
    #[command(
        after_help = "Examples:\n  dendrer backup ../traces-backup\n  dendrer backup ../traces-backup --json"
    )]
    Backup(Backup),
    /// Make a store from a backup
    #[command(
        after_help = "Examples:\n  dendrer restore ../traces-backup restored\n  dendrer restore ../traces-backup restored --replace"
    )]
    Restore(Restore),
    /// Check every file of the store against its log, and say what damage would cost
    #[command(after_help = "Examples:\n  dendrer fsck\n  dendrer fsck --store restored")]
    Fsck,
    /// Remove what follows from the log and is not needed; never the log
    #[command(after_help = "Examples:\n  dendrer gc -n\n  dendrer gc --keep 30d --snapshots thin")]
    Gc(Gc),
    /// Check the installation, the store, the clock and the disk
    #[command(after_help = "Examples:\n  dendrer doctor\n  dendrer doctor --fix --report support.json")]
    Doctor(Doctor),
    /// Explain a code
    #[command(after_help = "Examples:\n  dendrer explain E0301\n  dendrer explain")]
    Explain(Explain),
    /// Print the JSON Schema of a document
    #[command(after_help = "Examples:\n  dendrer schema show\n  dendrer schema")]
    Schema(Schema),
    /// Print the version of the program and of the formats
    #[command(after_help = "Examples:\n  dendrer version\n  dendrer version --json")]
    Version,
    /// Print the manual page of the program, or of a verb
    #[command(after_help = "Examples:\n  dendrer man\n  dendrer man log -o dendrer-log.1")]
    Man(Man),
    /// Print what makes a shell complete verbs, flags, runs and paths
    #[command(
        after_help = "Examples:\n  dendrer completions bash\n  dendrer completions fish -o dendrer.fish"
    )]
    Completions(Completions),
    /// Print help: of all verbs, of one, or the table of exit codes
    #[command(after_help = "Examples:\n  dendrer help log\n  dendrer help exit-codes")]
    Help(Help),
}

/// `init`
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Where; here if not given
    pub(crate) dir: Option<String>,
}

/// `demo`
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Where
    #[arg(default_value = "dendrer-demo")]
    pub(crate) dir: String,
    /// "small", or a number of ticks for a generated run
    #[arg(long, default_value = "small")]
    pub(crate) size: String,
    /// Do not print the tour
    #[arg(long)]
    pub(crate) no_tour: bool,
}

/// `commit`
#[derive(Debug, Args)]
pub(crate) struct Commit {
    /// The run; it begins if there is none of this name
    #[arg(long, add = ArgValueCompleter::new(complete::runs))]
    pub(crate) run: String,
    /// Where the intents are; - for standard input. `dendrer schema intent` lists types and members
    #[arg(long, default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) file: String,
    /// The agent of lines that do not name one
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Who writes: each line for itself, agents alone, the runtime, or the system (which is refused)
    #[arg(long = "as", value_enum, default_value = "line")]
    pub(crate) author: AuthorChoice,
    /// Names that begin with $ are dendrer's tagged forms
    #[arg(long)]
    pub(crate) tagged: bool,
    /// Judge, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Fail if the run exists already
    #[arg(long)]
    pub(crate) new: bool,
    /// For a new run: its goal
    #[arg(long)]
    pub(crate) goal: Option<String>,
    /// For a new run: a JSON file with the initial state
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<String>,
    /// For a new run: a JSON file with policy rules [{"id": ..., "holds": ...}]
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<String>,
    /// For a new run: the pack that is in force; with it, --state is what its init is given
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: Option<String>,
    /// For a new run: the stage it is recorded at
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(0..=3))]
    pub(crate) stage: u64,
}

/// `import`
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The trace; - for standard input
    pub(crate) file: String,
    /// What it is
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) kind: ImportKind,
    /// The name of the run; made from the name of the file if not given
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// For jsonl: a JSON file that says where in a line each part of an intent stands
    #[arg(long, value_name = "FILE")]
    pub(crate) map: Option<String>,
    /// Where the list of messages stands, as a JSON pointer like /messages
    #[arg(long, value_name = "POINTER")]
    pub(crate) messages: Option<String>,
    /// Which of several runs in the file, from 0
    #[arg(long, value_parser = index_arg, value_name = "N", allow_hyphen_values = true)]
    pub(crate) index: Option<u64>,
    /// What to do where something is missing: mark it and go on, or import nothing
    #[arg(long, value_enum, default_value = "mark")]
    pub(crate) on_gap: GapChoice,
    /// A JSON file with the state before the first message
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<String>,
    /// A pack whose rules make the states: import and reduce in one go
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: Option<String>,
    /// A JSON file with policy rules [{"id": ..., "holds": ...}]
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<String>,
    /// What the run was to achieve
    #[arg(long)]
    pub(crate) goal: Option<String>,
    /// Import although the same trace is in the store already
    #[arg(long)]
    pub(crate) again: bool,
    /// Say what would be imported, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// What a trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportKind {
    /// Found out from its shape.
    Auto,
    /// Messages with roles and tool calls.
    OpenaiChat,
    /// One JSON object a line, read by --map.
    Jsonl,
}

/// What to do about gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GapChoice {
    /// Mark them.
    Mark,
    /// Import nothing.
    Stop,
}

/// `pack`
#[derive(Debug, Subcommand)]
pub(crate) enum PackVerb {
    /// Say everything that is wrong with a pack
    Check(PackCheck),
    /// Show what a pack declares: fields, rules, types, tools, predicates, digest
    Show(PackShow),
    /// Run the tests of a pack
    Test(PackTest),
}

/// `pack check`
#[derive(Debug, Args)]
pub(crate) struct PackCheck {
    /// The pack: YAML or JSON
    pub(crate) file: String,
}

/// `pack show`
#[derive(Debug, Args)]
pub(crate) struct PackShow {
    /// A pack, or a run that carries one
    #[arg(value_name = "FILE|RUN")]
    pub(crate) target: String,
    /// Of a run: print the text of its pack as it was written
    #[arg(long)]
    pub(crate) text: bool,
}

/// `pack test`
#[derive(Debug, Args)]
pub(crate) struct PackTest {
    /// The pack: YAML or JSON
    pub(crate) file: String,
    /// A file with more tests
    #[arg(long, value_name = "FILE")]
    pub(crate) cases: Option<String>,
}

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthorChoice {
    /// Each line says; an agent where it does not.
    Line,
    /// Agents alone: no line can speak for the runtime.
    Agent,
    /// The runtime: action.result and policy.decision are its own where a line names no author.
    Runtime,
    /// Nobody can.
    System,
}

/// `runs`
#[derive(Debug, Args)]
pub(crate) struct Runs {
    /// A bundle to read instead of a store
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<String>,
    /// Only runs of which this is true: an expression over name, ticks, stage, goal, refusals, ended, synthetic,
    /// forked, verified, and the state at the tip
    #[arg(long = "where", value_name = "EXPR")]
    pub(crate) filter: Option<String>,
    /// Only runs recorded at this stage
    #[arg(long, value_name = "N")]
    pub(crate) stage: Option<u64>,
    /// Only runs that were not found intact here as they are now
    #[arg(long)]
    pub(crate) unverified: bool,
    /// Forks below what they were forked from
    #[arg(long)]
    pub(crate) tree: bool,
    /// The order
    #[arg(long, value_enum, default_value = "updated")]
    pub(crate) sort: RunSort,
    /// At most N; 0 for all
    #[arg(short = 'n', long = "limit", default_value_t = 50)]
    pub(crate) limit: usize,
}

/// The order of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunSort {
    /// Newest first.
    Updated,
    /// Longest first.
    Ticks,
    /// By name.
    Name,
}

/// `log`
#[derive(Debug, Clone, Args)]
pub(crate) struct Log {
    /// The run, or RUN@FROM..TO; the latest if not given
    #[arg(default_value = "@", add = ArgValueCompleter::new(complete::runs))]
    pub(crate) run: String,
    /// The first tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Pos>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Pos>,
    /// Only these types
    #[arg(long = "type", value_delimiter = ',', value_name = "T,..")]
    pub(crate) types: Vec<String>,
    /// Only these agents
    #[arg(long, value_delimiter = ',', value_name = "A,..")]
    pub(crate) agent: Vec<String>,
    /// Only transitions with anomalies
    #[arg(long)]
    pub(crate) anomalies: bool,
    /// Only ticks that wrote at this path
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(complete::paths))]
    pub(crate) path: Option<String>,
    /// Only transitions with this in their type, agent or any text they hold: a regular expression, matched in
    /// linear time
    #[arg(long, value_name = "RE")]
    pub(crate) grep: Option<String>,
    /// Refusals too, where they were judged
    #[arg(long)]
    pub(crate) refusals: bool,
    /// Draw a lane for each agent, and name the recorded links
    #[arg(long, conflicts_with = "reverse")]
    pub(crate) graph: bool,
    /// One line each (the default; --full shows each as show does)
    #[arg(long)]
    pub(crate) oneline: bool,
    /// Newest first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// At most N; 0 for all
    #[arg(short = 'n', long = "limit")]
    pub(crate) limit: Option<usize>,
    /// Wait for more, until interrupted or the run ends
    #[arg(long, conflicts_with_all = ["reverse", "limit", "graph"])]
    pub(crate) follow: bool,
    /// As --follow, until a goal is complete or the run ends
    #[arg(long, conflicts_with_all = ["reverse", "limit", "graph"])]
    pub(crate) until_complete: bool,
}

impl Log {
    /// Whether it waits for what is not there yet.
    pub(crate) fn follows(&self) -> bool {
        self.follow || self.until_complete
    }
}

/// `show`
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// What: RUN@TICK
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    pub(crate) rev: String,
    /// Which state to print beside the rest; the change, where no part is named
    #[arg(long, value_enum)]
    pub(crate) state: Option<StateChoice>,
    /// Only this path of the state
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(complete::paths))]
    pub(crate) path: Option<String>,
    /// Only the intent, unless more is asked for
    #[arg(long)]
    pub(crate) intent: bool,
    /// Only the result, unless more is asked for
    #[arg(long)]
    pub(crate) result: bool,
    /// Where it comes from: author, branch, predecessor, links, run, log
    #[arg(long)]
    pub(crate) provenance: bool,
    /// Print header and content as they are
    #[arg(long, conflicts_with_all = ["intent", "result", "provenance", "path"])]
    pub(crate) raw_json: bool,
}

/// Which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateChoice {
    /// What changed.
    Delta,
    /// The state before.
    Before,
    /// The state after.
    After,
    /// None.
    None,
}

/// `state`
#[derive(Debug, Args)]
pub(crate) struct State {
    /// What: RUN@TICK
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    pub(crate) rev: String,
    /// One path of it
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(complete::paths))]
    pub(crate) path: Option<String>,
    /// The state before the transition, or after it
    #[arg(long, value_enum, default_value = "after")]
    pub(crate) window: WindowChoice,
    /// Print what differs from the state there, instead of the state
    #[arg(long, value_name = "REV", add = ArgValueCompleter::new(complete::runs))]
    pub(crate) base: Option<String>,
    /// How deep to print
    #[arg(long, conflicts_with = "base")]
    pub(crate) depth: Option<usize>,
}

/// Which side of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WindowChoice {
    /// After it.
    After,
    /// Before it.
    Before,
}

/// `verify`
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Runs or bundle files; with none, the whole store
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    pub(crate) targets: Vec<String>,
    /// Every run of the store
    #[arg(long, conflicts_with = "targets")]
    pub(crate) all: bool,
    /// Make every transition again, too
    #[arg(long)]
    pub(crate) replay: bool,
    /// A file that cannot be read at all does not keep the others from being verified
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// How many bundles are verified at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=256))]
    pub(crate) jobs: u64,
    /// Run a suite: a JSON file that lists traces, and which of them must be rejected
    #[arg(long, value_name = "FILE", conflicts_with_all = ["targets", "all", "tip", "verifier", "require_witness"],
        value_hint = ValueHint::FilePath)]
    pub(crate) suite: Option<String>,
    /// Check files of `export --format paper` or `cfd` against the hashes of that document
    #[arg(long, value_name = "paper|cfd", requires = "targets", conflicts_with_all = ["replay", "tip", "verifier", "require_witness", "from"])]
    pub(crate) profile: Option<ProfileChoice>,
    /// Open the records from this tick on, and take what stands before it as it is
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true, requires = "targets")]
    pub(crate) from: Option<Pos>,
    /// A tip kept elsewhere, which the run must have
    #[arg(long, value_name = "HASH")]
    pub(crate) tip: Option<String>,
    /// A verifier key kept elsewhere, under which the log must be signed
    #[arg(long, value_name = "KEY")]
    pub(crate) verifier: Option<String>,
    /// Not to be called intact where nobody outside agrees
    #[arg(long)]
    pub(crate) require_witness: bool,
}

/// Whose hashes.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ProfileChoice {
    /// The dendrer paper, 3.1
    Paper,
    /// CFD, 1.2
    Cfd,
}

/// `replay`
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The run
    #[arg(add = ArgValueCompleter::new(complete::runs))]
    pub(crate) run: String,
    /// The first tick to print
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Pos>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Pos>,
    /// A divergence ends with exit code 7 (the default)
    #[arg(long)]
    pub(crate) strict: bool,
    /// A divergence is reported and does not fail
    #[arg(long, conflicts_with = "strict")]
    pub(crate) detect: bool,
    /// Evaluate the reducer twice and compare
    #[arg(long)]
    pub(crate) twice: bool,
    /// What to print for each tick
    #[arg(long, value_enum, default_value = "none")]
    pub(crate) print: PrintChoice,
    /// With --print state: one path of it
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(complete::paths))]
    pub(crate) path: Option<String>,
}

/// What to print for each tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrintChoice {
    /// Nothing.
    None,
    /// The state root.
    Hash,
    /// The state.
    State,
}

/// `backtrack`
#[derive(Debug, Args)]
pub(crate) struct Backtrack {
    /// The run
    pub(crate) run: String,
    /// The place: a.b[2] or /a/b/2
    pub(crate) path: String,
    /// The first tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Pos>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Pos>,
    /// Only writes of this agent
    #[arg(long, value_name = "A")]
    pub(crate) agent: Option<String>,
    /// Only the newest
    #[arg(long)]
    pub(crate) last: bool,
    /// What each write rests on, too
    #[arg(long)]
    pub(crate) inputs: bool,
    /// What stood there before and after
    #[arg(long)]
    pub(crate) values: bool,
    /// At most N; 0 for all
    #[arg(short = 'n', long = "limit", default_value_t = 50)]
    pub(crate) limit: usize,
}

/// `why`
#[derive(Debug, Args)]
pub(crate) struct Why {
    /// Where: RUN@TICK
    pub(crate) rev: String,
    /// The place: a.b[2] or /a/b/2
    pub(crate) path: String,
    /// How many steps to go down
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=64))]
    pub(crate) depth: u8,
    /// Go on from transitions of other agents
    #[arg(long)]
    pub(crate) cross_agent: bool,
}

/// `predicate`
#[derive(Debug, Subcommand)]
pub(crate) enum PredicateVerb {
    /// Put a predicate on record under a name
    #[command(
        after_help = "Examples:\n  dendrer predicate register acme.risk_bounded --holds \"state.risk_score <= 0.75\" --verify-monotone --sample-trace logistics-run-47\n  dendrer predicate register acme.risk_bounded --lift monotone"
    )]
    Register(PredicateRegister),
    /// List the names that predicates have
    List(PredicateList),
    /// Show every version of a name
    Show(PredicateShow),
    /// Print what a predicate says of a run, from tick to tick
    #[command(
        after_help = "Examples:\n  dendrer predicate test kernel.policy_compliant logistics-run-47\n  dendrer predicate test \"state.risk_score <= 0.75\" logistics-run-47 --holds --at tick 22\n\nExit code with --at: 0 ok, 1 violation, 6 uncertain. Without: 0."
    )]
    Test(PredicateTest),
    /// End a name: it means nothing until it is registered again
    Retire(PredicateRetire),
}

/// `predicate register`
#[derive(Debug, Clone, Args)]
#[command(group = clap::ArgGroup::new("form").args(["holds", "condition", "file", "module"]))]
pub(crate) struct PredicateRegister {
    /// The name, like acme.tax_compliance_v2; or a module NAME.wasm, registered under that name
    #[arg(value_name = "NAME|MODULE.wasm")]
    pub(crate) name: String,
    /// An expression that must be true
    #[arg(long, value_name = "EXPR")]
    pub(crate) holds: Option<String>,
    /// An expression that names the violation
    #[arg(long, value_name = "EXPR", visible_alias = "expr")]
    pub(crate) condition: Option<String>,
    /// A JSON file {"holds": ..} or {"condition": ..}, with a window and a lift if need be; without any of these
    /// four, the newest registration of the name is taken up again
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// A WebAssembly module that says ok or violation of a state
    #[arg(long, value_name = "MODULE.wasm", value_hint = ValueHint::FilePath)]
    pub(crate) module: Option<String>,
    /// Which state of a transition it looks at
    #[arg(long, value_enum)]
    pub(crate) window: Option<WindowChoice>,
    /// The version; the next one of the name if not given
    #[arg(long, value_name = "V")]
    pub(crate) version: Option<String>,
    /// Reject it if it is seen to recover
    #[arg(long)]
    pub(crate) verify_monotone: bool,
    /// A run to verify it on
    #[arg(long, value_name = "RUN", requires = "verify_monotone")]
    pub(crate) sample_trace: Vec<String>,
    /// Ask for the first violation, whatever comes after it
    #[arg(long, value_enum, value_name = "LIFT")]
    pub(crate) lift: Option<LiftChoice>,
}

/// How a predicate that recovers is made one that does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LiftChoice {
    /// Violated from the first violation on.
    Monotone,
}

/// `predicate list`
#[derive(Debug, Args)]
pub(crate) struct PredicateList {
    /// A bundle to read instead of a store
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<String>,
    /// Retired names and older versions, too
    #[arg(long)]
    pub(crate) all: bool,
    /// What the pack of this run declares, too
    #[arg(long, value_name = "RUN", add = ArgValueCompleter::new(complete::runs))]
    pub(crate) run: Option<String>,
}

/// `predicate show`
#[derive(Debug, Args)]
pub(crate) struct PredicateShow {
    /// The name
    pub(crate) name: String,
    /// A bundle to read instead of a store
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<String>,
    /// What the pack of this run declares under the name, too
    #[arg(long, value_name = "RUN", add = ArgValueCompleter::new(complete::runs))]
    pub(crate) run: Option<String>,
}

/// `predicate test`
#[derive(Debug, Args)]
pub(crate) struct PredicateTest {
    /// A registered predicate, or an expression that names the violation
    #[arg(value_name = "NAME|EXPR")]
    pub(crate) predicate: String,
    /// The run
    pub(crate) run: String,
    /// The expression is what must be true
    #[arg(long)]
    pub(crate) holds: bool,
    /// Which state of a transition an expression looks at: after (as if not given) or before
    #[arg(long, value_enum)]
    pub(crate) window: Option<WindowChoice>,
    /// Only this tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    pub(crate) at: Option<Pos>,
    /// A row for every tick: its type, what the predicate says, and what happened
    #[arg(long)]
    pub(crate) ticks: bool,
    /// The first tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Pos>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Pos>,
}

/// `predicate retire`
#[derive(Debug, Args)]
pub(crate) struct PredicateRetire {
    /// The name
    pub(crate) name: String,
}

/// `export`
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The runs
    #[arg(required = true, add = ArgValueCompleter::new(complete::runs))]
    pub(crate) runs: Vec<String>,
    /// Withhold the values at or below this place of every record, like /result/output
    #[arg(long, value_name = "POINTER")]
    pub(crate) withhold: Vec<String>,
}

/// The whole command line, with the table of exit codes behind its help.
pub(crate) fn command() -> clap::Command {
    let codes: Vec<String> =
        EXITS.iter().map(|exit| format!("  {:>3}  {}", exit.code, exit.meaning)).collect();
    Cli::command().after_help(format!(
        "Exit codes (more: dendrer help exit-codes):\n{}\n\nExamples:\n  dendrer demo\n  dendrer help exit-codes",
        codes.join("\n")
    ))
}

/// Joins the two words `tick` `N` behind the flags that take a tick, so that each flag takes one value.
pub(crate) fn join_ticks(args: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    for arg in args {
        let after_tick = joined.last().is_some_and(|last| last == "tick");
        let flag = joined.len().checked_sub(2).map(|at| joined[at].as_str());
        if after_tick && matches!(flag, Some("--from" | "--to" | "--at" | "--tick" | "--effective-from")) {
            let last = joined.len() - 1;
            joined[last] = format!("tick:{arg}");
        } else {
            joined.push(arg);
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_words_become_one_tick_only_behind_the_flags_that_take_one() {
        let join = |text: &str| join_ticks(text.split(' ').map(str::to_owned)).join(" ");
        assert_eq!(join("bisect r --from tick 5 --to tick 9"), "bisect r --from tick:5 --to tick:9");
        assert_eq!(join("log tick 5"), "log tick 5");
        assert_eq!(join("log r --from 5"), "log r --from 5");
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
