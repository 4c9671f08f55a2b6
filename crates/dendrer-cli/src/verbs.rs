//! The command line, and one table of the verbs: help, arguments, shape of the answer, and the function that runs it.
//!
//! Each verb has a file, and no verb knows another, or this table.

mod assert;
mod backtrack;
mod backup;
mod bisect;
mod cherrypick;
mod coherence;
mod commit;
mod commitments;
mod compare;
mod completions;
mod conflicts;
mod contract;
mod demo;
mod diff;
mod doctor;
mod erase;
mod explain;
mod export;
mod first;
mod fleet;
mod fork;
mod fsck;
mod gc;
mod graph;
mod heatmap;
mod help;
mod import;
mod init;
mod key;
mod label;
mod log;
mod man;
mod mcp_shim;
mod merge;
mod note;
mod pack;
mod predicate;
mod rebase;
mod record;
mod reduce;
mod replay;
mod restore;
mod runs;
mod schema;
mod secrets;
mod serve;
mod shape;
mod show;
mod state;
mod steps;
mod verify;
mod version;
mod why;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use dendrer::lines::LineOptions;
use dendrer::repo::new_run::Resume;
use dendrer::{Recorder, Repo};
use dendrer_object::{Code, Value};

use self::commitments::CommitmentsAct;
use self::conflicts::ConflictsVerb;
use self::contract::ContractVerb;
use self::fleet::FleetVerb;
use self::graph::GraphVerb;
use self::key::KeyVerb;
use self::pack::PackVerb;
use self::predicate::PredicateVerb;
use self::secrets::SecretsVerb;
use self::shape::{Shape, flows, pages};
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::offers;
use crate::out::Form;
use crate::out::Out;

/// Opens the store and the run that the flags of `commit` name. `state` is what `--state` would be the file of.
pub(crate) fn record(
    global: &Global,
    verb: Verb,
    state: Option<Value>,
    resume: Resume,
) -> Result<(Repo, Recorder, LineOptions)> {
    match verb {
        Verb::Commit(args) => commit::record(global, commit::Commit { state_value: state, ..args }, resume),
        _ => Err(Failure::new(Code::E0106, "a run is recorded by commit")),
    }
}

/// Version control for the runs of AI agents.
#[derive(Debug, Parser)]
#[command(name = "dendrer", bin_name = "dendrer", version, about, long_about = None, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// Work in this directory; before the verb
    #[arg(short = 'C', value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub(crate) directory: Option<String>,
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    /// Flags that every verb takes.
    #[command(flatten)]
    pub(crate) global: Global,
}

