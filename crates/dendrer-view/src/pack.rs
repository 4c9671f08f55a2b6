//! Packs: the problems of one, its declarations, and the outcome of its tests.

use std::sync::Arc;

use dendrer::ask::packs::{PackShown, PackTested};
use dendrer::kernel::contract::{Contract, Required};
use dendrer::kernel::pack::modules::{self, NamedModule};
use dendrer::kernel::pack::{Combine, Declared, Effect, Governed, Pack, PackEngine, PackField};
use dendrer::kernel::step::enforced_ids;
use dendrer::pack::convert::{ChangeKind, Converted, PackChange};
use dendrer::pack::{PackProblem, Source, Tested, TextMark, place_words};
use dendrer_object::document::{As, Positive};
use dendrer_object::value::Object;
use dendrer_object::{Code, Digest, Pointer, TypeName, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::contract::{ToolObject, writer_words};
use crate::problem::MarkedText;
use crate::{caret, count, quote};

/// The largest number of problems that are printed for people; a document has them all.
const PROBLEMS_SHOWN: usize = 100;

/// The check of a pack.
#[derive(Debug, Clone, Copy)]
pub struct PackCheckAnswer<'c> {
    /// The path of the pack.
    pub file: &'c str,
    /// The pack, or its problems in the order of the text.
    pub checked: &'c Result<Source, Vec<PackProblem>>,
    /// The stage of the runs that are meant; `None` for any.
    pub stage: Option<u64>,
}

/// A text that was converted.
#[derive(Debug, Clone, Copy)]
pub struct PackConvertAnswer<'c> {
    /// The path of the text that was read.
    pub file: &'c str,
    /// The path of what was written.
    pub new: &'c str,
    /// The pack or the extension, with the differences.
    pub converted: &'c Converted,
}

impl Answer for PackConvertAnswer<'_> {
    fn document(&self) -> Value {
        PackConvertDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let changed = |one: &PackChange| {
            let place =
                if one.place.is_empty() { String::new() } else { format!(" {}", quote::escape(&one.place)) };
            let change = one.change.to_string().replace('_', " ");
            Line::from(format!("line {}: {change}{place}: {}", one.mark.line, quote::escape(&one.reason)))
        };
        let mut lines: Vec<Line> = self.converted.changes.iter().map(changed).collect();
        let what = if self.converted.is_extension { "extension" } else { "pack" };
        lines.push(Line::note(format!("wrote the {what} {}", quote::escape(self.new))));
        lines.extend(
            (!self.converted.is_extension).then(|| Line::help(["dendrer", "pack", "check", self.new])),
        );
        lines
    }
}

impl PackCheckAnswer<'_> {
    fn problems(&self) -> &[PackProblem] {
        self.checked.as_ref().err().map_or(&[], Vec::as_slice)
    }

    /// The ids of rules and hard commitments that the stage does not enforce.
    fn not_enforced(&self) -> Vec<Arc<str>> {
        match (self.checked, self.stage) {
            (Ok(source), Some(0 | 1)) => enforced_ids(Some(source.pack.value()), &[]),
            _ => Vec::new(),
        }
    }
}

