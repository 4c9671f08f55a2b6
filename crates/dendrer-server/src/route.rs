//! The routes that ask a question: one table for requests, the description of the API and the tests.

use std::sync::OnceLock;

use dendrer::problem::Problem;
use dendrer_object::text::nearest;
use dendrer_object::{Code, Object, Value};
use dendrer_view::schemas;

use crate::path::Target;

/// A path that asks a question.
#[derive(Debug)]
pub(crate) struct Route {
    /// The segments. `{run}` and `{tick}` are any text, every other is itself.
    pub(crate) path: &'static [&'static str],
    /// The name of the schema of the question.
    pub(crate) question: &'static str,
    /// The member of the question that the run of the path is.
    pub(crate) run: RunMember,
    /// Names of the query for members that have another name: `with` for `run_b`.
    pub(crate) names: &'static [(&'static str, &'static str)],
    /// Members with a value if the query has none.
    pub(crate) defaults: &'static [(&'static str, Fixed)],
}

/// The member that the run of a path becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunMember {
    /// The path has no run.
    None,
    /// The run.
    Run(&'static str),
    /// The run and the tick of the path.
    Moment(&'static str),
    /// A list that begins with the run.
    List(&'static str),
    /// `a` and `b` are agents of the run.
    Agents,
}

/// The value of a member that a route gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// A text.
    Text(&'static str),
    /// A number.
    Number(u64),
    /// A flag that is set.
    True,
}

const RUN: &str = "{run}";
const TICK: &str = "{tick}";

const fn route(path: &'static [&'static str], question: &'static str, run: RunMember) -> Route {
    Route { path, question, run, names: &[], defaults: &[] }
}

/// The routes. `GET` of a path answers the question, and `POST /ask/NAME` takes the question as a document.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        defaults: &[("limit", Fixed::Number(200))],
        ..route(&["runs"], "runs-question", RunMember::None)
    },
    route(&["labels"], "label-question", RunMember::None),
    route(&["notes"], "note-question", RunMember::None),
    route(&["predicates"], "predicate-list-question", RunMember::None),
    Route {
        defaults: &[("from", Fixed::Number(0)), ("limit", Fixed::Number(200))],
        ..route(&["run", RUN, "log"], "log-question", RunMember::Run("run"))
    },
    route(&["run", RUN, "transcript"], "transcript-question", RunMember::Run("run")),
    route(&["run", RUN, "timeline"], "timeline-question", RunMember::Run("run")),
    Route {
        defaults: &[("all_of", Fixed::Text("standard"))],
        ..route(&["run", RUN, "first"], "bisect-question", RunMember::Run("run"))
    },
    route(&["run", RUN, "t", TICK, "show"], "show-question", RunMember::Moment("rev")),
    route(&["run", RUN, "t", TICK, "why"], "why-question", RunMember::Moment("rev")),
    route(&["run", RUN, "t", TICK, "state"], "state-question", RunMember::Moment("rev")),
    route(&["run", RUN, "bisect"], "bisect-question", RunMember::Run("run")),
    route(&["run", RUN, "predicate-test"], "predicate-test-question", RunMember::Run("run")),
    route(&["run", RUN, "verify"], "verify-question", RunMember::List("targets")),
    Route {
        names: &[("with", "run_b")],
        ..route(&["run", RUN, "diff"], "diff-question", RunMember::Run("run_a"))
    },
    route(&["run", RUN, "compare"], "compare-question", RunMember::Agents),
    route(&["run", RUN, "backtrack"], "backtrack-question", RunMember::Run("run")),
    Route {
        names: &[("with", "runs")],
        ..route(&["run", RUN, "heatmap"], "heatmap-question", RunMember::List("runs"))
    },
    Route {
        names: &[("with", "runs")],
        ..route(&["run", RUN, "steps"], "steps-question", RunMember::List("runs"))
    },
    Route {
        names: &[("with", "runs")],
        ..route(&["run", RUN, "coherence"], "coherence-question", RunMember::List("runs"))
    },
    route(&["run", RUN, "commitments"], "commitments-question", RunMember::Run("run")),
    route(&["run", RUN, "conflicts"], "conflicts-list-question", RunMember::Run("run")),
    Route {
        defaults: &[("branches", Fixed::True)],
        ..route(&["run", RUN, "branches"], "verify-question", RunMember::List("targets"))
    },
    route(&["run", RUN, "graph"], "graph-show-question", RunMember::Run("run")),
    route(&["run", RUN, "frontier"], "graph-frontier-question", RunMember::Run("run")),
    route(&["run", RUN, "layout"], "layout-question", RunMember::Run("run")),
    route(&["run", RUN, "contract"], "contract-check-question", RunMember::Run("run")),
];