/// Makes [`Verb`] of the table of verbs: for each its help, its arguments, the shape of its answer, and the function that
/// runs it.
macro_rules! table {
    ($($(#[$help:meta])* $verb:ident($args:ty): $shape:expr => $run:expr;)*) => {
        /// What to do.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Verb {
            $($(#[$help])* $verb($args),)*
        }

        impl Verb {
            /// Returns the shape of the answer to this call.
            fn shape(&self) -> Shape {
                match self {
                    $(Verb::$verb(args) => {
                        let shape: fn(&$args) -> Shape = $shape;
                        shape(args)
                    })*
                }
            }

            /// Runs the verb and returns the exit code.
            fn run(&self, global: &Global, out: &mut Out) -> Result {
                match self {
                    $(Verb::$verb(args) => {
                        let run: fn(&Global, &$args, &mut Out) -> Result = $run;
                        run(global, args, out)
                    })*
                }
            }
        }
    };
}

table! {
    /// Create a store
    #[command(after_help = "Examples:\n  dendrer init\n  dendrer init traces --key traces.key")]
    Init(init::Init): |_| flows("init", "init") => init::run;
    /// Make an offline sample store and print a tour
    #[command(after_help = "Examples:\n  dendrer demo\n  dendrer demo big --size 100000")]
    Demo(demo::Demo): |_| flows("demo", "demo") => demo::run;
    /// Take intents as JSON lines, through the kernel
    #[command(
        after_help = "Examples:\n  echo '{\"type\":\"observation.add\",\"intent\":{\"description\":\"hello\"}}' | dendrer commit --run first\n  dendrer commit --run first --file intents.jsonl"
    )]
    Commit(commit::Commit): |_| flows("commit", "commit") => commit::run;
    /// Run a program as it is, and record what it asks of models
    #[command(
        after_help = "Examples:\n  dendrer record -- python3 agent.py\n  dendrer record --as nightly --goal 'file the report' -- python3 agent.py"
    )]
    Record(record::Record): |_| flows("record", "recorded") => record::run;
    /// Run a server of MCP, and bring a recorder a copy of what passes
    #[command(
        after_help = "Examples:\n  dendrer mcp-shim -- python3 depot.py\n  dendrer mcp-shim --name depot -- python3 depot.py"
    )]
    McpShim(mcp_shim::McpShim): |_| Shape::text("mcp-shim") => mcp_shim::run;
    /// Bring in a trace that another program wrote
    #[command(
        after_help = "Examples:\n  dendrer import chat.json -n\n  dendrer import chat.json --run support-call\n  dendrer import steps.jsonl --map map.json"
    )]
    Import(import::Import): |args| flows("import", if args.is_of_many() { "imports" } else { "import" }) => import::run;
    /// List runs, or leave one out of lists
    #[command(visible_alias = "ls", after_help = "Examples:\n  dendrer runs\n  dendrer runs --sort ticks")]
    Runs(runs::Runs): |verb| match verb.act {
        None => pages("runs", "runs").again(),
        Some(_) => flows("runs drop", "dropped"),
    } => runs::run;
    /// List transitions
    #[command(
        after_help = "Examples:\n  dendrer log logistics-run-47\n  dendrer log logistics-run-47 --from tick 20 --to tick 24"
    )]
    Log(log::Log):
        |args| match args.bins {
            Some(_) => pages("log", "timeline").also(&["svg"]).again(),
            None if args.transcript => pages("log", "transcript").again(),
            None => pages("log", "log").paged(!args.follows()).also(&["receipt", "dot", "svg"]).again(),
        }
        => log::run;
    /// Show one transition with its state change
    #[command(
        after_help = "Examples:\n  dendrer show logistics-run-47@22\n  dendrer show logistics-run-47@22 --raw-json"
    )]
    Show(show::Show):
        |args| pages("show", if args.raw_json { "record" } else { "show" }).again()
        => show::run;
    /// Show the state at a tick, whole or one path
    #[command(
        after_help = "Examples:\n  dendrer state logistics-run-47@22\n  dendrer state logistics-run-47@22 --path risk_score"
    )]
    State(state::State):
        |args| pages("state", if args.base.is_some() { "state-difference" } else { "state" }).again()
        => state::run;
    /// Check that the record is what was committed
    #[command(after_help = "Examples:\n  dendrer verify logistics-run-47 --replay\n  dendrer verify --all")]
    Verify(verify::Verify): |args| match (&args.suite, args.profile) {
        _ if args.branches => pages("verify", "branches").again(),
        (Some(_), _) => pages("verify", "suite").again(),
        (None, Some(_)) => pages("verify", "profile").again(),
        (None, None) => pages("verify", "verify").again(),
    } => verify::run;
    /// Make every state again from the record, without a model or a tool
    #[command(
        after_help = "Examples:\n  dendrer replay logistics-run-47\n  dendrer replay logistics-run-47 --to tick 21 --print state"
    )]
    Replay(replay::Replay): |_| pages("replay", "replay").again() => replay::run;
    /// Compare two runs by meaning, transition by transition
    #[command(
        after_help = "Paths: intent.., action.., result.., policy.., agent_id and the other members of transitions are theirs; state.x, and\nany other x, is what a transition wrote at x of the state, or what stands there in the end. Exit code: 0; with\n--exit-code 1 if the runs differ; 6 if something that was erased or withheld could not be compared.\n\nExamples:\n  dendrer diff logistics-run-47 logistics-planner-1 --to tick 12\n  dendrer diff logistics-run-47 logistics-run-47.dnd --exit-code"
    )]
    Diff(diff::Diff): |args| pages("diff", if args.coherence { "coherence-diff" } else { "diff" }).again() => diff::run;
    /// Find the first tick at which something is violated
    #[command(
        after_help = "Examples:\n  dendrer bisect logistics-run-47 --predicate kernel.policy_compliant\n  dendrer bisect logistics-run-47 --holds \"state.risk_score <= 0.75\" --from tick 1\n  dendrer bisect logistics-run-47 --predicate \"state.quality_score < 0.75\" --lift\n  dendrer bisect logistics-run-47 --policy-flip action.request\n  dendrer bisect logistics-run-47 --divergence logistics-planner-1"
    )]
    Bisect(bisect::Bisect):
        |args| pages("bisect", if args.asks_several() { "bisect-all" } else { "bisect" }).also(&["paper", "svg"]).again()
        => bisect::run;
    /// List every write of a place in the state, newest first
    #[command(
        after_help = "Examples:\n  dendrer backtrack logistics-run-47 risk_score --values\n  dendrer backtrack logistics-run-47 shipments --agent dispatcher --inputs"
    )]
    Backtrack(backtrack::Backtrack): |_| pages("backtrack", "backtrack").again() => backtrack::run;
    /// Show the last write of a place, what it rests on, and what that rests on
    #[command(
        after_help = "Examples:\n  dendrer why logistics-run-47@22 risk_score\n  dendrer why logistics-run-47 bookings_open --cross-agent"
    )]
    Why(why::Why): |_| pages("why", "why").again() => why::run;
    /// Predicates under names: register, list, show, test, retire
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer predicate list\n  dendrer predicate test kernel.policy_compliant logistics-run-47"
    )]
    Predicate(predicate::PredicateVerb): |verb| match verb {
        PredicateVerb::Register(_) => flows("predicate register", "predicate"),
        PredicateVerb::Retire(_) => flows("predicate retire", "predicate"),
        PredicateVerb::List(_) => pages("predicate list", "predicates"),
        PredicateVerb::Show(_) => pages("predicate show", "predicates"),
        PredicateVerb::Test(_) => pages("predicate test", "predicate-test"),
    } => predicate::run;
    /// Hand runs over: a bundle that proves itself, a page to read, or JSON lines
    #[command(
        after_help = "Examples:\n  dendrer export logistics-run-47 -o run.dnd\n  dendrer export logistics-run-47 --format html -o run.html\n  dendrer export logistics-run-47 --format jsonl"
    )]
    Export(export::Export):
        |args| match (&args.check, &args.dir) {
            (Some(_), _) => flows("export", "export-check"),
            (None, Some(_)) => flows("export", "parquet-export").also(&export::forms()),
            (None, None) => Shape::bytes("export", &export::forms()).again(),
        }
        => export::run;
    /// Ask all runs of an export as Parquet at once
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer export --format parquet --dir exp\n  dendrer fleet bisect --dir exp --holds \"state.counters.tool_errors == 0\""
    )]
    Fleet(FleetVerb): |verb| match verb {
        FleetVerb::Bisect(_) => flows("fleet bisect", "fleet-bisect").also(&["svg"]),
        FleetVerb::Predicate(_) => flows("fleet predicate", "fleet-predicate"),
    } => fleet::run;
    /// Check a pack, show what it declares, run its tests, convert a contract of the paper
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer pack check orders.yaml\n  dendrer pack show orders.yaml\n  dendrer pack test orders.yaml"
    )]
    Pack(pack::PackVerb): |verb| match verb {
        PackVerb::Check(_) => pages("pack check", "pack-check"),
        PackVerb::Show(_) => pages("pack show", "pack"),
        PackVerb::Test(_) => pages("pack test", "pack-test"),
        PackVerb::Convert(_) => Shape::file("pack convert", "pack-convert"),
    } => pack::run;
    /// Go on from an old tick of a run, as a new run
    #[command(
        after_help = "Examples:\n  dendrer fork logistics-run-47 --from tick 21 --tool-policy \"require source verification\"\n  dendrer fork --run logistics-run-47 --from tick 21 --policy risk_threshold=0.65 --replay-rest -n\n  dendrer fork logistics-run-47@21 --exec \"cat intents.jsonl\""
    )]
    Fork(fork::Fork): |_| flows("fork", "fork") => fork::run;
    /// Import a transition into a run that has what it was decided on
    #[command(
        visible_alias = "cherry-pick",
        after_help = "Examples:\n  dendrer cherrypick financial-agent-A@23 --into financial-agent-C -n --show-hash\n  dendrer cherrypick --run financial-agent-A --tick 23 --into financial-agent-C"
    )]
    Cherrypick(cherrypick::Cherrypick): |_| flows("cherrypick", "cherrypick") => cherrypick::run;
    /// Propose the intents of a run again on the state of another, as a new run
    #[command(
        after_help = "Examples:\n  dendrer rebase --run logistics-run-47 --onto logistics-planner-1@13 --plan\n  dendrer rebase logistics-run-47 --onto logistics-planner-1@13 --stop-on effectful -n"
    )]
    Rebase(rebase::Rebase): |args| flows("rebase", "rebase").paged(args.plan) => rebase::run;
    /// Begin a new run with what was chosen from several others; no merge of their histories
    #[command(
        after_help = "Examples:\n  dendrer merge --as all --from logistics-run-47 --from planning-run-12 --seed-only -n\n  dendrer merge --as picked --from logistics-run-47@21 --from trip-planner-a --seed-only"
    )]
    Merge(merge::Merge): |_| flows("merge", "merge") => merge::run;
    /// What a merge left open: list, show, resolve
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer merge --as both --from logistics-run-47 --from trip-planner-a --seed-only\n  dendrer conflicts list both"
    )]
    Conflicts(conflicts::ConflictsVerb): |verb| match verb {
        ConflictsVerb::List { .. } => pages("conflicts list", "conflicts"),
        ConflictsVerb::Show { .. } => pages("conflicts show", "conflicts"),
        ConflictsVerb::Resolve(_) => flows("conflicts resolve", "resolved"),
    } => conflicts::run;
    /// What the agent of a run is bound to, why, and until when
    #[command(
        after_help = "Examples:\n  dendrer commitments logistics-run-47\n  dendrer commitments logistics-run-47@12 --status active\n  dendrer commitments logistics-run-47 --format ccas --budget 500"
    )]
    Commitments(commitments::CommitmentsVerb): |verb| match verb.act {
        None if verb.admissible.is_some() => pages("commitments", "admissible").again(),
        None => pages("commitments", "commitments").also(&["ccas"]).again(),
        Some(CommitmentsAct::Why { .. }) => pages("commitments why", "commitment-why").again(),
        Some(CommitmentsAct::Diff { .. }) => pages("commitments diff", "commitment-diff").again(),
        Some(CommitmentsAct::Graph { .. }) => {
            pages("commitments graph", "commitment-graph").also(&["dot", "svg"]).again()
        }
        Some(CommitmentsAct::Epsilon { .. }) => pages("commitments epsilon", "epsilon").again(),
        Some(CommitmentsAct::Delegate { .. }) => flows("commitments delegate", "delegation"),
        Some(CommitmentsAct::Accept { .. }) => flows("commitments accept", "accept"),
    } => commitments::run;
    /// How two agents of a run parted: common ancestor, what each did since, what differs
    #[command(
        after_help = "Examples:\n  dendrer compare logistics-run-47:router logistics-run-47:feed-reader\n  dendrer compare logistics-run-47:router logistics-run-47:feed-reader --profile cfd"
    )]
    Compare(compare::Compare): |_| pages("compare", "compare") => compare::run;
    /// Where the agents of runs branch, diverge, note anomalies or are unsure
    #[command(
        after_help = "Examples:\n  dendrer heatmap logistics-run-47\n  dendrer heatmap logistics-run-47 --metric confidence"
    )]
    Heatmap(heatmap::Heatmap): |_| pages("heatmap", "heatmap") => heatmap::run;
    /// List the steps of runs as witness chains, count them, or join them
    #[command(
        after_help = "Examples:\n  dendrer steps logistics-run-47 --stats\n  dendrer steps logistics-run-47 --by tool_call\n  dendrer steps logistics-run-47 logistics-planner-1 --compose trace"
    )]
    Steps(steps::Steps): |args| match args.compose {
        Some(_) => pages("steps", "composition").also(&["dot", "svg"]).again(),
        None => pages("steps", "steps").again(),
    } => steps::run;
    /// The coherence of steps, and of traces that span several runs
    #[command(
        after_help = "Examples:\n  dendrer coherence logistics-run-47\n  dendrer coherence logistics-run-47 --format svg"
    )]
    Coherence(coherence::Coherence): |_| pages("coherence", "coherence").also(&["svg"]).again() => coherence::run;
    /// Ask whether the steps of a run pass a gate; for CI
    #[command(
        after_help = "Exit code: 0 if every gate passes, 1 if one fails, 6 if one asks for steps that are not there or cannot be judged.\n\nExamples:\n  dendrer assert logistics-run-47 --holds 'by_action(\"tool_call\").exists(s, s.success)'\n  dendrer assert logistics-run-47 --holds 'success_rate(by_action(\"tool_call\")) >= 0.5'"
    )]
    Assert(assert::Assert): |_| pages("assert", "assert").also(&["sarif", "github", "junit"]) => assert::run;
    /// Contracts of packs: list, show, compare and mend them, and check a run against them
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer contract check financial-agent-A\n  dendrer contract show acme.financial/v1\n  dendrer contract lint orders.yaml\n  dendrer contract suggest financial-agent-A financial-agent-B"
    )]
    Contract(contract::ContractVerb):
        |verb| match verb {
        ContractVerb::Check(_) => pages("contract check", "contract-check").also(&["sarif", "github", "junit"]),
        ContractVerb::Extend(_) => flows("contract extend", "contract-extend"),
        ContractVerb::Keygen { .. } => flows("contract keygen", "contract-keygen"),
        ContractVerb::List => pages("contract list", "contracts"),
        ContractVerb::Show(_) => pages("contract show", "contract"),
        ContractVerb::Diff(_) => pages("contract diff", "contract-diff"),
        ContractVerb::Lint { .. } => pages("contract lint", "contract-lint"),
        ContractVerb::Suggest(_) => pages("contract suggest", "contract-suggest"),
    }
        => contract::run;
    /// Execution graphs: check, show, run, list and test what they recorded
    ///
    /// Re-evaluating the graph against a recorded frontier must reproduce the run bit-for-bit, on any machine, at any later date
    /// (Mynd Labs research note R-001).
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer graph check note.graph --pack note.yaml\n  dendrer graph frontier run-84f2"
    )]
    Graph(graph::GraphVerb): |verb| match verb {
        GraphVerb::Check(_) => pages("graph check", "graph-check").also(&["sarif", "github", "junit"]),
        GraphVerb::Show(_) => pages("graph show", "graph").also(&["dot", "svg"]),
        GraphVerb::Run(_) => flows("graph run", "graph-run"),
        GraphVerb::Frontier { .. } => pages("graph frontier", "frontier"),
        GraphVerb::Test(_) => pages("graph test", "graph-test").also(&["sarif", "github", "junit"]),
        GraphVerb::Diff { .. } => pages("graph diff", "graph-diff"),
        GraphVerb::Minimize(_) => pages("graph minimize", "graph-minimize"),
    } => graph::run;
    /// Reduce a recorded run again under another pack, into a new run
    #[command(
        after_help = "Examples:\n  dendrer reduce logistics-run-47 --pack orders.yaml --as logistics-run-47.orders\n  dendrer reduce trip-planner-a --pack orders.yaml --as trip-planner-a.orders --json"
    )]
    Reduce(reduce::Reduce): |_| flows("reduce", "reduce") => reduce::run;
    /// What redaction takes out of a text, and what it would take of a record
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer secrets test note.graph\n  dendrer secrets scan logistics-run-47"
    )]
    Secrets(secrets::SecretsVerb): |verb| match verb {
        SecretsVerb::Test(args) if args.redacted => Shape::text("secrets test"),
        SecretsVerb::Test(args) if args.env => pages("secrets test --env", "secrets-env"),
        SecretsVerb::Test(_) => pages("secrets test", "secrets"),
        SecretsVerb::Scan { .. } => pages("secrets scan", "secrets"),
    } => secrets::run;
    /// Names for moments: list them, put one on RUN or RUN@TICK, take one off
    #[command(
        after_help = "Examples:\n  dendrer label\n  dendrer label before-the-feed logistics-run-47@21\n  dendrer show before-the-feed"
    )]
    Label(label::Label): |_| pages("label", "labels") => label::run;
    /// Remarks on moments: list them, or write one down
    #[command(
        after_help = "Examples:\n  dendrer note\n  dendrer note logistics-run-47@22 \"nobody checked this feed\"\n  dendrer note logistics-run-47"
    )]
    Note(note::NoteArgs): |_| pages("note", "notes") => note::run;
    /// Erase a value of a committed record, its copies and the digests over it
    #[command(
        after_help = "Examples:\n  dendrer erase logistics-run-47@64 intent.description --reason \"names a person\" --although delta -n\n  dendrer erase logistics-run-47@64 intent.description --reason \"names a person\" --also delta -n"
    )]
    Erase(erase::Erase): |_| flows("erase", "erase") => erase::run;
    /// Copy the store while others write to it; the next time, only what followed
    #[command(
        after_help = "Examples:\n  dendrer backup ../traces-backup\n  dendrer backup ../traces-backup --json"
    )]
    Backup(backup::Backup): |_| flows("backup", "backup") => backup::run;
    /// Make a store from a backup
    #[command(
        after_help = "Examples:\n  dendrer restore ../traces-backup restored\n  dendrer restore ../traces-backup restored --replace"
    )]
    Restore(restore::Restore): |_| flows("restore", "restore") => restore::run;
    /// Check every file of the store against its log, and say what damage would cost
    #[command(after_help = "Examples:\n  dendrer fsck\n  dendrer fsck --store restored")]
    Fsck(fsck::Fsck): |_| pages("fsck", "fsck").again() => |global, _, out| fsck::run(global, out);
    /// Remove what follows from the log and is not needed; never the log
    #[command(after_help = "Examples:\n  dendrer gc -n\n  dendrer gc --keep 30d --snapshots thin")]
    Gc(gc::Gc): |_| pages("gc", "gc") => gc::run;
    /// The keys of the log: show and change them, and make the secret of a writer
    #[command(
        subcommand,
        after_help = "Examples:\n  dendrer key show\n  dendrer key writer --out shop.key"
    )]
    Key(key::KeyVerb): |verb| match verb {
        KeyVerb::Show => pages("key show", "key"),
        KeyVerb::Writer(_) => flows("key writer", "key-writer"),
        KeyVerb::Rotate(_) => flows("key rotate", "key-change"),
        KeyVerb::Recover(_) => flows("key recover", "key-change"),
        KeyVerb::Revoke(_) => flows("key revoke", "key-change"),
    } => key::run;
    /// Check the installation, the store, the clock and the disk
    #[command(after_help = "Examples:\n  dendrer doctor\n  dendrer doctor --fix --report support.json\n  dendrer doctor --adopt -n")]
    Doctor(doctor::Doctor): |args| match &args.set_aside {
        Some(_) => flows("doctor --set-aside", "set-aside"),
        None if args.adopt => flows("doctor --adopt", "adopt"),
        None => pages("doctor", "doctor"),
    } => doctor::run;
    /// Explain a code
    #[command(after_help = "Examples:\n  dendrer explain E0301\n  dendrer explain")]
    Explain(explain::Explain): |_| pages("explain", "explain") => explain::run;
    /// Print the JSON Schema of a document
    #[command(after_help = "Examples:\n  dendrer schema show\n  dendrer schema")]
    Schema(schema::Schema): |_| pages("schema", "schemas") => schema::run;
    /// Print the version of the program and of the formats
    #[command(after_help = "Examples:\n  dendrer version\n  dendrer version --json")]
    Version(version::Version): |_| flows("version", "version") => version::run;
    /// Answer over HTTP on this machine, for a browser and for programs
    #[command(after_help = "Examples:\n  dendrer serve\n  dendrer serve --get /runs.json\n  dendrer serve run.dnd --no-open")]
    Serve(serve::Serve): |_| flows("serve", "serve") => serve::run;
    /// Print the manual page of the program, or of a verb
    #[command(after_help = "Examples:\n  dendrer man\n  dendrer man log -o dendrer-log.1")]
    Man(man::Man): |_| Shape::text("man") => |_, args, out| {
        man::run(args, help::page(described(), args.verb.as_deref())?, out)
    };
    /// Print what makes a shell complete verbs, flags, runs and paths
    #[command(
        after_help = "Examples:\n  dendrer completions bash\n  dendrer completions fish -o dendrer.fish"
    )]
    Completions(completions::Completions):
        |_| Shape::text("completions")
        => |_, args, out| completions::run(args, out);
    /// Print help: of all verbs, of one, the flags of every verb, or the table of exit codes
    #[command(after_help = "Examples:\n  dendrer help log\n  dendrer help exit-codes")]
    Help(help::Help):
        |args| pages("help", if args.is_exit_codes() { "exit-codes" } else { "help" })
        => |_, args, out| help::run(args, command(), out);
}

