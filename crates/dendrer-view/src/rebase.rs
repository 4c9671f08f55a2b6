//! The outcome of each intent of a run on another base, as rows and items.

use dendrer::change::reapply::{Basis, ReapplyStopped};
use dendrer::kernel::contract::FieldCheck;
use dendrer::kernel::step::EXTENSION;
use dendrer::rebase::question::RebaseReply;
use dendrer::rebase::{AnswerSource, Fate, RebaseStep, Rebased};
use dendrer_object::document::As;
use dendrer_object::{Digest, Pointer, RunName, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::table::{Align, Table};
use crate::{count, quote};

impl Answer for RebaseReply {
    fn document(&self) -> Value {
        RebaseDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let RebaseReply { rebased, run, tip, plan, .. } = self;
        let (tip, plan) = (*tip, *plan);
        let mut lines = if plan { Vec::new() } else { head_lines(self) };
        lines.extend(step_lines(rebased));
        let mut sum = vec![count(rebased.carried() as u64, "intent carries over", "intents carry over")];
        if rebased.already() > 0 {
            sum.push(format!("{} there already", rebased.already()));
        }
        if rebased.left_out() > 0 {
            sum.push(format!("{} left out", rebased.left_out()));
        }
        sum.extend(rebased.stopped().map(|_| "1 needs a decision".to_owned()));
        if rebased.unseen() > 0 {
            sum.push(format!("{} behind it not looked at", rebased.unseen()));
        }
        let (word, written) = match (plan, tip) {
            (true, _) => ("plan", "; nothing was written".to_owned()),
            (false, None) => ("result", "; nothing was written".to_owned()),
            (false, Some(tip)) => ("result", format!("; {run} ends at tick {tip}")),
        };
        lines.push(format!("{word}: {}{written}", sum.join(", ")).into());
        let note =
            "note: no model and no tool was called; a program that can ask tools brings its own executor";
        lines.push(Line::note(note));
        lines.extend(tip.map(|_| Line::help(["dendrer", "verify", run.as_str(), "--replay"])));
        let goes_on = tip.is_some_and(|tip| tip > 0) && rebased.stopped().is_some();
        lines.extend(goes_on.then(|| Line::help(["dendrer", "commit", "--run", run.as_str()])));
        lines
    }

    fn end(&self) -> End {
        let is_dry = self.plan || self.dry_run;
        if !is_dry && self.rebased.stopped().is_some() { End::No } else { End::Answered }
    }
}

/// `stopped`, `already` if nothing was left to carry over, or `carried`.
fn outcome(rebased: &Rebased) -> &'static str {
    match () {
        () if rebased.stopped().is_some() => "stopped",
        () if rebased.carried() == 0 && rebased.already() > 0 => "already",
        () => "carried",
    }
}

fn head_lines(reply: &RebaseReply) -> Vec<Line> {
    let RebaseReply { rebased, run, onto, tick, reason, tip, .. } = reply;
    let source = &rebased.source;
    let replayed = format!("replayed   {onto}@{tick} and {source} from tick {} on ", rebased.from);
    let word = if tip.is_some() { "rebased   " } else { "would make" };
    let next = tick + 1;
    let made = format!("{word} {run}: {source} onto {onto}@{tick}   its tick {next} is run.fork");
    let reason = reason.as_ref().map(|reason| format!("reason     {}", quote::quoted(reason)).into());
    let lines = [Line::from(replayed).then_styled(Style::Good, "OK"), made.into()];
    lines.into_iter().chain(reason).collect()
}

/// Lists each transition with what became of it, or would.
fn step_lines(rebased: &Rebased) -> Vec<Line> {
    let mut table = Table::new([("", Align::Left); 4]);
    for step in &rebased.steps {
        let class = match (&step.fate, step.class) {
            (Fate::Stopped(_), _) => "STOP".to_owned(),
            (Fate::LeftOut(_), _) => "SKIP".to_owned(),
            (_, Some(class)) => class.to_string(),
            _ => "-".to_owned(),
        };
        table.row(vec![
            format!("tick {}", step.tick),
            step.type_name.to_string(),
            class,
            words(rebased, step),
        ]);
    }
    let lines = table.whole().into_iter().skip(1);
    let styled = |(line, step): (String, &RebaseStep)| {
        let line = format!("  {line}");
        match &step.fate {
            Fate::Stopped(_) => Line::styled(Style::Bad, line),
            Fate::LeftOut(_) => Line::styled(Style::Warn, line),
            _ => line.into(),
        }
    };
    lines.zip(&rebased.steps).map(styled).collect()
}