/// Members that write, or that name a file, a key, a contract of another place, or a text of a file.
const REFUSED: &[&str] = &[
    "admissible",
    "approver_key",
    "by",
    "contract",
    "diagnosis",
    "file",
    "key",
    "move",
    "name",
    "pack",
    "pack_a",
    "pack_b",
    "record",
    "remove",
    "text",
    "verifier",
];

/// Refuses a member that is not asked here, under the name that the request has for it.
///
/// # Errors
///
/// E0106 with the name.
pub(crate) fn refuse(name: &str, member: &str, value: &Value) -> Result<(), Problem> {
    if is_refused(member, value) {
        let what = format!("{name} is not asked here: it writes, or names a file, a store or a key");
        return Err(Problem::new(Code::E0106, what));
    }
    Ok(())
}

/// Whether a member of a question that is asked here is refused. The word `standard` names no file.
pub(crate) fn is_refused(member: &str, value: &Value) -> bool {
    let is_file = member == "all_of" && value.as_str() != Some("standard");
    is_file || REFUSED.contains(&member)
}

impl Route {
    /// Finds the route of a path.
    pub(crate) fn find(segments: &[String]) -> Option<&'static Route> {
        ROUTES.iter().find(|route| route.matches(segments))
    }

    fn matches(&self, segments: &[String]) -> bool {
        let is_one = |(known, given): (&&str, &String)| known.starts_with('{') || *known == given;
        self.path.len() == segments.len() && self.path.iter().zip(segments).all(is_one)
    }

    /// Returns the text that the path has at a segment like `{run}`.
    pub(crate) fn part<'t>(&self, name: &str, segments: &'t [String]) -> Option<&'t str> {
        let at = self.path.iter().position(|known| *known == name)?;
        segments.get(at).map(String::as_str)
    }

    /// Makes the document of the question that a request asks.
    ///
    /// # Errors
    ///
    /// E0106 names the word of the query that does not fit.
    pub(crate) fn question(&self, target: &Target) -> Result<Value, Problem> {
        let mut question = Object::default();
        question.set("schema", Value::from(format!("dendrer.{}/1", self.question)));
        self.name_run(&target.segments, &mut question)?;
        for (name, text) in &target.query {
            let member =
                self.names.iter().find(|(known, _)| known == name).map_or(&**name, |(_, member)| member);
            let value = match self.part(RUN, &target.segments).filter(|_| self.run == RunMember::Agents) {
                Some(run) if ["a", "b"].contains(&member) && !text.contains(':') => {
                    Value::from(format!("{run}:{text}"))
                }
                _ => self.member(member, name, text)?,
            };
            refuse(name, member, &value)?;
            set(&mut question, member, name, value)?;
        }
        for (member, fixed) in self.defaults {
            if question.get(member).is_none() {
                question.set(
                    member,
                    match fixed {
                        Fixed::Text(text) => Value::from(*text),
                        Fixed::Number(number) => Value::from(*number),
                        Fixed::True => Value::from(true),
                    },
                );
            }
        }
        Ok(Value::Object(question))
    }

    fn name_run(&self, segments: &[String], question: &mut Object) -> Result<(), Problem> {
        let Some(run) = self.part(RUN, segments) else { return Ok(()) };
        let only = |text: &str| {
            let what =
                format!("{text} is no name of a run: a run of the served source is asked, without a tick");
            Problem::new(Code::E0106, what)
        };
        if run.contains(['@', '#']) {
            return Err(only(run));
        }
        match self.run {
            RunMember::None | RunMember::Agents => {}
            RunMember::Run(member) => question.set(member, Value::from(run)),
            RunMember::List(member) => question.set(member, Value::array([Value::from(run)])),
            RunMember::Moment(member) => {
                let tick = self.part(TICK, segments).unwrap_or_default();
                question.set(member, Value::from(format!("{run}@{tick}")));
            }
        }
        Ok(())
    }

    /// Reads a value of the query by the schema of the member.
    fn member(&self, member: &str, name: &str, text: &str) -> Result<Value, Problem> {
        let Some((_, kind)) = self.members().iter().find(|(known, _)| *known == *member) else {
            let problem = Problem::new(Code::E0106, format!("\"{name}\" is no word of this query"));
            let near = nearest(name, self.members().iter().map(|(known, _)| &**known));
            return Err(near
                .into_iter()
                .fold(problem, |problem, near| problem.note(format!("did you mean {near}?"))));
        };
        let number = || text.parse::<u64>().ok().map(Value::from);
        let wrong = |what: &str| Err(Problem::new(Code::E0106, format!("{name}={text}: {what} is expected")));
        match kind {
            MemberKind::Boolean => match text {
                "true" => Ok(Value::from(true)),
                "false" => Ok(Value::from(false)),
                _ => wrong("true or false"),
            },
            MemberKind::Number => number().map_or_else(|| wrong("a number that counts"), Ok),
            MemberKind::Tick => Ok(number().unwrap_or_else(|| Value::from(text))),
            MemberKind::Text => Ok(Value::from(text)),
            MemberKind::List => Ok(Value::array([Value::from(text)])),
            MemberKind::Other => wrong("a value that no query has"),
        }
    }

    /// Whether a member is the run of the path.
    pub(crate) fn names_run(&self, member: &str) -> bool {
        match self.run {
            RunMember::Run(own) | RunMember::Moment(own) => own == member,
            RunMember::List(own) => own == member && self.names.is_empty(),
            RunMember::None | RunMember::Agents => false,
        }
    }

    /// Returns the members of the question, with their kinds.
    pub(crate) fn members(&self) -> &'static [(String, MemberKind)] {
        static KNOWN: OnceLock<Vec<(&'static str, Vec<(String, MemberKind)>)>> = OnceLock::new();
        let known = KNOWN.get_or_init(|| {
            ROUTES.iter().map(|route| (route.question, members_of(route.question))).collect()
        });
        known.iter().find(|(name, _)| *name == self.question).map_or(&[], |(_, members)| members)
    }
}