/// The command line as the parser reads it: flags that every verb takes are in the help of the program alone.
pub(crate) fn command() -> clap::Command {
    let command = described();
    let command = match crate::global::asked_width() {
        Some(width) => command.term_width(width.max(dendrer_view::layout::WIDTH_MIN)),
        None => command,
    };
    let text = help::of_program(&command);
    let is_everywhere = |arg: &clap::Arg| arg.is_global_set();
    command.mut_args(|arg| if is_everywhere(&arg) { arg.hide(true) } else { arg }).override_help(text)
}

/// The whole command line with every flag, for manual pages and shells.
pub(crate) fn described() -> clap::Command {
    let mut command = Cli::command();
    let mut topics: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    topics.extend(help::TOPICS.map(str::to_owned));
    let topics = ArgValueCompleter::new(offers::names(topics));
    // In place: `mut_subcommand` would move the verb to the end of the list.
    for (verb, arg) in [("help", "topic"), ("man", "verb")] {
        if let Some(verb) = command.find_subcommand_mut(verb) {
            *verb = std::mem::take(verb).mut_arg(arg, |arg| arg.add(topics.clone()));
        }
    }
    command.after_help(help::exit_codes_and_examples())
}

/// Lets the words of a verb that are no flags begin with `-`: an expression or a text can.
pub(crate) fn take_values_like_flags(command: &mut clap::Command, names: &[String]) {
    let verb = names.iter().try_fold(command, |command, name| command.find_subcommand_mut(name));
    if let Some(verb) = verb {
        *verb = std::mem::take(verb).mut_args(|arg| match arg.is_positional() {
            true => arg.allow_hyphen_values(true),
            false => arg,
        });
    }
}

/// Decides how the answer is written, or refuses flags that exclude each other.
pub(crate) fn form(global: &Global, verb: &Verb) -> Result<Form> {
    shape::form(global, &verb.shape())
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(global: &Global, verb: &Verb, out: &mut Out) -> Result {
    match shape::asks_for_fields(global) {
        true => out.answer(&verb.shape().fields()),
        false => verb.run(global, out),
    }
}

/// Answers `dendrer` alone: the newest runs of the store here, or what to begin with.
pub(crate) fn without_verb(global: &Global, out: &mut Out) -> Result {
    first::run(global, out)
}

/// The form of the answer of `dendrer` alone.
pub(crate) fn form_without_verb(global: &Global) -> Result<Form> {
    shape::form(global, &pages("runs", "runs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