fn words(rebased: &Rebased, step: &RebaseStep) -> String {
    let acts = step.class.is_some_and(|class| class.effect == dendrer::kernel::pack::Effect::Effectful);
    let mut words = match &step.fate {
        Fate::Left if step.type_name.as_str() == EXTENSION => {
            format!("stays: the institution wrote it for {}", rebased.source)
        }
        Fate::Left => format!("stays: the kernel wrote it about {}", rebased.source),
        Fate::Already(taken) => format!("passed over: it is there already, as {}@{}", taken.run, taken.tick),
        Fate::Stopped(why) => stopped(why, "tick"),
        Fate::LeftOut(why) => format!("left out: {}", stopped(why, "tick")),
        Fate::Carried { tick, basis, answer } => {
            let how = match (answer, basis) {
                (Some(AnswerSource::Record), _) if acts => "recorded output only, never asked again",
                (Some(AnswerSource::Record), _) => {
                    "recorded output; it could be asked again, and nobody was asked"
                }
                (Some(AnswerSource::AskedSame), _) => "asked again, the same output",
                (Some(AnswerSource::AskedOther), _) => "asked again, another output",
                (None, Basis::Fact) => "a fact",
                (None, Basis::Holds) => "what it says it was decided on holds here",
                (None, Basis::Unsaid) => "nothing says what it was decided on",
            };
            format!("as {tick}: {how}")
        }
    };
    if !step.advisory.is_empty() {
        let names = step.advisory.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
        words.push_str(&format!(
            "   WARN {} is absent here (told, and no reason to stop)",
            quote::escape(&names)
        ));
    }
    words
}

pub(crate) fn side(value: Option<&Value>) -> String {
    value.map_or_else(|| "(absent)".to_owned(), quote::value)
}

/// Returns the reason for which an intent is not carried over; `source` is the word for a tick of the run that it is from.
pub(crate) fn stopped(why: &ReapplyStopped, source: &str) -> String {
    match why {
        ReapplyStopped::Rests(tick) => {
            format!("it rests on {source} {tick}, which says something else here")
        }
        ReapplyStopped::Kernel(type_name) => {
            format!("the kernel wrote {type_name} about the parent; here it writes what happens here")
        }
        ReapplyStopped::OtherAnswer(tick) => {
            format!("it rests on {source} {tick}, which was answered otherwise here")
        }
        ReapplyStopped::Absent(what) => format!("it rests on {what}, which is not in the history here"),
        ReapplyStopped::ContractsDiffer => {
            "its type has another contract here, or one on one side only".to_owned()
        }
        ReapplyStopped::Extension(id) => {
            format!(
                "the extension {} governs it there and not here; extend the other run first",
                quote::escape(id)
            )
        }
        ReapplyStopped::Context(why, fields) => {
            let fields = fields.iter().map(|field| {
                let (there, here) = (side(field.source.as_ref()), side(field.target.as_ref()));
                format!(": {} {there}, here {here}", quote::escape(&field.name))
            });
            let what = format!("{} ({})", quote::escape(&why.to_string()), why.code());
            std::iter::once(what).chain(fields).collect()
        }
        ReapplyStopped::RulesDiffer => {
            "it decides on policy, and the policy rules are others here".to_owned()
        }
        ReapplyStopped::DecidedOn(path, then, now) => format!(
            "it was decided on {} {}, here it is {}",
            quote::path(path),
            side(then.as_ref()),
            side(now.as_ref())
        ),
        ReapplyStopped::Unsaid => "nothing says what it was decided on (--stop-on context)".to_owned(),
        ReapplyStopped::Effectful => "it is the answer of a tool that acts (--stop-on effectful)".to_owned(),
        ReapplyStopped::Imported => {
            "what follows was imported; import it from where it was decided".to_owned()
        }
        ReapplyStopped::NoOutput => "its output is not on record, and it is not made up".to_owned(),
        ReapplyStopped::NotAnswered(why) => {
            format!("the tool was asked again and failed: {}", quote::escape(why))
        }
        ReapplyStopped::NoChange => {
            "the tool answered otherwise, and nothing says what that changes".to_owned()
        }
        ReapplyStopped::DoesNotApply(why) => format!("its change does not fit here: {}", quote::escape(why)),
        ReapplyStopped::Violates(names) => {
            let names = names.iter().map(|name| &**name).collect::<Vec<_>>().join(", ");
            format!("it would violate {} here", quote::escape(&names))
        }
        ReapplyStopped::Links => "it has as many links as a record may have".to_owned(),
        ReapplyStopped::LeftOut(tick) => format!("it rests on {source} {tick}, which is left out"),
        ReapplyStopped::NotChosen => "its type is not one of --only".to_owned(),
        ReapplyStopped::Refused(code, reason) => {
            format!("it is refused here ({code}): {}", quote::escape(reason))
        }
    }
}

