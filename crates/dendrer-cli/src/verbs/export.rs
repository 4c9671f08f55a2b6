//! `dendrer export`

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer::bundle;
use dendrer::verify;
use dendrer_object::note::Checkpoint;
use dendrer_object::{Pointer, RunName, Value};
use dendrer_view::{document, quote};
use dendrer_wire::profile::{self, Profile};

use crate::address::Rev;
use crate::context;
use crate::context::Source;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::offers;
use crate::out::Out;
use crate::out::files;
use crate::out::files::Whole;
use crate::progress::Progress;

/// `export`
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The runs
    #[arg(required = true, add = ArgValueCompleter::new(offers::runs))]
    pub(crate) runs: Vec<String>,
    /// Withhold the values at or below this place of every record, like /result/output
    #[arg(long, value_name = "POINTER")]
    pub(crate) withhold: Vec<String>,
}

/// In which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One file that proves itself.
    Bundle,
    /// One event a line, as the dendrer paper spells it.
    Jsonl,
    /// One transition a line, in the spelling of a source document and with its hashes.
    Profile(Profile),
}

pub(crate) fn run(global: &Global, args: &Export, out: &mut Out) -> Result {
    let form = match global.format.as_deref() {
        Some("jsonl") => Form::Jsonl,
        Some("paper") => Form::Profile(Profile::Paper),
        Some("cfd") => Form::Profile(Profile::Cfd),
        _ => Form::Bundle,
    };
    if !out.is_text() && global.output.is_none() {
        return Err(Failure::new("E0106", "stdout cannot take both the export and a document about it")
            .note("say where the export goes with -o FILE"));
    }
    if form != Form::Bundle && !args.withhold.is_empty() {
        return Err(Failure::new("E0106", "--withhold is for bundles, where what is left still verifies"));
    }
    let revs = args.runs.iter().map(|text| Ok(Rev::parse(text)?)).collect::<Result<Vec<_>>>()?;
    if let Some((rev, text)) = revs.iter().zip(&args.runs).find(|(rev, _)| rev.pos.is_some()) {
        let run = rev.run.as_deref().or(rev.bundle.as_deref()).unwrap_or_default();
        return Err(Failure::new(
            "E0106",
            format!("an export is of a whole run, and {text} names a place in one"),
        )
        .note("what stands up to a tick is listed by log, whole with --full")
        .help(&["dendrer", "export", run])
        .help(&["dendrer", "log", text, "--full", "--json"]));
    }
    let Some(path) = &global.output else {
        write(global, args, form, &revs, out, &mut |out, bytes| out.bytes(bytes))?;
        return Ok(0);
    };
    let (path, mut file) = (Path::new(path), None);
    let mut written = 0;
    write(global, args, form, &revs, out, &mut |_, bytes| {
        written += bytes.len() as u64;
        let mut put = || {
            let file = match &mut file {
                Some(file) => file,
                // Nothing is begun before there is something to write.
                none => none.insert(Whole::create(path)?),
            };
            file.write_all(bytes)
        };
        put().map_err(|error| files::cannot_write(path, &error))
    })?;
    file.map_or(Ok(()), Whole::finish).map_err(|error| files::cannot_write(path, &error))?;
    let path = path.display().to_string();
    if !out.is_text() {
        out.document(&document(
            "export",
            [
                ("path", Value::from(path.as_str())),
                ("format", Value::from(global.format.as_deref().unwrap_or("bundle"))),
                ("bytes", Value::from(written)),
                ("runs", Value::array(args.runs.iter().map(|run| Value::from(run.as_str())))),
            ],
        ))?;
        return Ok(0);
    }
    out.say(format!("wrote {written} bytes to {}", quote::escape(&path)));
    if form == Form::Bundle {
        out.help(&["dendrer", "verify", &path]);
    }
    Ok(0)
}

/// Takes what is to be written, a line at a time.
type Sink<'s> = &'s mut dyn FnMut(&mut Out, &[u8]) -> Result<()>;

fn write(
    global: &Global,
    args: &Export,
    form: Form,
    revs: &[Rev],
    out: &mut Out,
    sink: Sink<'_>,
) -> Result<()> {
    match form {
        Form::Bundle => make(global, args, revs, out, sink),
        Form::Jsonl => lines(global, revs, None, out, sink),
        Form::Profile(profile) => lines(global, revs, Some(profile), out, sink),
    }
}

