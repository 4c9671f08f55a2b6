//! `dendrer pack`: check a pack, show what it declares, run its tests.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::{Args, Subcommand};
use dendrer::kernel::contract::{Contract, Required};
use dendrer::kernel::pack::modules::{self, Named};
use dendrer::kernel::pack::{Effect, Engine, Pack};
use dendrer::pack::{self, Problem, Source, Tested};
use dendrer_object::{Pointer, Value};
use dendrer_view::contract::writer_words;
use dendrer_view::{count, document, problem, quote};

use crate::address::Rev;
use crate::context;
use crate::context::packs::beside;
use crate::context::packs::load;
use crate::context::packs::place;
use crate::context::packs::read_file;
use crate::context::packs::unsound;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::out::Style;

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

/// How many problems are printed for people; a document has them all.
const PROBLEMS_SHOWN: usize = 100;

pub(crate) fn run(global: &Global, verb: &PackVerb, out: &mut Out) -> Result {
    match verb {
        PackVerb::Check(args) => check(args, out),
        PackVerb::Show(args) => show(global, args, out),
        PackVerb::Test(args) => test(args, out),
    }
}

fn check(args: &PackCheck, out: &mut Out) -> Result {
    let (pack, problems) = match pack::read_with(&read_file(&args.file)?, beside(&args.file)) {
        Ok(source) => (Some(source.pack), Vec::new()),
        Err(problems) => (None, problems),
    };
    if !out.is_text() {
        let items = problems.iter().map(|problem| problem_json(&args.file, problem));
        let members = [
            ("file", Value::from(args.file.as_str())),
            ("ok", Value::from(pack.is_some())),
            ("digest", Value::from(pack.as_ref().map(Pack::digest))),
            ("items", Value::array(items)),
        ];
        out.document(&document("pack-check", members))?;
        return Ok(u8::from(pack.is_none()));
    }
    for problem in problems.iter().take(PROBLEMS_SHOWN) {
        let head = out.paint(Style::Bad, &format!("error[{}]:", problem.code));
        out.line(format!(
            "{}: {head} {}",
            quote::escape(&place(&args.file, problem.mark)),
            quote::escape(&problem.message)
        ))?;
        if !problem.place.is_empty() {
            out.line(format!("  | at     {}", quote::escape(&problem.place)))?;
        }
        if let Some(hint) = &problem.hint {
            out.line(format!("  | hint   {}", quote::escape(hint)))?;
        }
    }
    match &pack {
        Some(pack) => {
            let ok = out.paint(Style::Good, "OK");
            out.line(format!("{ok}  {} {}  {}", pack.name, pack.version, pack.digest()))?;
            Ok(0)
        }
        None => {
            if problems.len() > PROBLEMS_SHOWN {
                out.line(format!("({} more)", problems.len() - PROBLEMS_SHOWN))?;
            }
            out.say(format!("{} in {}", count(problems.len() as u64, "problem", "problems"), args.file));
            Ok(1)
        }
    }
}

fn problem_json(path: &str, problem: &Problem) -> Value {
    Value::record([
        ("file", Value::from(path)),
        ("line", Value::from(problem.mark.line as u64)),
        ("column", Value::from(problem.mark.column as u64)),
        ("code", Value::from(problem.code)),
        ("place", Value::from(problem.place.as_str())),
        ("message", Value::from(problem.message.as_str())),
        ("hint", Value::from(problem.hint.as_deref())),
    ])
}

/// A pack, and where it was found.
struct Shown {
    pack: Pack,
    /// Whether the recorded text says what the recorded pack says; `None` for a file.
    text_agrees: Option<bool>,
    /// The text, which says what the files of modules are called.
    text: Option<Arc<str>>,
}

impl Shown {
    /// The modules of the pack, each with what its text calls the file.
    fn modules(&self) -> Vec<(Named, Option<String>)> {
        let text = self.text.as_deref().and_then(|text| pack::yaml::Document::read(text.as_bytes()).ok());
        let named = |module: Named| {
            let file = text.as_ref().and_then(|text| module.place.get(&text.value)?.as_str());
            let file = file.map(str::to_owned);
            (module, file)
        };
        modules::named(self.pack.value()).into_iter().map(named).collect()
    }
}