document! {
    /// The check of a pack
    pub object PackCheckDocument: "pack-check" (answer: &PackCheckAnswer<'_>) {
        let known = answer.checked.as_ref().ok().map(|source| source.pack.digest());
        let problems = answer.problems().iter().map(|problem| PackProblemObject::of(answer.file, problem));
        /// The path of the pack
        file: &str = answer.file,
        /// Whether the pack has no problem
        ok: bool = known.is_some(),
        /// The digest of the pack; null if it has problems
        digest: Option<Digest> = known,
        /// The stage that was asked about
        stage?: u64 = answer.stage,
        /// Ids of rules and hard commitments that the stage does not enforce
        not_enforced?: Vec<Arc<str>> = Some(answer.not_enforced()).filter(|ids| !ids.is_empty()),
        /// The problems in the order of the text
        items: Vec<PackProblemObject> = problems.collect(),
    }

    /// A problem of a pack
    object PackProblemObject(path: &str, problem: &PackProblem) {
        /// The path of the pack
        file: &str = path,
        /// The line, from 1
        line: usize = problem.mark.line,
        /// The column, from 1
        column: usize = problem.mark.column,
        /// The code
        code: Code = problem.code,
        /// The place in the pack
        place: &str = &problem.place,
        /// The problem in one sentence
        message: &str = &problem.message,
        /// The remedy
        hint: Option<&str> = problem.hint.as_deref(),
    }

    /// The declarations of a pack
    pub object PackDocument: "pack" (shown: &PackShown) {
        let declared = &shown.pack;
        let governed = declared.governed();
        let types = governed.iter().map(|(name, governed)| GovernedType::of(declared, name, governed));
        let named = shown.modules();
        /// The name
        name: &str = &declared.name,
        /// The version
        version: &str = &declared.version,
        /// The digest of the pack
        digest: Digest = declared.digest(),
        /// The reducer
        reducer: PackEngine = declared.engine,
        /// The WebAssembly modules
        modules: Vec<ModuleObject> =
            named.iter().map(|(module, file)| ModuleObject::of(module, file.as_deref())).collect(),
        /// Whether the recorded text has the meaning of the recorded pack; null if there is no text
        text_agrees: Option<bool> = shown.text_agrees,
        /// The fields of the state
        fields: Vec<PackFieldObject> = declared.fields.iter().map(PackFieldObject::of).collect(),
        /// The types that the pack registers or has rules for
        governs: Vec<GovernedType> = types.collect(),
        /// The places of the state that the rules read
        rules_read: Vec<Pointer> = declared.rules_read(),
        /// The tools
        tools: Vec<ToolObject> = declared.tools.iter().map(ToolObject::of).collect(),
        /// The class of effect of tools that are not declared
        undeclared_tools: ["effectful"] = Effect::Effectful.as_str(),
        /// The predicates and obligations
        predicates: Vec<DeclaredPredicate> = declared.declared().map(DeclaredPredicate::of).collect(),
        /// The pack without the bytes of its modules
        pack: As<Object> = As::new(modules::without_bytes(declared.value())),
    }

    /// A field of the state that a pack declares
    object PackFieldObject(field: &PackField) {
        /// The name
        name: &str = &field.name,
        /// The words for people
        words: Option<&str> = field.words.as_deref(),
        /// The number of decimals that are kept
        decimals: Option<u8> = field.decimals,
        /// The rule by which values of several runs are merged
        combine: Option<Combine> = field.combine,
        /// The rules that write it, by number from 1
        written_by: &[usize] = &field.written_by,
    }

    /// A type that a pack registers or has rules for
    object GovernedType(pack: &Pack, name: &TypeName, governed: &Governed) {
        /// The type
        type: &TypeName = name,
        /// Whether the pack registers it
        registered: bool = governed.registered,
        /// The words for people
        words: Option<&str> = pack.types.get(name).and_then(Option::as_deref),
        /// The rules for the type, by number from 1
        rules: &[usize] = &governed.rules,
    }

    /// A predicate or an obligation that a pack declares
    object DeclaredPredicate(declared: &Declared) {
        let predicate = &declared.predicate;
        /// Whether it is an obligation
        obligation: bool = predicate.obligation().is_some(),
        /// The name
        name: &str = predicate.name(),
        /// The words for people
        words: Option<&str> = declared.words.as_deref(),
        /// The question in words
        question: String = predicate.words(),
        /// The digest of the predicate
        digest: Digest = predicate.digest(),
        /// The places of the state that it reads
        reads: &[Pointer] = predicate.read_set(),
    }

    /// A WebAssembly module of a pack
    object ModuleObject(module: &NamedModule, path: Option<&str>) {
        /// The place in the pack, as a JSON pointer
        place: &str = module.place.as_str(),
        /// The digest of the module
        digest: Digest = module.digest,
        /// The number of its bytes
        size: usize = module.size,
        /// The file that the text of the pack names
        file: Option<&str> = path,
    }

    /// A contract or an extension of the dendrer paper that was converted
    pub object PackConvertDocument: "pack-convert" (answer: &PackConvertAnswer<'_>) {
        /// The path of the text that was read
        file: &str = answer.file,
        /// The path of the pack or extension that was written
        output: &str = answer.new,
        /// Whether an extension was written, and not a pack
        extension: bool = answer.converted.is_extension,
        /// The differences, in the order of the text that was read
        items: Vec<PackChangeObject> = answer.converted.changes.iter().map(PackChangeObject::of).collect(),
    }

    /// A place that differs between a text and what it was converted to
    object PackChangeObject(changed: &PackChange) {
        /// The line of the text that was read, from 1
        line: usize = changed.mark.line,
        /// The place in what was written, in the text if it was left out; empty for the whole
        place: &str = &changed.place,
        /// The difference
        change: ChangeKind = changed.change,
        /// The reason
        reason: &str = &changed.reason,
    }

    /// The outcome of the tests of a pack
    pub object PackTestDocument: "pack-test" (tested: &PackTested) {
        /// The name of the pack
        pack: &str = &tested.pack,
        /// The digest of the pack
        digest: Digest = tested.digest,
        /// The number of tests
        tests: usize = tested.tests.len(),
        /// The number of tests that failed
        failed: usize = tested.failed(),
        /// The number of rules of the pack
        rules: usize = tested.rules.len(),
        /// The number of rules that wrote to the state in some test
        rules_exercised: usize = tested.exercised().len(),
        /// The tests
        items: Vec<PackTestObject> =
            tested.tests.iter().map(|(file, test)| PackTestObject::of(file, test)).collect(),
    }

    /// A test of a pack
    object PackTestObject(file: &str, test: &Tested) {
        let fault = |(mark, message): &(TextMark, String)| PackTestFault::of(place_words(file, *mark), message);
        /// The name
        name: &str = &test.name,
        /// The place in the text
        place: String = place_words(file, test.mark),
        /// Whether the test passed
        ok: bool = test.failed.is_empty(),
        /// The expectations that failed
        failed: Vec<PackTestFault> = test.failed.iter().map(fault).collect(),
        /// The rules that wrote to the state in this test, by number from 1
        rules: Vec<Positive> = test.rules.iter().map(|rule| Positive(*rule as u64)).collect(),
    }

    /// An expectation of a test that failed
    object PackTestFault(at: String, words: &str) {
        /// The place in the text
        place: String = at,
        /// The difference in words
        message: &str = words,
    }
}

