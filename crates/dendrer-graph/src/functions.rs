//! The pure functions and the effects that a pack names for graphs: `define` and `tools`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_kernel::expr::{Budget, Env, EvalError, Expr, Scope};
use dendrer_kernel::pack::modules::{ModuleFunction, Modules, NotRun};
use dendrer_object::{Object, Value, tag};

use crate::Graph;

/// How many steps one call of a function may take.
const STEPS_MAX: u64 = 10_000_000;

/// The functions of a pack, and its effects with their class.
#[derive(Debug, Clone)]
pub struct Functions {
    scope: Scope,
    /// The parameters of each function.
    functions: BTreeMap<String, Vec<String>>,
    /// The text of each function, as it is written.
    texts: BTreeMap<String, String>,
    /// The faults of functions that cannot be called.
    faults: BTreeMap<String, String>,
    /// The functions that are modules.
    modules: BTreeMap<String, Arc<dyn ModuleFunction>>,
    /// The class of each effect.
    effects: BTreeMap<String, String>,
    /// Whether no pack was given, so that every function and every effect counts as known.
    is_open: bool,
    prepared: BTreeMap<(String, usize), Expr>,
}

/// The class of a function of the host, which is called twice and whose result is recorded.
pub const HOST: &str = "host";

/// The classes of effects: what one does to the world.
const CLASSES: [&str; 4] = [HOST, "read", "idempotent_write", "effectful"];

/// Functions that every graph has.
pub const BUILT_IN: [&str; 2] = ["select", "switch"];

impl Functions {
    /// Any function and any effect: where a graph is looked at without its pack.
    pub fn open() -> Functions {
        Functions { is_open: true, ..Functions::of(&Value::object(), &NotRun) }
    }

    /// The functions and effects of a pack, whatever else is in it, with the engine of its modules. A function that cannot be
    /// read is known and cannot be called.
    pub fn of(pack: &Value, engine: &dyn Modules) -> Functions {
        let members =
            |name: &str| pack.get(name).and_then(Value::as_object).into_iter().flat_map(Object::iter);
        let mut scope = Scope::without_state();
        for (name, value) in members("constants") {
            scope = scope.constant(name, value.clone());
        }
        let (mut functions, mut texts, mut pending) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let (mut faults, mut modules) = (BTreeMap::new(), BTreeMap::new());
        for (head, body) in members("define") {
            let (name, parameters) = head_of(head);
            functions.insert(name.clone(), parameters.clone());
            let Some(text) = body.as_str() else {
                let bytes = body.get("module").and_then(tag::as_bytes);
                let bytes = bytes.ok_or_else(|| "a function is an expression or {module: FILE}".to_owned());
                match bytes.and_then(|bytes| engine.function(&bytes)) {
                    Ok(module) => drop(modules.insert(name, module)),
                    Err(why) => drop(faults.insert(name, why)),
                }
                continue;
            };
            texts.insert(name.clone(), text.to_owned());
            pending.push((name, parameters, text.to_owned()));
        }
        // Their order in a pack means nothing, so each is taken once all that it calls are there.
        while !pending.is_empty() {
            let (before, mut found) = (pending.len(), BTreeMap::new());
            pending.retain(|(name, parameters, text)| {
                let names: Vec<&str> = parameters.iter().map(String::as_str).collect();
                match scope.clone().define(name, &names, text) {
                    Ok(more) => {
                        scope = more;
                        false
                    }
                    Err(error) => {
                        found.insert(name.clone(), error.message.to_string());
                        true
                    }
                }
            });
            if pending.len() == before {
                faults.extend(found);
                break;
            }
        }
        let class = |tool: &Value| tool.get("effect").and_then(Value::as_str).map(str::to_owned);
        let effects = members("tools").filter_map(|(name, tool)| {
            let class = class(tool).filter(|class| CLASSES.contains(&class.as_str()))?;
            Some((name.to_string(), class))
        });
        let effects = effects.collect();
        Functions {
            scope,
            functions,
            texts,
            faults,
            modules,
            effects,
            is_open: false,
            prepared: BTreeMap::new(),
        }
    }

    /// The class of an effect; `None` if the pack does not name it.
    pub fn effect(&self, call: &str) -> Option<&str> {
        self.effects.get(call).map(String::as_str)
    }

    /// Whether a call of an edge may act: its class is `effectful`, or none is declared.
    pub fn is_effectful(&self, call: &str) -> bool {
        self.effect(call).is_none_or(|class| class == "effectful")
    }

    /// Whether a call is that of a host function: the pack declares it under `tools`, and does not define it.
    pub fn is_host(&self, call: &str) -> bool {
        self.effect(call) == Some(HOST) && !BUILT_IN.contains(&call) && !self.functions.contains_key(call)
    }