fn show(global: &Global, args: &PackShow, out: &mut Out) -> Result {
    let shown = if std::path::Path::new(&args.target).is_file() && !args.target.ends_with(".dnd") {
        let Source { pack, text, .. } = load(&args.target)?;
        Shown { pack, text_agrees: None, text: Some(text) }
    } else {
        let rev = Rev::parse(&args.target)?;
        let source = context::source(global, &rev, out)?;
        let trace = source.trace(&rev)?;
        if args.text {
            return match dendrer::run::pack::text_of_run(&trace) {
                Some((text, agrees)) => {
                    out.bytes(text.as_bytes())?;
                    if !agrees {
                        out.say("warning: this text does not say what the pack of the run says, and the pack is in force");
                        out.help(&["dendrer", "pack", "show", &args.target]);
                    }
                    Ok(if agrees { 0 } else { 4 })
                }
                None => Err(no_pack(trace.name().as_str())),
            };
        }
        let Some(pack) = dendrer::run::pack::of_run(&trace)? else {
            return Err(no_pack(trace.name().as_str()));
        };
        let text = dendrer::run::pack::text_of_run(&trace);
        let agrees = text.as_ref().is_some_and(|(_, agrees)| *agrees);
        Shown { pack, text_agrees: Some(agrees), text: text.map(|(text, _)| text) }
    };
    if out.is_text() { show_text(&shown, out) } else { out.document(&show_json(&shown)).map(|()| 0) }
}

fn no_pack(run: &str) -> Failure {
    problem::no_pack(Failure::new("E0909", format!("{run} has no pack")), run)
}

fn show_text(shown: &Shown, out: &mut Out) -> Result {
    let pack = &shown.pack;
    let words = |words: &Option<std::sync::Arc<str>>| {
        let line = words.as_deref().map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        line.map(|line| format!("   {}", quote::escape(&line))).unwrap_or_default()
    };
    let title = out.paint(Style::Strong, &format!("{} {}", pack.name, pack.version));
    out.line(format!("{title}{}", words(&pack.words)))?;
    out.line(format!("digest      {}", pack.digest()))?;
    if shown.text_agrees == Some(false) {
        out.line(
            "text        WARN  the recorded text does not say what the recorded pack says; the pack decides",
        )?;
    }
    if let Some(goal) = &pack.goal {
        out.line(format!("goal        {}", quote::escape(goal)))?;
    }
    let rules = match pack.engine {
        Engine::Fold => format!(", {}", count(pack.rules() as u64, "rule", "rules")),
        Engine::Delta | Engine::Wasm => String::new(),
    };
    out.line(format!("reducer     {}{rules}", pack.engine.as_str()))?;
    for (module, file) in shown.modules() {
        let file = file.map(|file| format!("   {}", quote::escape(&file))).unwrap_or_default();
        let whose = module.place.tokens().nth(1).map(|name| format!("   predicate {}", quote::escape(&name)));
        let (digest, size) = (module.digest, count(module.size as u64, "byte", "bytes"));
        out.line(format!("module      {digest}  {size}{file}{}", whose.unwrap_or_default()))?;
    }
    if !pack.named.is_empty() {
        out.line(format!("names       {}", quote::escape(&pack.named.join(", "))))?;
    }
    for field in &pack.fields {
        let decimals = field.decimals.map(|decimals| format!("  {decimals} decimals")).unwrap_or_default();
        let by = by_rules(&field.written_by, writer_words(pack.engine));
        let name = quote::escape(&field.name);
        out.line(format!("field       state.{name}  {by}{decimals}{}", words(&field.words)))?;
    }
    let read = pack.rules_read();
    if !read.is_empty() {
        out.line(format!("rules read  {}", dotted(&read)))?;
    }
    let for_all = pack.rules_for_all();
    for (name, governed) in &pack.governed() {
        // What only a rule for every type governs is summed up below.
        if !governed.registered && governed.rules == for_all {
            continue;
        }
        let registered = if governed.registered { "registered, " } else { "" };
        let meaning = words(pack.types.get(name).unwrap_or(&None));
        out.line(format!(
            "type        {name}  {registered}{}{meaning}",
            by_rules(&governed.rules, "no rule")
        ))?;
    }
    if !for_all.is_empty() {
        out.line(format!("type        (every other)  {}", by_rules(&for_all, "no rule")))?;
    }
    for tool in &pack.tools {
        out.line(format!(
            "tool        {}  {}{}",
            quote::escape(&tool.name),
            tool.effect.as_str(),
            words(&tool.words)
        ))?;
    }
    let other = if pack.tools.is_empty() { "any" } else { "every other" };
    out.line(format!("tool        ({other})  counts as {}, undeclared", Effect::Effectful.as_str()))?;
    for (name, contract) in &pack.contracts.types {
        out.line(format!("contract    {name}{}", words(&contract.words)))?;
        for required in &contract.required {
            out.line(format!("            {}", quote::escape(&required_words(contract, required))))?;
        }
        if !contract.advisory.is_empty() {
            let names = contract.advisory.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
            out.line(format!("            advisory: {}", quote::escape(&names)))?;
        }
    }
    for declared in pack.declared() {
        let predicate = &declared.predicate;
        let kind = if predicate.obligation().is_some() { "obligation" } else { "predicate" };
        out.line(format!(
            "{kind:<11} {}  {}{}",
            predicate.name(),
            quote::escape(&predicate.words()),
            words(&declared.words)
        ))?;
        out.line(format!("            reads {}", dotted(predicate.read_set())))?;
    }
    out.line(format!("tests       {}", pack.cases.len()))?;
    Ok(0)
}