impl Answer for PackCheckAnswer<'_> {
    fn document(&self) -> Value {
        PackCheckDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let problems = match self.checked {
            Ok(Source { pack, .. }) => {
                let named = format!("  {} {}  {}", pack.name, pack.version, pack.digest());
                let mut lines = vec![Line::styled(Style::Good, "OK").then(named)];
                let ids = self.not_enforced();
                if let (Some(stage), false) = (self.stage, ids.is_empty()) {
                    let ids = ids.iter().map(|id| quote::escape(id)).collect::<Vec<_>>().join(", ");
                    lines.push(Line::styled(
                        Style::Warn,
                        format!("WARN  stage {stage} does not enforce: {ids}"),
                    ));
                }
                return lines;
            }
            Err(problems) => problems,
        };
        let shown = problems.iter().take(PROBLEMS_SHOWN);
        let mut lines: Vec<Line> = shown.flat_map(|problem| problem_lines(self.file, problem)).collect();
        if problems.len() > PROBLEMS_SHOWN {
            lines.push(format!("({} more)", problems.len() - PROBLEMS_SHOWN).into());
        }
        let many = count(problems.len() as u64, "problem", "problems");
        lines.push(Line::note(format!("{many} in {}", self.file)));
        lines
    }

    fn end(&self) -> End {
        if self.checked.is_ok() && self.not_enforced().is_empty() { End::Answered } else { End::No }
    }
}

