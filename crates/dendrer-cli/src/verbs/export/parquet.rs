//! `dendrer export --format parquet` and `--check`.

use dendrer_object::Code;

use super::Export;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;

/// Writes or checks an export as Parquet.
pub(super) fn run(global: &Global, args: &Export, out: &mut Out) -> Result {
    if args.dir.is_some() && global.format.as_deref() != Some("parquet") {
        return Err(Failure::new(Code::E0106, "--dir is for --format parquet"));
    }
    built::run(global, args, out)
}

#[cfg(not(feature = "fleet"))]
mod built {
    use super::*;

    /// Refuses the form.
    pub(super) fn run(_: &Global, _: &Export, _: &mut Out) -> Result {
        Err(Failure::new(Code::E0818, "this program was built without exports as Parquet").note(
            "cargo install --features fleet builds them in; the program of the Python package has them",
        ))
    }
}

#[cfg(feature = "fleet")]
mod built {
    use std::path::Path;

    use dendrer_fleet::{FleetTerms, check, export};
    use dendrer_object::RunName;
    use dendrer_view::fleet::{FleetCheckAnswer, FleetExportAnswer};

    use super::*;
    use crate::context;

    /// Writes or checks an export.
    pub(super) fn run(global: &Global, args: &Export, out: &mut Out) -> Result {
        out.asks_nothing();
        match &args.check {
            Some(dir) => checked(global, dir, out),
            None => written(global, args, out),
        }
    }

    fn written(global: &Global, args: &Export, out: &mut Out) -> Result {
        let Some(dir) = &args.dir else {
            return Err(Failure::new(Code::E0106, "an export as Parquet needs a directory: --dir DIR"));
        };
        let names = args.runs.iter().map(|text| {
            let refused = || Failure::new(Code::E0106, format!("{text} is no run of the store"));
            text.parse::<RunName>().map_err(|_| refused())
        });
        let names = names.collect::<Result<Vec<RunName>>>()?;
        let (repo, _) = context::read_repo(global)?;
        let terms = FleetTerms {
            columns: args.columns.clone(),
            states: args.states,
            proof: !args.no_proof,
            ..FleetTerms::default()
        };
        let report = export(&repo.reader()?, &names, Path::new(dir), &terms, &mut |_| Ok(()))?;
        if report.left_out {
            out.say("WARN there are more places than columns; --columns names those that are to be columns");
        }
        let manifest = &report.manifest;
        out.answer(&FleetExportAnswer {
            dir: dir.clone(),
            size: manifest.size,
            runs: manifest.runs,
            rows: manifest.rows,
            columns: manifest.columns.iter().map(|column| column.name()).collect(),
            files: manifest.files.len() as u64,
            kept: report.kept,
            ancestors: report.ancestors,
        })
    }

    fn checked(global: &Global, dir: &str, out: &mut Out) -> Result {
        // Without --store the export is checked by itself.
        let store = match &global.store {
            Some(_) => Some(context::read_repo(global)?.0.reader()?),
            None => None,
        };
        let found = check(Path::new(dir), store.as_ref())?;
        out.answer(&FleetCheckAnswer {
            files: found.files.into_iter().map(|file| (file.file, file.why)).collect(),
            rewrite: found.rewrite,
            is_rooted: found.is_rooted,
        })
    }
}
