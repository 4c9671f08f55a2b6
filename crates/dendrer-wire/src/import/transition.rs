//! The transition that one item of a source becomes.
//!
//! A format reads the type, the agent, the calls and the oddities of an item at once; its intent is built only if it is
//! used, because a plan looks at most items without one.

use std::borrow::Cow;

use dendrer_object::value::Object;
use dendrer_object::{Delta, Digest, Intent, TypeName, Value, tag};

use super::calls::{Call, Contested};
use super::note::{At, ImportNote, NoteKind};

/// The transition of one item.
pub(crate) struct Step<'m> {
    pub(crate) notes: Vec<ImportNote>,
    /// The calls it asks for.
    pub(crate) calls: Vec<Call>,
    /// The record it answers.
    pub(crate) cause: Option<Digest>,
    /// The calls that it may answer, where it is not known which.
    pub(crate) contested: Vec<Contested>,
    /// Its metrics, beside those that its intent has.
    pub(crate) metrics: Vec<(&'static str, Value)>,
    /// The change of state, if its intent has none.
    pub(crate) delta: Option<Delta>,
    content: Content<'m>,
}

/// The intent of a step.
enum Content<'m> {
    Built(Intent),
    /// An intent that is built when it is asked for.
    Later {
        type_name: &'static str,
        agent: Cow<'m, str>,
        /// Whether it is a result that says that its call failed.
        is_error: bool,
        build: Box<dyn FnOnce() -> Intent + 'm>,
    },
}

impl<'m> Step<'m> {
    /// A step whose intent is known.
    pub(crate) fn new(intent: Intent) -> Step<'m> {
        Step::of(Content::Built(intent))
    }

    /// A step whose intent `build` makes; `is_error` marks a result that says that its call failed.
    pub(crate) fn later(
        type_name: &'static str,
        agent: Cow<'m, str>,
        is_error: bool,
        build: impl FnOnce() -> Intent + 'm,
    ) -> Step<'m> {
        Step::of(Content::Later { type_name, agent, is_error, build: Box::new(build) })
    }

    /// The step of an item that cannot be read.
    pub(crate) fn lost(content: Value) -> Step<'m> {
        let words = Value::record([("content", content), ("role", Value::Null)]);
        Step::new(Intent::new(name_of("observation.add"), "unknown").with("intent", words))
    }

    /// The step of an item that has another shape than its format asks for, which `text` says.
    pub(crate) fn unreadable(item: &Value, at: At<'_>, text: String) -> Step<'m> {
        let notes = vec![ImportNote::new(NoteKind::MessageUnreadable, at, text)];
        Step { notes, ..Step::lost(item.clone()) }
    }

    fn of(content: Content<'m>) -> Step<'m> {
        let (notes, calls, contested, metrics) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Step { notes, calls, cause: None, contested, metrics, delta: None, content }
    }

    /// The type of its transition.
    pub(crate) fn type_name(&self) -> &str {
        match &self.content {
            Content::Built(intent) => intent.type_name.as_str(),
            Content::Later { type_name, .. } => type_name,
        }
    }

    /// The agent of its transition.
    pub(crate) fn agent(&self) -> &str {
        match &self.content {
            Content::Built(intent) => &intent.agent,
            Content::Later { agent, .. } => agent,
        }
    }

    /// Whether it is a result that says that its call failed.
    pub(crate) fn is_error(&self) -> bool {
        match &self.content {
            Content::Built(intent) => {
                let status = intent.member("result").and_then(|result| result.get("status")?.as_str());
                intent.type_name.as_str() == "action.result" && status.is_some_and(|status| status != "ok")
            }
            Content::Later { is_error, .. } => *is_error,
        }
    }

    /// A metric that its intent has already.
    pub(crate) fn metric(&self, name: &str) -> Option<Value> {
        match &self.content {
            Content::Built(intent) => intent.member("metrics")?.get(name).cloned(),
            Content::Later { .. } => None,
        }
    }

    /// Makes its intent.
    pub(crate) fn into_intent(self) -> Intent {
        let mut intent = match self.content {
            Content::Built(intent) => intent,
            Content::Later { build, .. } => build(),
        };
        intent.delta = intent.delta.or(self.delta);
        if self.metrics.is_empty() {
            return intent;
        }
        let mut all = intent.member("metrics").and_then(Value::as_object).cloned().unwrap_or_default();
        self.metrics.into_iter().for_each(|(name, value)| all.set(name, value));
        intent.with("metrics", Value::Object(all))
    }
}

/// The name of a type of the ontology.
pub(crate) fn name_of(text: &str) -> TypeName {
    text.parse().expect("a type of the ontology")
}

/// An object that is not one of the format's tagged forms.
pub(crate) fn plain_object(value: &Value) -> Option<&Object> {
    value.as_object().filter(|object| !object.iter().any(|(name, _)| tag::is_tag_name(name)))
}

/// Returns the name, with as many `_` after it as make it one that the object does not have.
pub(crate) fn free_name(object: &Object, name: &str) -> String {
    let mut name = name.to_owned();
    while object.contains_key(&name) {
        name.push('_');
    }
    name
}