fn make(global: &Global, args: &Export, revs: &[Rev], out: &mut Out, sink: Sink<'_>) -> Result<()> {
    if revs.iter().any(|rev| rev.bundle.is_some()) {
        return Err(Failure::new("E0601", "a bundle is made of a store, and this is one already")
            .note("copy the file; one of fewer runs is made where the store is"));
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
    let path = context::find(global)?;
    let (repo, unwritable) = match context::write_at(global, &path) {
        Ok(repo) => (repo, None),
        // A store that cannot be written can still hand over what was signed before.
        Err(error) => (context::read_repo(global)?.0, Some(Failure::from(error))),
    };
    let is_troubled = context::warn(repo.warnings(), &path, out);
    let mut store = repo.reader()?;
    let mut names: Vec<RunName> = Vec::new();
    for rev in revs {
        let name = rev.run_in(&store, &[])?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    repo.signing_key()?;
    let (note, mut unsigned) = match unwritable.map_or_else(|| context::sign(&repo), Err) {
        Ok(note) => (note, None),
        Err(failure) => (None, Some(failure)),
    };
    let note = match note {
        Some(note) => note,
        None => store.checkpoint()?.ok_or_else(|| {
            let no_key =
                || Failure::new("E0804", "the key of the log is not here, and nothing was signed yet");
            unsigned.take().unwrap_or_else(no_key)
        })?,
    };
    // A bundle whose end no signature covers would verify as tampered, and an honest record with it.
    let signed = Checkpoint::parse(note.text()).map_err(dendrer::Error::from)?.size();
    if signed > store.tree().size {
        // What was signed since this handle read the log stands in what it has not read yet.
        store = repo.reader()?;
    }
    let size = store.tree().size;
    if signed > size && !is_troubled {
        return Err(Failure::new("E0802", "more was signed while the log was read")
            .note("nothing was written; ask again"));
    }
    if signed < size {
        // With the key at hand, what is wrong is what kept it from signing.
        if let Some(failure) = unsigned {
            return Err(failure);
        }
        let missing = dendrer_view::count(size - signed, "record", "records");
        let are = if size - signed == 1 { "is" } else { "are" };
        let message = format!("the last {missing} {are} not signed, and the key of the log is not here");
        return Err(Failure::new("E0804", message)
            .note("nothing was written; whoever has the key can export, or sign: name it with --key FILE"));
    }
    let mut total = 0;
    for name in &names {
        // Each record is read once to find it and once to seal it.
        total += store.run(name)?.map_or(0, |run| 2 * run.head.tick.unwrap_or(0) + run.refusals);
    }
    let progress = Progress::start(global, "export", "records", Some(total));
    let counted = progress.watch().over(&store);
    let export = bundle::export(&counted, &names, &note)?;
    if !withheld.is_empty() {
        all_there(&export, &withheld)?;
    }
    let export = export.without(withheld);
    if is_troubled {
        let text = export.to_vec()?;
        refuse_unsound(&text)?;
        return sink(out, &text);
    }
    export.write(&mut |line| sink(out, line))
}

/// Looks whether there is something at each place. Whoever asks to withhold something and is handed a bundle must not find it
/// in there.
fn all_there(export: &bundle::Export, withheld: &[Pointer]) -> Result<()> {
    let mut idle: Vec<&Pointer> = withheld.iter().collect();
    let mut whole: Option<Pointer> = None;
    export.each(&mut |record| {
        let fields = record.body().fields();
        idle.retain(|place| !fields.iter().any(|field| place.contains(&field.pointer)));
        let around = |place: &&Pointer| fields.iter().find(|field| field.pointer.contains(place));
        whole = whole.take().or_else(|| idle.iter().find_map(around).map(|field| field.pointer.clone()));
        Ok::<_, Failure>(())
    })?;
    let Some(place) = idle.first() else { return Ok(()) };
    let failure = Failure::new("E0106", format!("no record has a field at or below {place}"))
        .note("nothing was written");
    Err(match whole {
        Some(field) => failure.note(format!("a field is withheld as a whole: --withhold {field} takes it")),
        None => failure,
    })
}

/// Refuses what would not verify where it is handed to: of a store that lost something, much may still be sound.
fn refuse_unsound(text: &[u8]) -> Result<()> {
    let opened = bundle::open(PathBuf::new(), text)?;
    let report = verify::bundle(&opened, &verify::Options::default())?;
    let Some(finding) = report.findings.first() else { return Ok(()) };
    Err(Failure::new(finding.code, format!("the bundle would be TAMPERED: {}", finding.message))
        .note("nothing was written; what is left of the run as lines, which prove nothing: --format jsonl")
        .help(&["dendrer", "verify", "--all"]))
}

/// Writes the transitions of runs, one a line, as the paper spells them or in the spelling of a profile.
fn lines(
    global: &Global,
    revs: &[Rev],
    profile: Option<Profile>,
    out: &mut Out,
    sink: Sink<'_>,
) -> Result<()> {
    if profile.is_some() && revs.len() > 1 {
        return Err(Failure::new("E0106", "a chain of hashes is that of one run: export one at a time"));
    }
    for rev in revs {
        let source: Source = context::sound(global, rev, out)?;
        let trace = source.trace(rev)?;
        let mut line = |value: Value| sink(out, format!("{}\n", quote::json(&value)).as_bytes());
        match profile {
            Some(profile) => profile.lines(&trace, &mut line)?,
            None => profile::events(&trace, &mut line)?,
        }
    }
    Ok(())
}