/// Says of a required field what it must be, and how an import compares it.
fn required_words(contract: &Contract, required: &Required) -> String {
    let mut words = vec![format!("{}: {}", required.name, required.kind)];
    words.extend(required.precision.map(|decimals| format!("{decimals} decimals")));
    words.extend(required.nullable.then(|| "may be null".to_owned()));
    words.extend(contract.seeds.contains(&required.name).then(|| "seeds the hash".to_owned()));
    words.push(format!("import: {}", contract.rule(&required.name)));
    words.join(", ")
}

/// Names rules by their numbers.
fn by_rules(numbers: &[usize], none: &str) -> String {
    let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
    match &numbers[..] {
        [] => none.to_owned(),
        [one] => format!("rule {one}"),
        many => format!("rules {}", many.join(", ")),
    }
}

fn dotted(places: &[Pointer]) -> String {
    let place = |place: &Pointer| match place.as_str() {
        "" => "state".to_owned(),
        _ => format!("state.{}", place.dotted()),
    };
    if places.is_empty() {
        return "nothing of the state".to_owned();
    }
    quote::escape(&places.iter().map(place).collect::<Vec<_>>().join(", "))
}

fn show_json(shown: &Shown) -> Value {
    let pack = &shown.pack;
    let places = |places: &[Pointer]| Value::array(places.iter().map(|place| Value::from(place.as_str())));
    let numbers = |rules: &[usize]| Value::array(rules.iter().map(|rule| Value::from(*rule as u64)));
    let fields = pack.fields.iter().map(|field| {
        Value::record([
            ("name", Value::from(&*field.name)),
            ("words", Value::from(field.words.as_deref())),
            ("decimals", Value::from(field.decimals.map(u64::from))),
            ("written_by", numbers(&field.written_by)),
        ])
    });
    let governs = pack.governed().into_iter().map(|(name, governed)| {
        Value::record([
            ("type", Value::from(name.as_str())),
            ("registered", Value::from(governed.registered)),
            ("words", Value::from(pack.types.get(&name).and_then(Option::as_deref))),
            ("rules", numbers(&governed.rules)),
        ])
    });
    let predicates = pack.declared().map(|declared| {
        let predicate = &declared.predicate;
        Value::record([
            ("obligation", Value::from(predicate.obligation().is_some())),
            ("name", Value::from(predicate.name())),
            ("words", Value::from(declared.words.as_deref())),
            ("question", Value::from(predicate.words())),
            ("digest", Value::from(predicate.digest())),
            ("reads", places(predicate.read_set())),
        ])
    });
    let tools = pack.tools.iter().map(|tool| {
        Value::record([
            ("name", Value::from(&*tool.name)),
            ("effect", Value::from(tool.effect.as_str())),
            ("words", Value::from(tool.words.as_deref())),
        ])
    });
    let modules = shown.modules().into_iter().map(|(module, file)| {
        Value::record([
            ("place", Value::from(module.place.as_str())),
            ("digest", Value::from(module.digest)),
            ("size", Value::from(module.size as u64)),
            ("file", Value::from(file)),
        ])
    });
    document(
        "pack",
        [
            ("name", Value::from(&*pack.name)),
            ("version", Value::from(&*pack.version)),
            ("digest", Value::from(pack.digest())),
            ("reducer", Value::from(pack.engine.as_str())),
            ("modules", Value::array(modules)),
            ("text_agrees", Value::from(shown.text_agrees)),
            ("fields", Value::array(fields)),
            ("governs", Value::array(governs)),
            ("rules_read", places(&pack.rules_read())),
            ("tools", Value::array(tools)),
            ("undeclared_tools", Value::from(Effect::Effectful.as_str())),
            ("predicates", Value::array(predicates)),
            ("pack", modules::without_bytes(pack.value())),
        ],
    )
}