/// Adds a value; a list that is there becomes longer.
fn set(question: &mut Object, member: &str, name: &str, value: Value) -> Result<(), Problem> {
    match (question.get(member), &value) {
        (None, _) => question.set(member, value),
        (Some(Value::Array(before)), Value::Array(more)) => {
            let joined = Value::array(before.iter().chain(more.iter()).cloned());
            question.set(member, joined);
        }
        _ => return Err(Problem::new(Code::E0106, format!("{name} is given twice"))),
    }
    Ok(())
}

/// The kind of values that a member of a question has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemberKind {
    /// `true` or `false`.
    Boolean,
    /// A number that counts.
    Number,
    /// A tick, or a text that names one.
    Tick,
    /// A text.
    Text,
    /// A list of texts.
    List,
    /// A value that a query cannot have.
    Other,
}

fn members_of(question: &str) -> Vec<(String, MemberKind)> {
    let schema = schemas::find(question);
    let properties = schema.as_ref().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let known = properties.into_iter().flat_map(Object::iter);
    let own =
        known.filter(|(name, _)| !matches!(&***name, "schema" | "tampered" | "unfinished" | "incomplete"));
    own.map(|(name, schema)| (name.to_string(), kind_of(schema))).collect()
}

/// Returns the kind of values that a schema allows.
fn kind_of(schema: &Value) -> MemberKind {
    let is = |schema: &Value, kind: &str| match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one.as_str() == Some(kind)),
        Some(one) => one.as_str() == Some(kind),
        None => false,
    };
    let choices: Vec<&Value> =
        schema.get("anyOf").and_then(Value::as_array).into_iter().flat_map(|all| all.iter()).collect();
    let any = |kind: &str| is(schema, kind) || choices.iter().any(|one| is(one, kind));
    match () {
        () if any("object") => MemberKind::Other,
        () if any("array") => MemberKind::List,
        () if any("boolean") => MemberKind::Boolean,
        () if any("integer") && any("string") => MemberKind::Tick,
        () if any("integer") => MemberKind::Number,
        () => MemberKind::Text,
    }
}