fn problem_lines(path: &str, problem: &PackProblem) -> Vec<Line> {
    let head = Line::from(format!("{}: ", quote::escape(&place_words(path, problem.mark))))
        .then_styled(Style::Bad, format!("error[{}]:", problem.code))
        .then(format!(" {}", quote::escape(&problem.message)));
    let at = Some(&problem.place).filter(|at| !at.is_empty());
    let at = at.map(|at| Line::from(format!("  | at     {}", quote::escape(at))));
    let hint = problem.hint.as_ref().map(|hint| Line::from(format!("  | hint   {}", quote::escape(hint))));
    let marked = MarkedText::at(&problem.line, problem.mark.column);
    let drawn = marked.iter().flat_map(caret::lines).map(Line::from);
    [Some(head)].into_iter().flatten().chain(drawn).chain([at, hint].into_iter().flatten()).collect()
}

impl Answer for PackShown {
    fn document(&self) -> Value {
        PackDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let pack = &self.pack;
        let title = Line::styled(Style::Strong, format!("{} {}", pack.name, pack.version));
        let mut lines = vec![format!("digest      {}", pack.digest())];
        if self.text_agrees == Some(false) {
            let differs = "the recorded text does not say what the recorded pack says; the pack decides";
            lines.push(format!("text        WARN  {differs}"));
        }
        lines.extend(pack.goal.as_ref().map(|goal| format!("goal        {}", quote::escape(goal))));
        lines.extend(pack.policy.iter().map(|rule| {
            let [id, holds] =
                ["id", "holds"].map(|name| rule.get(name).and_then(Value::as_str).unwrap_or_default());
            format!("policy      {}  {}", quote::escape(id), quote::escape(holds))
        }));
        let rules = match pack.engine {
            PackEngine::Fold => format!(", {}", count(pack.rules() as u64, "rule", "rules")),
            PackEngine::Delta | PackEngine::Wasm => String::new(),
        };
        lines.push(format!("reducer     {}{rules}", pack.engine.as_str()));
        lines.extend(module_lines(self));
        if !pack.named.is_empty() {
            lines.push(format!("names       {}", quote::escape(&pack.named.join(", "))));
        }
        for field in &pack.fields {
            let decimals = field.decimals.map(|decimals| format!("  {decimals} decimals"));
            let (name, by) =
                (quote::escape(&field.name), by_rules(&field.written_by, writer_words(pack.engine)));
            let combine = field.combine.map(|combine| format!("  merged as {}", combine.as_str()));
            let decimals = decimals.unwrap_or_default() + &combine.unwrap_or_default();
            lines
                .push(format!("field       state.{name}  {by}{decimals}{}", meaning(field.words.as_deref())));
        }
        let read = pack.rules_read();
        if !read.is_empty() {
            lines.push(format!("rules read  {}", dotted(&read)));
        }
        lines.extend(type_lines(self));
        for tool in &pack.tools {
            let (name, effect) = (quote::escape(&tool.name), tool.class().as_str());
            lines.push(format!("tool        {name}  {effect}{}", meaning(tool.words.as_deref())));
            let failed = tool.failed.iter().map(|failed| quote::escape(failed.canonical()));
            lines.extend(failed.map(|failed| format!("            failed when {failed}")));
        }
        let other = if pack.tools.is_empty() { "any" } else { "every other" };
        lines.push(format!("tool        ({other})  counts as {}, undeclared", Effect::Effectful.as_str()));
        lines.extend(contract_lines(self));
        for declared in pack.declared() {
            let predicate = &declared.predicate;
            let kind = if predicate.obligation().is_some() { "obligation" } else { "predicate" };
            let (name, question) = (predicate.name(), quote::escape(&predicate.words()));
            lines.push(format!("{kind:<11} {name}  {question}{}", meaning(declared.words.as_deref())));
            lines.push(format!("            reads {}", dotted(predicate.read_set())));
        }
        lines.push(format!("tests       {}", pack.cases.len()));
        let title = title.then(meaning(pack.words.as_deref()));
        [title].into_iter().chain(lines.into_iter().map(Line::from)).collect()
    }
}

