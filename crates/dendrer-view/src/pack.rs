//! Packs: the problems of one, its declarations, and the outcome of its tests.

use dendrer::ask::packs::{PackShown, PackTested};
use dendrer::kernel::contract::{Contract, Required};
use dendrer::kernel::pack::modules;
use dendrer::kernel::pack::{Combine, Effect, PackEngine};
use dendrer::pack::{PackProblem, Source, place_words};
use dendrer_object::{Pointer, Value};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::contract::writer_words;
use crate::{count, document, quote};

/// How many problems are printed for people; a document has them all.
const PROBLEMS_SHOWN: usize = 100;

/// The check of a pack.
#[derive(Debug, Clone, Copy)]
pub struct PackCheckAnswer<'c> {
    /// The path of the pack.
    pub file: &'c str,
    /// The pack, or its problems in the order of the text.
    pub checked: &'c Result<Source, Vec<PackProblem>>,
}

impl PackCheckAnswer<'_> {
    fn problems(&self) -> &[PackProblem] {
        self.checked.as_ref().err().map_or(&[], Vec::as_slice)
    }
}

impl Answer for PackCheckAnswer<'_> {
    fn document(&self) -> Value {
        let items = self.problems().iter().map(|problem| problem_json(self.file, problem));
        let digest = self.checked.as_ref().ok().map(|source| source.pack.digest());
        let members = [
            ("file", Value::from(self.file)),
            ("ok", Value::from(digest.is_some())),
            ("digest", Value::from(digest)),
            ("items", Value::array(items)),
        ];
        document("pack-check", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let problems = match self.checked {
            Ok(Source { pack, .. }) => {
                let named = format!("  {} {}  {}", pack.name, pack.version, pack.digest());
                return vec![Line::styled(Style::Good, "OK").then(named)];
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
        if self.checked.is_ok() { End::Answered } else { End::No }
    }
}

fn problem_lines(path: &str, problem: &PackProblem) -> Vec<Line> {
    let head = Line::from(format!("{}: ", quote::escape(&place_words(path, problem.mark))))
        .then_styled(Style::Bad, format!("error[{}]:", problem.code))
        .then(format!(" {}", quote::escape(&problem.message)));
    let at = Some(&problem.place).filter(|at| !at.is_empty());
    let at = at.map(|at| Line::from(format!("  | at     {}", quote::escape(at))));
    let hint = problem.hint.as_ref().map(|hint| Line::from(format!("  | hint   {}", quote::escape(hint))));
    [Some(head), at, hint].into_iter().flatten().collect()
}

fn problem_json(path: &str, problem: &PackProblem) -> Value {
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

impl Answer for PackShown {
    fn document(&self) -> Value {
        let pack = &self.pack;
        let places =
            |places: &[Pointer]| Value::array(places.iter().map(|place| Value::from(place.written())));
        let fields = pack.fields.iter().map(|field| {
            Value::record([
                ("name", Value::from(&*field.name)),
                ("words", Value::from(field.words.as_deref())),
                ("decimals", Value::from(field.decimals.map(u64::from))),
                ("combine", Value::from(field.combine.map(Combine::as_str))),
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
                ("effect", Value::from(tool.class().as_str())),
                ("failed", Value::from(tool.failed.as_ref().map(|failed| failed.canonical()))),
                ("words", Value::from(tool.words.as_deref())),
            ])
        });
        let modules = self.modules().into_iter().map(|(module, file)| {
            Value::record([
                ("place", Value::from(module.place.as_str())),
                ("digest", Value::from(module.digest)),
                ("size", Value::from(module.size as u64)),
                ("file", Value::from(file)),
            ])
        });
        let members = [
            ("name", Value::from(&*pack.name)),
            ("version", Value::from(&*pack.version)),
            ("digest", Value::from(pack.digest())),
            ("reducer", Value::from(pack.engine.as_str())),
            ("modules", Value::array(modules)),
            ("text_agrees", Value::from(self.text_agrees)),
            ("fields", Value::array(fields)),
            ("governs", Value::array(governs)),
            ("rules_read", places(&pack.rules_read())),
            ("tools", Value::array(tools)),
            ("undeclared_tools", Value::from(Effect::Effectful.as_str())),
            ("predicates", Value::array(predicates)),
            ("pack", modules::without_bytes(pack.value())),
        ];
        document("pack", members)
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

fn numbers(rules: &[usize]) -> Value {
    Value::array(rules.iter().map(|rule| Value::from(*rule as u64)))
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
    if places.is_empty() {
        return "nothing of the state".to_owned();
    }
    quote::escape(&places.iter().map(Pointer::in_state).collect::<Vec<_>>().join(", "))
}

impl Answer for PackTested {
    fn document(&self) -> Value {
        let items = self.tests.iter().map(|(file, test)| {
            let failed = test.failed.iter().map(|(mark, message)| {
                let place = Value::from(place_words(file, *mark));
                Value::record([("place", place), ("message", Value::from(message.as_str()))])
            });
            Value::record([
                ("name", Value::from(&*test.name)),
                ("place", Value::from(place_words(file, test.mark))),
                ("ok", Value::from(test.failed.is_empty())),
                ("failed", Value::array(failed)),
                ("rules", Value::array(test.rules.iter().map(|rule| Value::from(*rule as u64)))),
            ])
        });
        let members = [
            ("pack", Value::from(&*self.pack)),
            ("digest", Value::from(self.digest)),
            ("tests", Value::from(self.tests.len() as u64)),
            ("failed", Value::from(self.failed() as u64)),
            ("rules", Value::from(self.rules.len() as u64)),
            ("rules_exercised", Value::from(self.exercised().len() as u64)),
            ("items", Value::array(items)),
        ];
        document("pack-test", members)
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
        if self.failed() == 0 { End::Answered } else { End::No }
    }
}
