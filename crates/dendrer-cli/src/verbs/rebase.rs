//! `dendrer rebase`: the intents of one run, proposed again on the state of another.

use clap::{Args, ValueEnum};
use dendrer::rebase::{Rebased, Terms, rebase};
use dendrer::recorder::World;
use dendrer_object::{RunName, Value};
use dendrer_view::rebase as view;
use dendrer_view::{count, document, quote};

use crate::address::Rev;
use crate::context;
use crate::context::runs::new_name;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::out::Style;

/// `rebase`
#[derive(Debug, Args)]
pub(crate) struct Rebase {
    /// The run whose intents are proposed again
    #[arg(value_name = "RUN", required_unless_present = "run", conflicts_with = "run")]
    pub(crate) source: Option<String>,
    /// The run whose intents are proposed again
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// The base: RUN@TICK, or RUN for its last tick
    #[arg(long, value_name = "RUN[@TICK]")]
    pub(crate) onto: String,
    /// What the new run is called; RUN-rebase-1 and so on if not given
    #[arg(long = "as", value_name = "NEW")]
    pub(crate) new: Option<String>,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// Say what would become of each intent, and write nothing
    #[arg(long, conflicts_with_all = ["new", "dry_run"])]
    pub(crate) plan: bool,
    /// End before the first answer of a tool that acts, or before the first decision of which nothing says what it was made
    /// on; what is known not to hold ends it in any case
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) stop_on: Vec<StopOn>,
    /// Say what would be made, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// What ends a rebase beside what must.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StopOn {
    /// The answer of a tool that acts.
    Effectful,
    /// A decision of which nothing says what it was made on.
    Context,
}

pub(crate) fn run(global: &Global, args: &Rebase, out: &mut Out) -> Result {
    let text = args.run.as_deref().or(args.source.as_deref()).ok_or_else(|| {
        Failure::new("E0106", "say which run is rebased: dendrer rebase RUN --onto BASE")
            .note("nothing was changed")
    })?;
    let (rev, onto) = (Rev::parse(text)?, Rev::parse(&args.onto)?);
    if rev.bundle.is_some() || onto.bundle.is_some() {
        return Err(Failure::new(
            "E0106",
            "a run of a bundle is read; a rebase is made of runs of the store",
        )
        .note("nothing was changed"));
    }
    if rev.pos.is_some() {
        return Err(Failure::new(
            "E0106",
            "all that a run has of its own is rebased: name it without a tick",
        )
        .note("nothing was changed"));
    }
    // Both are read through a handle of their own; the new run is written through another.
    let reader = context::sound(global, &rev, out)?;
    let onto = onto.resolve(reader.store())?;
    let (progress, counted) = reader.watched(global, "rebase");
    let (source, base) = (reader.trace_through(&counted, &rev)?, reader.trace_through(&counted, &onto)?);
    let tick = onto.pos.as_ref().map_or(Ok(base.tip()), |pos| pos.tick(&base))?;
    let is_dry = args.plan || args.dry_run;
    let name = new_name(args.new.as_deref(), &format!("{}-rebase", source.name()), &**reader.store())?;
    let mut terms = Terms::new(name);
    terms.reason = args.reason.as_deref().map(Into::into);
    terms.stop_on_effectful = args.stop_on.contains(&StopOn::Effectful);
    terms.stop_on_context = args.stop_on.contains(&StopOn::Context);
    terms.keep = !is_dry;
    let world = Box::new(World::default());
    let mut answer = Answer { args, onto: base.name(), tick, name: &terms.run, tip: None };
    let rebased = if is_dry {
        let store = &context::rehearse(global)?;
        let (mut recorder, rebased) = rebase(&source, &base, tick, store, &terms, None, world)?;
        recorder.discard();
        rebased
    } else {
        let repo = context::write_store(global)?;
        let store = repo.writer()?;
        repo.signing_key()?;
        let (mut recorder, rebased) = rebase(&source, &base, tick, store, &terms, None, world)?;
        // A run with nothing in it but where it comes from would be of no use to anybody.
        match rebased.carried() {
            0 => drop(recorder.discard()),
            _ => {
                answer.tip = Some(recorder.head().tick());
                recorder.commit()?;
            }
        }
        drop(recorder);
        context::close(repo)?;
        rebased
    };
    drop(progress);
    match out.is_text() {
        true => answer.print(&rebased, out)?,
        false => out.document(&answer.document(&rebased))?,
    }
    Ok(u8::from(!is_dry && rebased.stopped().is_some()))
}

