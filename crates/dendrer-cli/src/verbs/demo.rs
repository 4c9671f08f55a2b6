//! `dendrer demo`

use std::path::Path;
use std::sync::Arc;

use clap::Args;
use dendrer::recorder::{Fixed, begin_log};
use dendrer::repo::Repo;
use dendrer::store::embedded::{Embedded, Options};
use dendrer_object::Code;
use dendrer_view::demo::{DemoAnswer, DemoRunShown, TourStop};

use crate::context;
use crate::context::STORE_DIR;
use crate::context::keys;
use crate::demo as content;
use crate::demo::making::{self, Making};
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use crate::out::files;
use crate::progress::Progress;

/// `demo`
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Where
    #[arg(default_value = "dendrer-demo")]
    pub(crate) dir: String,
    /// "small", or a number of ticks for a generated run
    #[arg(long, default_value = "small")]
    pub(crate) size: String,
    /// Do not print the tour
    #[arg(long)]
    pub(crate) no_tour: bool,
}

/// When the demo's log begins: 2026-02-22T22:40:00Z.
const BEGINS_MS: u64 = 1_771_800_000_000;

/// The commands of the tour: what each shows, and the exit code it ends with.
const TOUR: &[(&str, u8, &str)] = &[
    (
        "dendrer bisect workshop-300 --holds 'state.total_chf <= 860'",
        0,
        "where 300 steps went wrong: tick 290, by a price in EUR that came at tick 182",
    ),
    ("dendrer show workshop-300@182", 0, "the answer that was added as CHF"),
    (
        "dendrer bisect logistics-run-47 --predicate kernel.policy_compliant",
        0,
        "the first broken rule: tick 22",
    ),
    ("dendrer verify logistics-run-47 --replay", 0, "is the record intact, and does replay reproduce it"),
    ("dendrer verify tampered.dnd", 4, "what tampering looks like"),
];

/// The suite of the forensic debugger (CFD spec 5), over the demo's own files.
const SUITE: &str = r#"{"cases":[
 {"case":"Valid Trace","file":"../logistics-run-47.dnd","expect":"verified"},
 {"case":"Payload Corruption","file":"payload.dnd","expect":"rejected","code":"E0301"},
 {"case":"Sequence Gap","file":"gap.dnd","expect":"rejected","code":"E0302"},
 {"case":"Event Swap","file":"swap.dnd","expect":"rejected","code":"E0302"},
 {"case":"Metadata Corruption","file":"metadata.dnd","expect":"rejected","code":"E0301"}
]}
"#;

pub(crate) fn run(global: &Global, args: &Demo, out: &mut Out) -> Result {
    let dir = Path::new(&args.dir);
    if dir.join(STORE_DIR).exists() {
        return Err(Failure::new(Code::E0110, format!("{} holds a store already", dir.display()))
            .note("nothing was changed"));
    }
    if let Some(failure) = context::cut_off(dir) {
        return Err(failure.note("nothing was made"));
    }
    let size = match args.size.as_str() {
        "small" => None,
        text => match text.replace(['_', ','], "").parse::<u64>() {
            Ok(size @ 1..=100_000_000) => Some(size),
            _ => {
                return Err(Failure::new(
                    Code::E0106,
                    format!("--size is \"small\" or a number of ticks, not \"{text}\""),
                ));
            }
        },
    };
    let io = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| {
            Failure::new(Code::E0801, format!("cannot write {path}")).at("cause", error.to_string())
        }
    };
    for name in [STORE_DIR, "corrupt", "logistics-run-47.dnd", "tampered.dnd"] {
        files::makes(&dir.join(name))?;
    }
    // Made beside and moved to its place when it is whole: an interrupted demo leaves one directory, and no store.
    std::fs::create_dir_all(dir).map_err(io(dir))?;
    for left in making::left_in(dir) {
        std::fs::remove_dir_all(&left).map_err(io(&left))?;
    }
    let making = Making::begin(dir).map_err(io(dir))?;
    let made = making.join("store");
    std::fs::create_dir(&made).map_err(io(&made))?;
    let key = Arc::new(content::key());
    let store = Embedded::create(&made, content::store_info(), Options::write())?;
    let mut store = store.with_key(Some(Arc::clone(&key)));
    begin_log(&mut store, &mut Fixed::new("dendrer demo log", BEGINS_MS, 1))?;
    // Its map is the same on every machine, too.
    let repo = Repo::over(Box::new(store), keys::trust(global))?
        .with_environment(|| Box::new(Fixed::new("dendrer demo map", content::LAST_MS, 1_000)));
    let store = repo.writer()?;
    let runs = match size {
        None => content::fill(store)?,
        Some(ticks) => {
            let progress = Progress::start(global, "demo", "ticks", Some(ticks));
            vec![content::fill_sized(store, ticks, &mut |tick| progress.set(tick))?]
        }
    };
    let note = context::sign(&repo)?;
    let mut files = Vec::new();
    let mut damaged = 0;
    if let (None, Some(note)) = (size, &note) {
        let victim = "logistics-run-47".parse().map_err(|_| Failure::new(Code::E0210, "logistics-run-47"))?;
        let export = |note| dendrer::bundle::export(store, std::slice::from_ref(&victim), note)?.to_vec();
        // A rewrite of a run leaves no map that counts it.
        let bad = content::damaged(&export(note)?)?;
        let counted = context::sign_with_map(&repo)?;
        let bundle = export(counted.as_ref().unwrap_or(note))?;
        damaged = bad.len();
        let good = [("logistics-run-47.dnd", bundle), ("corrupt/suite.json", SUITE.as_bytes().to_vec())];
        for (name, bytes) in good.into_iter().chain(bad) {
            let file = making.join(name);
            std::fs::create_dir_all(file.parent().unwrap_or(dir)).map_err(io(&file))?;
            std::fs::write(&file, bytes).map_err(io(&file))?;
            files.push(name);
        }
    }
    context::close(repo)?;
    // The store first: an interrupted demo leaves no file without it.
    let path = dir.join(STORE_DIR);
    std::fs::rename(&made, &path).map_err(io(&path))?;
    for name in &files {
        let file = dir.join(name);
        std::fs::create_dir_all(file.parent().unwrap_or(dir)).map_err(io(&file))?;
        std::fs::rename(making.join(name), &file).map_err(io(&file))?;
    }
    drop(making);
    let stop =
        |(command, exit, shows): &(&'static str, u8, &'static str)| TourStop { command, exit: *exit, shows };
    let shown = |run: content::DemoRun| DemoRunShown { name: run.name, ticks: run.ticks, shows: run.shows };
    out.answer(&DemoAnswer {
        path: args.dir.clone(),
        runs: runs.into_iter().map(shown).collect(),
        files,
        damaged,
        tour: TOUR.iter().filter(|_| size.is_none()).map(stop).collect(),
        shows_tour: !args.no_tour,
    })
}
