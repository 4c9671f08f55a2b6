//! `dendrer label` and `dendrer note`: what people say about moments, in the casebook.

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::casebook::{self, Moment, Note};
use dendrer_object::Value;
use dendrer_object::record::Record;
use dendrer_view::casebook::{recorded_json, recorded_lines};
use dendrer_view::table::{Align, Table};
use dendrer_view::{count, document, quote};

use crate::address::Rev;
use crate::context;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::offers;
use crate::out::CUT;
use crate::out::Out;
use crate::out::accessible;

/// `label`
#[derive(Debug, Args)]
pub(crate) struct Label {
    /// The label; all are listed without one
    pub(crate) name: Option<String>,
    /// What it is put on: RUN or RUN@TICK
    #[arg(conflicts_with = "remove", add = ArgValueCompleter::new(offers::runs))]
    pub(crate) rev: Option<String>,
    /// Take it off
    #[arg(long, requires = "name")]
    pub(crate) remove: bool,
    /// Who says so; nobody checks that
    #[arg(long, value_name = "NAME", default_value = "person")]
    pub(crate) by: String,
}

/// `note`
#[derive(Debug, Args)]
pub(crate) struct NoteArgs {
    /// What it is about: RUN or RUN@TICK
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) rev: Option<String>,
    /// What to write down; without it, what was written down is listed
    pub(crate) text: Option<String>,
    /// Who says so; nobody checks that
    #[arg(long, value_name = "NAME", default_value = "person")]
    pub(crate) by: String,
}

/// The longest note, in bytes: more belongs into a file whose digest is noted.
const NOTE_MAX: usize = 64 << 10;

/// Finds the moment that an address means, in the store.
fn moment(global: &Global, text: &str, out: &mut Out) -> Result<Moment> {
    let rev = Rev::parse(text)?;
    if rev.bundle.is_some() {
        return Err(Failure::new("E0601", "a bundle has no casebook to write into")
            .note("labels and notes are of runs of the store"));
    }
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let trace = source.trace(&rev)?;
    let tick = rev.pos.as_ref().map(|pos| pos.tick(&trace)).transpose()?;
    Ok(Moment::of(&trace, tick)?)
}

pub(crate) fn label(global: &Global, args: &Label, out: &mut Out) -> Result {
    let by = &args.by;
    let recorded = match (&args.name, &args.rev) {
        (None, _) => Vec::new(),
        (Some(name), None) if args.remove => {
            vec![context::write_down(global, |store, world| casebook::unlabel(store, name, by, world))?]
        }
        (Some(name), Some(rev)) => {
            let at = moment(global, rev, out)?;
            vec![context::write_down(global, |store, world| casebook::label(store, name, &at, by, world))?]
        }
        (Some(name), None) => {
            let failure = Failure::new("E0106", "say what the label is put on: dendrer label NAME RUN@TICK")
                .note("nothing was changed");
            let state = casebook::read(&context::read_store(global)?)?.unwrap_or_else(Value::object);
            let is_there = casebook::labels(&state).iter().any(|(known, _)| known == name);
            return Err(match is_there {
                true => failure.help(&["dendrer", "label", name, "--remove"]),
                false => failure,
            });
        }
    };
    let store = context::read_store(global)?;
    let state = casebook::read(&store)?.unwrap_or_else(Value::object);
    let labels = casebook::labels(&state);
    let items = labels.iter().map(|(name, at)| {
        Value::record([("name", Value::from(name.as_str()))].into_iter().chain(moment_json(at)))
    });
    if !out.is_text() {
        let members = [("items", Value::array(items)), ("recorded", recorded_json(&recorded))];
        out.document(&document("labels", members))?;
        return Ok(0);
    }
    if !recorded.is_empty() {
        return print_recorded(&recorded, out);
    }
    let mut table = Table::new([("label", Align::Left), ("at", Align::Left), ("hash", Align::Left)]);
    for (name, at) in &labels {
        table.row(vec![quote::escape(name), at.address(), at.id.short()]);
    }
    list(table, labels.len(), out)?;
    out.line(count(labels.len() as u64, "label", "labels"))?;
    Ok(0)
}

pub(crate) fn note(global: &Global, args: &NoteArgs, out: &mut Out) -> Result {
    let at = args.rev.as_deref().map(|rev| moment(global, rev, out)).transpose()?;
    let recorded = match (&at, &args.text) {
        (Some(at), Some(text)) => {
            if text.len() > NOTE_MAX || text.trim().is_empty() {
                return Err(
                    Failure::new("E0106", "a note is a text of 1 byte to 64 KiB").note("nothing was changed")
                );
            }
            let note = Note { at: at.clone(), text: text.clone(), by: args.by.clone() };
            vec![context::write_down(global, |store, world| casebook::note(store, &note, world))?]
        }
        _ => Vec::new(),
    };
    let store = context::read_store(global)?;
    let state = casebook::read(&store)?.unwrap_or_else(Value::object);
    let mut notes = casebook::notes(&state);
    // A moment has its own notes, a run those of all its ticks.
    notes.retain(|note| match &at {
        Some(at) => note.at.run == at.run && (at.tick.is_none() || note.at.tick == at.tick),
        None => true,
    });
    let items = notes.iter().map(|note| {
        let own = [("by", Value::from(note.by.as_str())), ("text", Value::from(note.text.as_str()))];
        Value::record(own.into_iter().chain(moment_json(&note.at)))
    });
    if !out.is_text() {
        let members = [("items", Value::array(items)), ("recorded", recorded_json(&recorded))];
        out.document(&document("notes", members))?;
        return Ok(0);
    }
    if !recorded.is_empty() {
        return print_recorded(&recorded, out);
    }
    for note in &notes {
        let by = quote::escape(&note.by);
        out.line(format!("{}  {by}  {}", note.at.address(), quote::quoted(&note.text)))?;
    }
    out.line(count(notes.len() as u64, "note", "notes"))?;
    Ok(0)
}

fn list(table: Table, rows: usize, out: &mut Out) -> Result<()> {
    if rows == 0 {
        return Ok(());
    }
    let (lines, cut) = if accessible() { (table.list(), false) } else { table.lines(out.width()) };
    lines.into_iter().try_for_each(|line| out.line(line))?;
    if cut { out.line(CUT) } else { Ok(()) }
}

fn print_recorded(recorded: &[Record], out: &mut Out) -> Result {
    recorded_lines(recorded).into_iter().try_for_each(|line| out.line(line))?;
    Ok(0)
}

fn moment_json(at: &Moment) -> [(&'static str, Value); 3] {
    [("run", Value::from(at.run.as_str())), ("tick", Value::from(at.tick)), ("id", Value::from(at.id))]
}
