//! `dendrer demo`

use std::path::Path;

use dendrer::recorder::{Fixed, begin_log};
use dendrer::store::Store;
use dendrer::store::embedded::{Embedded, Options};
use dendrer_object::Value;
use dendrer_view::{document, quote, thousands};

use crate::args::Demo;
use crate::demo as content;
use crate::failure::{Failure, Result};
use crate::keys;
use crate::open::STORE_DIR;
use crate::out::Out;

/// When the demo's log begins: 2026-02-22T22:40:00Z.
const BEGINS_MS: u64 = 1_771_800_000_000;

/// The commands of the tour: what each shows, and the exit code it ends with.
const TOUR: &[(&str, u8, &str)] = &[
    ("dendrer runs", 0, "what was recorded"),
    (
        "dendrer bisect logistics-run-47 --predicate kernel.policy_compliant",
        0,
        "where it first went wrong: tick 22, by reading committed states",
    ),
    ("dendrer show logistics-run-47@22", 0, "what happened there"),
    ("dendrer verify logistics-run-47 --replay", 0, "is the record intact, and does replay reproduce it"),
    ("dendrer verify tampered.dnd", 4, "what tampering looks like"),
];

pub(crate) fn run(args: &Demo, out: &mut Out) -> Result {
    let dir = Path::new(&args.dir);
    if dir.join(STORE_DIR).exists() {
        return Err(Failure::new("E0110", format!("{} holds a store already", dir.display()))
            .note("nothing was changed"));
    }
    let size = match args.size.as_str() {
        "small" => None,
        text => match text.replace(['_', ','], "").parse::<u64>() {
            Ok(size @ 1..=100_000_000) => Some(size),
            _ => {
                return Err(Failure::new(
                    "E0106",
                    format!("--size is \"small\" or a number of ticks, not \"{text}\""),
                ));
            }
        },
    };
    let io = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| {
            Failure::new("E0801", format!("cannot write {path}")).at("cause", error.to_string())
        }
    };
    let path = dir.join(STORE_DIR);
    std::fs::create_dir_all(&path).map_err(io(&path))?;
    let key = content::key();
    let mut store = Embedded::create(&path, content::store_info(), Options::write())?;
    begin_log(&mut store, &mut Fixed::new("dendrer demo log", BEGINS_MS, 1))?;
    let runs = match size {
        None => content::fill(&mut store)?,
        Some(ticks) => vec![content::fill_sized(&mut store, ticks)?],
    };
    let note = keys::sign(&mut store, Some(&key))?;
    let mut files = Vec::new();
    if let (None, Some(note)) = (size, &note) {
        let victim = "logistics-run-47".parse().map_err(|_| Failure::new("E0210", "logistics-run-47"))?;
        let bundle = dendrer::bundle::export(&store, &[victim], note)?.write(&dendrer::store::split);
        for (name, bytes) in content::damaged(&bundle)? {
            let file = dir.join(name);
            std::fs::create_dir_all(file.parent().unwrap_or(dir)).map_err(io(&file))?;
            std::fs::write(&file, bytes).map_err(io(&file))?;
            files.push(name);
        }
    }
    Store::close(Box::new(store))?;
    if !out.is_text() {
        let run = |run: &content::DemoRun| {
            Value::record([
                ("name", Value::from(run.name.as_str())),
                ("ticks", Value::from(run.ticks)),
                ("shows", Value::from(run.shows)),
            ])
        };
        out.document(&document(
            "demo",
            [
                ("path", Value::from(args.dir.as_str())),
                ("items", Value::array(runs.iter().map(run))),
                ("files", Value::array(files.iter().map(|name| Value::from(*name)))),
                (
                    "tour",
                    Value::array(TOUR.iter().map(|(command, exit, _)| {
                        Value::record([
                            ("command", Value::from(*command)),
                            ("exit", Value::from(u64::from(*exit))),
                        ])
                    })),
                ),
            ],
        ))?;
        return Ok(0);
    }
    out.line(format!(
        "made {} with {} and {} damaged bundles; all of it is synthetic, and its key is public",
        quote::escape(&args.dir),
        dendrer_view::count(runs.len() as u64, "run", "runs"),
        files.len()
    ))?;
    for run in &runs {
        out.line(format!("  {:<20} {:>9} ticks   {}", run.name.as_str(), thousands(run.ticks), run.shows))?;
    }
    if size.is_none() && !args.no_tour {
        out.line("")?;
        out.line(format!("a tour (first: cd {}):", quote::escape(&args.dir)))?;
        for (command, exit, shows) in TOUR {
            out.line(format!("  {command}"))?;
            out.line(format!(
                "      {shows}{}",
                if *exit == 0 { String::new() } else { format!("; exit code {exit}") }
            ))?;
        }
    }
    Ok(0)
}