    /// The host functions that some graphs call.
    pub fn hosts_of<'g>(&self, graphs: impl IntoIterator<Item = &'g Graph>) -> BTreeSet<&'g str> {
        let calls =
            graphs.into_iter().flat_map(Graph::each).filter_map(|statement| Some(statement.call()?.0));
        calls.filter(|call| self.is_host(call)).collect()
    }

    /// Whether no pack was given.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether there is a pure function of this name.
    pub fn has(&self, name: &str) -> bool {
        self.is_open || BUILT_IN.contains(&name) || self.functions.contains_key(name) || self.is_host(name)
    }

    /// The texts of functions that a function uses, its own included, of which one cannot be called. In a text that can be, every
    /// name is a parameter, a variable of a macro, a constant or another definition.
    pub fn unsound_texts_of(&self, name: &str) -> Vec<(&str, &str)> {
        let mut found: BTreeSet<&str> = BTreeSet::new();
        let mut pending = vec![name];
        while let Some(name) = pending.pop() {
            let Some((name, text)) = self.texts.get_key_value(name) else { continue };
            if found.insert(name) {
                pending.extend(
                    words(text).into_iter().filter_map(|word| Some(&**self.texts.get_key_value(word)?.0)),
                );
            }
        }
        let unsound = found.into_iter().filter(|name| self.faults.contains_key(*name));
        unsound.filter_map(|name| Some((name, self.texts.get(name)?.as_str()))).collect()
    }

    /// Whether a word of a function's text is one of its parameters.
    pub fn is_parameter(&self, function: &str, word: &str) -> bool {
        let parameters = self.functions.get(function);
        parameters.is_some_and(|names| names.iter().any(|name| word.split('.').next() == Some(name)))
    }

    /// Makes a function ready to be called with so many arguments.
    pub fn prepare(&mut self, name: &str, arity: usize) -> Result<(), String> {
        let key = (name.to_owned(), arity);
        match name {
            "select" if arity != 3 => return Err(format!("select takes 3 arguments, and not {arity}")),
            "switch" if arity < 4 || !arity.is_multiple_of(2) => {
                return Err(
                    "switch takes a value, pairs of a case and its value, and a value otherwise".to_owned()
                );
            }
            _ if BUILT_IN.contains(&name) && self.functions.contains_key(name) => {
                return Err(format!("{name} is built in, and the pack defines another one"));
            }
            _ => {}
        }
        if BUILT_IN.contains(&name) || self.is_host(name) || self.prepared.contains_key(&key) {
            return Ok(());
        }
        if let Some(why) = self.faults.get(name) {
            return Err(format!("{name}: {why}"));
        }
        let parameters =
            self.functions.get(name).ok_or_else(|| format!("the pack defines no function {name}"))?;
        if parameters.len() != arity {
            return Err(format!("{name} takes {} arguments, and not {arity}", parameters.len()));
        }
        if self.modules.contains_key(name) {
            return Ok(());
        }
        let names: Vec<String> = (0..arity).map(argument_name).collect();
        let scope = names.iter().fold(self.scope.clone(), |scope, name| scope.root(name));
        let text = if arity == 0 { name.to_owned() } else { format!("{name}({})", names.join(", ")) };
        let expr = Expr::parse(&text, &scope).map_err(|error| error.message.to_string())?;
        self.prepared.insert(key, expr);
        Ok(())
    }

    /// Calls a function that was prepared.
    pub fn call(&self, name: &str, args: &[Value]) -> Result<Value, String> {
        match name {
            "select" => return select(args),
            "switch" => return switch(args),
            _ => {}
        }
        if let Some(module) = self.modules.get(name) {
            return module.call(args);
        }
        let expr = self.prepared.get(&(name.to_owned(), args.len()));
        let expr = expr.ok_or_else(|| format!("{name} with {} arguments was not prepared", args.len()))?;
        let names: Vec<String> = (0..args.len()).map(argument_name).collect();
        let others: Vec<(&str, &Value)> = names.iter().map(String::as_str).zip(args).collect();
        let none = Value::object();
        let env = Env { state: &none, counters: None, others: &others };
        expr.evaluate(&env, &mut Budget::new(STEPS_MAX)).map_err(|error| match error {
            EvalError::Uncertain(why) => why.to_string(),
            EvalError::Exhausted => format!("{name} takes more than {STEPS_MAX} steps"),
        })
    }
}

fn argument_name(at: usize) -> String {
    format!("argument_{at}")
}

/// Reads `name` or `name(a, b)`.
fn head_of(head: &str) -> (String, Vec<String>) {
    match head.split_once('(') {
        None => (head.trim().to_owned(), Vec::new()),
        Some((name, rest)) => {
            let inner = rest.trim_end().trim_end_matches(')');
            let names = inner.split(',').map(str::trim).filter(|name| !name.is_empty());
            (name.trim().to_owned(), names.map(str::to_owned).collect())
        }
    }
}

/// The words of an expression, dotted ones whole, without those in texts.
pub(crate) fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (mut begin, mut quote, mut escaped) = (None, None, false);
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        if let Some(open) = quote {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                c if c == open => quote = None,
                _ => {}
            }
            continue;
        }
        let is_part = c.is_ascii_alphanumeric() || c == '_' || (c == '.' && begin.is_some());
        match begin {
            None if is_part && !c.is_ascii_digit() => begin = Some(at),
            Some(from) if !is_part => {
                found.push(text[from..at].trim_end_matches('.'));
                begin = None;
            }
            _ => {}
        }
        if matches!(c, '"' | '\'') {
            quote = Some(c);
        }
    }
    found
}

fn select(args: &[Value]) -> Result<Value, String> {
    match args {
        [condition, yes, no] => match condition.as_bool() {
            Some(true) => Ok(yes.clone()),
            Some(false) => Ok(no.clone()),
            None => Err(format!("select takes true or false, and not {}", condition.described())),
        },
        _ => Err(format!("select takes 3 arguments, and not {}", args.len())),
    }
}

fn switch(args: &[Value]) -> Result<Value, String> {
    let [value, cases @ .., otherwise] = args else {
        return Err("switch takes a value, pairs of a case and its value, and a value otherwise".to_owned());
    };
    if cases.len() % 2 != 0 {
        return Err("switch takes pairs of a case and its value".to_owned());
    }
    let found = cases.chunks(2).find(|pair| pair[0] == *value);
    Ok(found.map_or(otherwise, |pair| &pair[1]).clone())
}