fn test(args: &PackTest, out: &mut Out) -> Result {
    let source = load(&args.file)?;
    let mut tested: Vec<(&str, Tested)> =
        source.test().into_iter().map(|test| (args.file.as_str(), test)).collect();
    if let Some(cases) = &args.cases {
        let more = source.test_with(&read_file(cases)?).map_err(|problems| unsound(cases, &problems))?;
        tested.extend(more.into_iter().map(|test| (cases.as_str(), test)));
    }
    // What a limit ended has neither passed nor failed, and no count can be given.
    let at = tested.iter_mut().find_map(|(file, test)| Some((*file, test.stopped.take()?, &test.name)));
    if let Some((file, (mark, error), name)) = at {
        return Err(Failure::from(error).at("test", &**name).at("place", place(file, mark)));
    }
    let failed = tested.iter().filter(|(_, test)| !test.failed.is_empty()).count();
    let exercised: BTreeSet<usize> = tested.iter().flat_map(|(_, test)| test.rules.iter().copied()).collect();
    let rules = source.pack.rules();
    let idle: Vec<&str> = (1..)
        .zip(source.pack.rule_names())
        .filter(|(number, _)| !exercised.contains(number))
        .map(|(_, name)| name)
        .collect();
    if !out.is_text() {
        let items = tested.iter().map(|(file, test)| {
            let failed = test.failed.iter().map(|(mark, message)| {
                let place = Value::from(place(file, *mark));
                Value::record([("place", place), ("message", Value::from(message.as_str()))])
            });
            Value::record([
                ("name", Value::from(&*test.name)),
                ("place", Value::from(place(file, test.mark))),
                ("ok", Value::from(test.failed.is_empty())),
                ("failed", Value::array(failed)),
                ("rules", Value::array(test.rules.iter().map(|rule| Value::from(*rule as u64)))),
            ])
        });
        let members = [
            ("pack", Value::from(&*source.pack.name)),
            ("digest", Value::from(source.pack.digest())),
            ("tests", Value::from(tested.len() as u64)),
            ("failed", Value::from(failed as u64)),
            ("rules", Value::from(rules as u64)),
            ("rules_exercised", Value::from(exercised.len() as u64)),
            ("items", Value::array(items)),
        ];
        out.document(&document("pack-test", members))?;
        return Ok(u8::from(failed > 0));
    }
    for (file, test) in &tested {
        let ok = test.failed.is_empty();
        let mark = if ok { out.paint(Style::Good, "OK  ") } else { out.paint(Style::Bad, "FAIL") };
        out.line(format!("{mark}  {}", quote::escape(&test.name)))?;
        for (mark, message) in &test.failed {
            out.line(format!("      {}: {}", quote::escape(&place(file, *mark)), quote::escape(message)))?;
        }
    }
    let tests = count(tested.len() as u64, "test", "tests");
    out.line(format!("{tests}, {failed} failed; rules exercised {} of {rules}", exercised.len()))?;
    match tested.is_empty() {
        true => out.say("note: the pack carries no tests; add `tests:` or give --cases FILE"),
        false => idle.iter().for_each(|name| {
            out.say(format!("note: in no test does {} write anything", quote::escape(name)));
        }),
    }
    Ok(u8::from(failed > 0))
}