/// Writes the words of a declaration on one line, after three blanks; nothing if the pack gives none.
fn meaning(words: Option<&str>) -> String {
    let line = words.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    line.map(|line| format!("   {}", quote::escape(&line))).unwrap_or_default()
}

fn module_lines(shown: &PackShown) -> impl Iterator<Item = String> {
    shown.modules().into_iter().map(|(module, file)| {
        let file = file.map(|file| format!("   {}", quote::escape(&file))).unwrap_or_default();
        let whose = module.place.tokens().nth(1).map(|name| format!("   predicate {}", quote::escape(&name)));
        let (digest, size) = (module.digest, count(module.size as u64, "byte", "bytes"));
        format!("module      {digest}  {size}{file}{}", whose.unwrap_or_default())
    })
}

fn type_lines(shown: &PackShown) -> Vec<String> {
    let pack = &shown.pack;
    let for_all = pack.rules_for_all();
    let mut lines = Vec::new();
    for (name, governed) in &pack.governed() {
        // The last line sums up the types that only a rule for every type governs.
        if !governed.registered && governed.rules == for_all {
            continue;
        }
        let registered = if governed.registered { "registered, " } else { "" };
        let words = meaning(pack.types.get(name).and_then(Option::as_deref));
        let by = by_rules(&governed.rules, "no rule");
        lines.push(format!("type        {name}  {registered}{by}{words}"));
    }
    if !for_all.is_empty() {
        lines.push(format!("type        (every other)  {}", by_rules(&for_all, "no rule")));
    }
    lines
}

fn contract_lines(shown: &PackShown) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, contract) in &shown.pack.contracts.types {
        lines.push(format!("contract    {name}{}", meaning(contract.words.as_deref())));
        let required = contract.required.iter().map(|required| required_words(contract, required));
        lines.extend(required.map(|words| format!("            {}", quote::escape(&words))));
        if !contract.advisory.is_empty() {
            let names = contract.advisory.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
            lines.push(format!("            advisory: {}", quote::escape(&names)));
        }
    }
    lines
}

/// Writes the kind of a required field, and how an import compares it.
fn required_words(contract: &Contract, required: &Required) -> String {
    let mut words = vec![format!("{}: {}", required.name, required.kind.described())];
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
    if places.is_empty() {
        return "nothing of the state".to_owned();
    }
    quote::escape(&places.iter().map(Pointer::in_state).collect::<Vec<_>>().join(", "))
}

impl Answer for PackTested {
    fn document(&self) -> Value {
        PackTestDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        for (file, test) in &self.tests {
            let ok = test.failed.is_empty();
            let mark = if ok { (Style::Good, "OK  ") } else { (Style::Bad, "FAIL") };
            lines.push(Line::styled(mark.0, mark.1).then(format!("  {}", quote::escape(&test.name))));
            lines.extend(test.failed.iter().map(|(mark, message)| {
                let place = quote::escape(&place_words(file, *mark));
                Line::from(format!("      {place}: {}", quote::escape(message)))
            }));
        }
        let tests = count(self.tests.len() as u64, "test", "tests");
        let (failed, exercised, rules) = (self.failed(), self.exercised().len(), self.rules.len());
        lines.push(format!("{tests}, {failed} failed; rules exercised {exercised} of {rules}").into());
        if self.tests.is_empty() {
            lines.push(Line::note("note: the pack carries no tests; add `tests:` or give --cases FILE"));
        } else {
            lines.extend(self.idle().map(|name| {
                Line::note(format!("note: in no test does {} write anything", quote::escape(name)))
            }));
        }
        lines
    }

    fn end(&self) -> End {
        match self.failed() {
            // A gate in CI never passes on nothing.
            0 if self.tests.is_empty() => End::Unknown,
            0 => End::Answered,
            _ => End::No,
        }
    }
}