struct Answer<'a> {
    args: &'a Rebase,
    onto: &'a RunName,
    tick: u64,
    name: &'a RunName,
    /// The last tick of the new run, if it was written.
    tip: Option<u64>,
}

impl Answer<'_> {
    fn print(&self, rebased: &Rebased, out: &mut Out) -> Result<()> {
        if !self.args.plan {
            let (ok, tick) = (out.paint(Style::Good, "OK"), self.tick);
            out.line(format!(
                "replayed   {}@{tick} and {} from tick {} on {ok}",
                self.onto, rebased.source, rebased.from
            ))?;
            let word = if self.tip.is_some() { "rebased   " } else { "would make" };
            out.line(format!(
                "{word} {}: {} onto {}@{tick}   its tick {} is run.fork",
                self.name,
                rebased.source,
                self.onto,
                tick + 1
            ))?;
            if let Some(reason) = &self.args.reason {
                out.line(format!("reason     {}", quote::quoted(reason)))?;
            }
        }
        for line in view::lines(rebased, out.width()) {
            let is_end =
                rebased.stopped().is_some_and(|(tick, _)| line.starts_with(&format!("  tick {tick} ")));
            let line = if is_end { out.paint(Style::Bad, &line) } else { line };
            out.line(line)?;
        }
        let carried = rebased.carried() as u64;
        let mut sum = vec![count(carried, "intent carries over", "intents carry over")];
        if rebased.stopped().is_some() {
            sum.push("1 needs a decision".to_owned());
        }
        if rebased.unseen() > 0 {
            sum.push(format!("{} behind it not looked at", rebased.unseen()));
        }
        let (word, written) = match (self.args.plan, self.tip) {
            (true, _) => ("plan", "; nothing was written".to_owned()),
            (false, None) => ("result", "; nothing was written".to_owned()),
            (false, Some(tip)) => ("result", format!("; {} ends at tick {tip}", self.name)),
        };
        out.line(format!("{word}: {}{written}", sum.join(", ")))?;
        out.say(
            "note: no model and no tool was called; a program that can ask tools brings its own executor",
        );
        if let Some(tip) = self.tip {
            out.help(&["dendrer", "verify", self.name.as_str(), "--replay"]);
            if tip > 0 && rebased.stopped().is_some() {
                out.help(&["dendrer", "commit", "--run", self.name.as_str()]);
            }
        }
        Ok(())
    }

    fn document(&self, rebased: &Rebased) -> Value {
        let marker = self.tip.map(|_| rebased.forked.marker.id());
        document(
            "rebase",
            [
                ("run", Value::from(self.name.as_str())),
                ("source", Value::from(rebased.source.as_str())),
                ("from", Value::from(rebased.from)),
                ("to", Value::from(rebased.to)),
                ("onto", Value::from(self.onto.as_str())),
                ("onto_tick", Value::from(self.tick)),
                ("state_root", Value::from(rebased.forked.state_root)),
                ("reason", Value::from(self.args.reason.as_deref())),
                ("items", view::items(rebased)),
                ("carried", Value::from(rebased.carried() as u64)),
                ("unseen", Value::from(rebased.unseen())),
                ("marker", Value::from(marker)),
                ("tip", Value::from(self.tip)),
                ("written", Value::from(self.tip.is_some())),
                ("plan", Value::from(self.args.plan)),
                ("dry_run", Value::from(self.args.dry_run)),
            ],
        )
    }
}
