//! The pure functions and the effects that a pack names for graphs: `define` and `tools`.

use std::collections::{BTreeMap, BTreeSet};

use dendrer_kernel::expr::{Budget, Env, EvalError, Expr, Scope};
use dendrer_object::{Object, Value};

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
    /// The class of each effect.
    effects: BTreeMap<String, String>,
    prepared: BTreeMap<(String, usize), Expr>,
}

/// Functions that every graph has.
pub const BUILT_IN: [&str; 2] = ["select", "switch"];

impl Functions {
    /// The functions and effects of a pack without rules, contracts and everything else in it.
    pub fn of(pack: &Value) -> Result<Functions, String> {
        let members = |name: &str| pack.get(name).and_then(Value::as_object).into_iter().flat_map(Object::iter);
        let mut scope = Scope::without_state();
        for (name, value) in members("constants") {
            scope = scope.constant(name, value.clone());
        }
        let (mut functions, mut texts, mut pending) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        for (head, body) in members("define") {
            let (name, parameters) = head_of(head);
            let text = body.as_str().ok_or_else(|| format!("define.{head}: a function is an expression; modules as functions are not run yet"))?;
            functions.insert(name.clone(), parameters.clone());
            texts.insert(name.clone(), text.to_owned());
            pending.push((name, parameters, text.to_owned()));
        }
        // Their order in a pack means nothing, so each is taken once all that it calls are there.
        while !pending.is_empty() {
            let (before, mut first) = (pending.len(), None);
            pending.retain(|(name, parameters, text)| {
                let names: Vec<&str> = parameters.iter().map(String::as_str).collect();
                match scope.clone().define(name, &names, text) {
                    Ok(more) => {
                        scope = more;
                        false
                    }
                    Err(error) => {
                        first.get_or_insert_with(|| format!("define.{name}: {}", error.message));
                        true
                    }
                }
            });
            if pending.len() == before {
                return Err(first.unwrap_or_default());
            }
        }
        let class = |tool: &Value| tool.get("effect").and_then(Value::as_str).unwrap_or("effectful").to_owned();
        let effects = members("tools").map(|(name, tool)| (name.to_string(), class(tool))).collect();
        Ok(Functions { scope, functions, texts, effects, prepared: BTreeMap::new() })
    }

    /// The class of an effect; `None` if the pack does not name it.
    pub fn effect(&self, call: &str) -> Option<&str> {
        self.effects.get(call).map(String::as_str)
    }

    /// Whether there is a pure function of this name.
    pub fn has(&self, name: &str) -> bool {
        BUILT_IN.contains(&name) || self.functions.contains_key(name)
    }

    /// The texts of functions that a function uses, its own included.
    pub fn texts_of(&self, name: &str) -> Vec<(&str, &str)> {
        let mut found: BTreeSet<&str> = BTreeSet::new();
        let mut pending = vec![name];
        while let Some(name) = pending.pop() {
            let Some((name, text)) = self.texts.get_key_value(name) else { continue };
            if found.insert(name) {
                pending.extend(words(text).into_iter().filter_map(|word| Some(&**self.texts.get_key_value(word)?.0)));
            }
        }
        found.into_iter().filter_map(|name| Some((name, self.texts.get(name)?.as_str()))).collect()
    }

    /// Makes a function ready to be called with so many arguments.
    pub fn prepare(&mut self, name: &str, arity: usize) -> Result<(), String> {
        let key = (name.to_owned(), arity);
        if BUILT_IN.contains(&name) || self.prepared.contains_key(&key) {
            return Ok(());
        }
        let parameters = self.functions.get(name).ok_or_else(|| format!("the pack defines no function {name}"))?;
        if parameters.len() != arity {
            return Err(format!("{name} takes {} arguments, and not {arity}", parameters.len()));
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