document! {
    /// The outcome of the intents of one run on another base
    pub object RebaseDocument: "rebase" (answer: &RebaseReply) {
        let RebaseReply { rebased, tip: end, .. } = answer;
        let end = *end;
        /// The new run
        run: &RunName = &answer.run,
        /// The run that the intents are from
        source: &RunName = &rebased.source,
        /// The first tick of the source
        from: u64 = rebased.from,
        /// The last tick of the source
        to: u64 = rebased.to,
        /// The base
        onto: &RunName = &answer.onto,
        /// The last tick of the base that the new run shares
        onto_tick: u64 = answer.tick,
        /// The root of the state there
        state_root: Digest = rebased.forked.state_root,
        /// The reason that was given
        reason: Option<&str> = answer.reason.as_deref(),
        /// The intents
        items: Vec<RebaseItem> = rebased.steps.iter().map(RebaseItem::of).collect(),
        /// The outcome
        outcome: ["carried" | "already" | "stopped"] = outcome(rebased),
        /// The number of intents that carry over
        carried: usize = rebased.carried(),
        /// The number of intents that are in the history of the base already
        already: usize = rebased.already(),
        /// The number of intents that were left out
        left_out: usize = rebased.left_out(),
        /// The number of intents that were not looked at
        unseen: As<u64> = As::new(rebased.unseen()),
        /// The id of the marker; null if nothing was written
        marker: Option<Digest> = end.map(|_| rebased.forked.marker.id()),
        /// The last tick of the new run; null if nothing was written
        tip: Option<u64> = end,
        /// Whether the new run was written
        written: bool = end.is_some(),
        /// Whether only the fate of each intent was asked for
        plan: bool = answer.plan,
        /// Whether nothing was to be written
        dry_run: bool = answer.dry_run,
    }

    /// An intent on another base
    object RebaseItem(step: &RebaseStep) {
        let (known, from) = match &step.fate {
            Fate::Carried { basis, answer, .. } => (Some(basis), *answer),
            _ => (None, None),
        };
        /// The tick of the source
        source_tick: u64 = step.tick,
        /// The type
        type: &str = step.type_name.as_str(),
        /// The effect class of the tool
        effect: As<Option<String>> = As::new(step.class.map(|class| class.effect.as_str())),
        /// Whether the pack declares the class
        declared: Option<bool> = step.class.map(|class| class.is_declared),
        /// The fate of the intent
        fate: ["left" | "already" | "carried" | "left_out" | "stopped"] = match &step.fate {
            Fate::Left => "left",
            Fate::Already(_) => "already",
            Fate::Carried { .. } => "carried",
            Fate::LeftOut(_) => "left_out",
            Fate::Stopped(_) => "stopped",
        },
        /// The run whose tick it is, if it is in the history of the base already
        already_in: Option<&str> = match &step.fate {
            Fate::Already(taken) => Some(taken.run.as_str()),
            _ => None,
        },
        /// The tick of the intent on the base
        tick: Option<u64> = match &step.fate {
            Fate::Already(taken) => Some(taken.tick),
            Fate::Carried { tick, .. } => Some(*tick),
            _ => None,
        },
        /// The basis of the intent on the new base
        basis: ["holds" | "fact" | "unsaid" | null] = known.map(|basis| match basis {
            Basis::Holds => "holds",
            Basis::Fact => "fact",
            Basis::Unsaid => "unsaid",
        }),
        /// The source of the answer of a tool
        answer: ["recorded" | "asked_same" | "asked_other" | null] = from.map(|from| match from {
            AnswerSource::Record => "recorded",
            AnswerSource::AskedSame => "asked_same",
            AnswerSource::AskedOther => "asked_other",
        }),
        /// The advisory dependencies that are missing
        advisory_missing: Vec<&str> = step.advisory.iter().map(|name| &**name).collect(),
        /// The reason why the intent is not carried over
        stopped: Option<StoppedItem> = match &step.fate {
            Fate::Stopped(why) | Fate::LeftOut(why) => Some(StoppedItem::of(why)),
            _ => None,
        },
    }

    /// The reason why an intent is not carried over, with the fields that do not fit
    object StoppedItem(why: &ReapplyStopped) {
        let missed = if let ReapplyStopped::Context(_, fields) = why { fields.as_slice() } else { &[] };
        ..StopObject = StopObject::of(why, "tick"),
        /// The required fields that do not fit
        fields: Vec<MissedField> = missed.iter().map(MissedField::of).collect(),
    }

    /// A required field that does not fit
    object MissedField(field: &FieldCheck) {
        /// The name
        name: &str = &field.name,
        /// The rule
        rule: &str = &field.rule,
        /// The value of the source; null if it is missing
        source: Option<Value> = field.source.clone(),
        /// The value of the target; null if it is missing
        target: Option<Value> = field.target.clone(),
    }

    /// The reason why an intent is not carried over
    pub(crate) object StopObject(reason: &ReapplyStopped, tick_word: &str) {
        let decided = match reason {
            ReapplyStopped::DecidedOn(path, then, now) => Some((path, then, now)),
            _ => None,
        };
        /// The kind of reason
        kind: &str = reason.kind(),
        /// The reason in words
        why: String = stopped(reason, tick_word),
        /// The place that the intent was decided on
        path: Option<&Pointer> = decided.map(|(path, ..)| path),
        /// The value when it was decided; null if there was none
        then: Option<Value> = decided.and_then(|(_, then, _)| then.clone()),
        /// The value on the new base; null if it is missing
        now: Option<Value> = decided.and_then(|(.., now)| now.clone()),
    }
}
