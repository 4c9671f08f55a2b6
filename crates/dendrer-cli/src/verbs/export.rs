//! `dendrer export`

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use dendrer::Trace;
use dendrer::store::Store;
use dendrer_object::bundle::Sealed;
use dendrer_object::record::Record;
use dendrer_object::{Pointer, RunName, Value};
use dendrer_view::{document, quote};

use crate::address::Rev;
use crate::args::{Export, Global};
use crate::failure::{Failure, Result};
use crate::keys;
use crate::open::{self, Source};
use crate::out::Out;
use crate::progress::{Counted, Progress};

/// In which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One file that proves itself.
    Bundle,
    /// One event a line, as the dendrer paper spells it.
    Jsonl,
}

pub(crate) fn run(global: &Global, args: &Export, out: &mut Out) -> Result {
    let form = match global.format.as_deref() {
        Some("jsonl") => Form::Jsonl,
        _ => Form::Bundle,
    };
    if !out.is_text() && global.output.is_none() {
        return Err(Failure::new("E0106", "stdout cannot take both the export and a document about it")
            .note("say where the export goes with -o FILE"));
    }
    if form == Form::Jsonl && !args.withhold.is_empty() {
        return Err(Failure::new("E0106", "--withhold is for bundles, where what is left still verifies"));
    }
    let revs = args.runs.iter().map(|text| Rev::parse(text)).collect::<Result<Vec<_>>>()?;
    let bytes = match form {
        Form::Bundle => bundle(global, args, &revs)?,
        Form::Jsonl => events(global, &revs)?,
    };
    let Some(path) = &global.output else {
        out.bytes(&bytes)?;
        return Ok(0);
    };
    write_whole(Path::new(path), &bytes).map_err(|error| {
        Failure::new("E0801", format!("cannot write {path}"))
            .at("cause", error.to_string())
            .note("nothing half-written is left")
    })?;
    if !out.is_text() {
        out.document(&document(
            "export",
            [
                ("path", Value::from(path.as_str())),
                ("format", Value::from(if form == Form::Bundle { "bundle" } else { "jsonl" })),
                ("bytes", Value::from(bytes.len() as u64)),
                ("runs", Value::array(args.runs.iter().map(|run| Value::from(run.as_str())))),
            ],
        ))?;
        return Ok(0);
    }
    out.say(format!("wrote {} bytes to {}", bytes.len(), quote::escape(path)));
    if form == Form::Bundle {
        out.say(format!("help: dendrer verify {}", quote::escape(path)));
    }
    Ok(0)
}

/// Writes beside and renames, so that a reader sees the whole file or none.
fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let temporary = path.with_file_name(name);
    let write = || {
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

fn bundle(global: &Global, args: &Export, revs: &[Rev]) -> Result<Vec<u8>> {
    if revs.iter().any(|rev| rev.bundle.is_some()) {
        return Err(Failure::new("E0601", "a bundle is a whole already: copy the file"));
    }
    let withheld: Vec<Pointer> = args
        .withhold
        .iter()
        .map(|text| {
            text.parse().map_err(|error: dendrer_object::pointer::PointerError| {
                Failure::new("E0106", error.to_string())
            })
        })
        .collect::<Result<_>>()?;
    let mut store = open::write_store(global)?;
    let mut names: Vec<RunName> = Vec::new();
    for rev in revs {
        let name = rev.run_in(&store, &[])?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let key = keys::find(global.key.as_deref(), store.info())?;
    // A store that cannot be written can still hand over what was signed before.
    let note = keys::sign(&mut store, key.as_ref()).unwrap_or_default();
    let note = match note {
        Some(note) => note,
        None => store.checkpoint()?.ok_or_else(|| {
            Failure::new("E0804", "the key of the log is not here, and nothing was signed yet")
        })?,
    };
    let mut total = 0;
    for name in &names {
        // Each record is read once to find it and once to seal it.
        total += store.run(name)?.map_or(0, |run| 2 * run.head.tick.unwrap_or(0) + run.refusals);
    }
    let progress = Progress::start(global, "export", "records", Some(total));
    let counted = Counted::new(&store, progress.counter());
    let mut bundle = dendrer::bundle::export(&counted, &names, &note)?;
    drop(progress);
    if !withheld.is_empty() {
        let positions: Vec<u64> = bundle.positions().map(|(position, _)| position).collect();
        for (sealed, position) in bundle.records.iter_mut().zip(positions) {
            if let Some(record) = store.get(position)? {
                let touched = record
                    .body()
                    .fields()
                    .iter()
                    .any(|field| withheld.iter().any(|place| place.contains(&field.pointer)));
                if touched {
                    *sealed = Sealed::of(&record.without(&withheld));
                }
            }
        }
    }
    Ok(bundle.write(&dendrer::store::split))
}

/// Writes the events of runs, one a line, as the paper spells them (appendix B), with what it left out (D-195).
fn events(global: &Global, revs: &[Rev]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for rev in revs {
        let source: Source = open::source(global, rev)?;
        let trace = source.trace(rev)?;
        let mut previous = trace.at(0)?.state;
        let progress = Progress::start(global, "export", "ticks", Some(trace.tip()));
        trace.moments(0, trace.tip(), &mut |moment, record| {
            if let Some(record) = record {
                bytes.extend_from_slice(
                    quote::json(&event(&trace, record, &previous, &moment.state)).as_bytes(),
                );
                bytes.push(b'\n');
            }
            previous = moment.state.clone();
            progress.set(moment.tick);
            ControlFlow::Continue(())
        })?;
    }
    Ok(bytes)
}

fn event(trace: &Trace<'_>, record: &Record, before: &Value, after: &Value) -> Value {
    let header = record.header();
    let content = record.content();
    let member = |name: &str| content.get(name).cloned().unwrap_or(Value::Null);
    // The paper prints the members of the state that the transition touched, before and after it.
    let mut touched: Vec<String> = dendrer_view::show::changes(record, before, after)
        .iter()
        .filter_map(|change| change.path.tokens().next().map(|name| name.into_owned()))
        .collect();
    touched.sort();
    touched.dedup();
    let side = |state: &Value| {
        Value::record(touched.iter().filter_map(|name| Some((name.as_str(), state.get(name)?.clone()))))
    };
    let anomalies = content.get("anomalies").cloned().unwrap_or_else(|| Value::array([]));
    Value::record([
        ("tick", Value::from(header.tick)),
        ("ts", Value::from(header.ts.to_string())),
        ("agent_id", member("agent_id")),
        ("goal_id", member("goal_id")),
        ("run_id", Value::from(trace.name().as_str())),
        ("transition_type", Value::from(header.type_name.as_ref().map(|name| name.to_string()))),
        ("state_before", side(before)),
        ("state_after", side(after)),
        ("intent", member("intent")),
        ("action", member("action")),
        ("result", member("result")),
        ("policy", member("policy")),
        ("metrics", member("metrics")),
        ("anomalies", anomalies),
        ("author", Value::from(header.author.as_str())),
        ("seq", member("seq")),
        ("state_root", member("state_root")),
        ("intent_context_hash", member("intent_context_hash")),
        ("contract", Value::from(header.pack)),
        ("id", Value::from(record.id())),
        ("prev", Value::from(header.prev)),
    ])
}
