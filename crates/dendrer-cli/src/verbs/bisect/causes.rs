//! The class of a failure that a person decides on, asked on a terminal.

use dendrer_object::Code;
use std::io::{BufRead, IsTerminal, Write};

use dendrer::casebook::diagnosis::{DiagnosisClass, Offer};
use dendrer_view::bisect::BisectCommand;
use dendrer_view::contributors::diagnosis_lines;

use crate::failure::{Failure, Result};

/// Asks for a class on the terminal; an error if standard input is not one.
pub(super) fn ask(command: &BisectCommand, offer: &Offer) -> Result<Option<DiagnosisClass>> {
    let failed = |error: std::io::Error| {
        Failure::new(Code::E0801, "the question could not be asked").at("cause", error.to_string())
    };
    if !std::io::stdin().is_terminal() {
        let argv = command.with(&["--diagnosis", offer.class.as_str(), "--record"]);
        return Err(Failure::new(Code::E0106, "--diagnosis ask asks on a terminal, and this is none")
            .note("say which: contingent-state, contingent-policy or foundational")
            .help(&argv.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let mut stderr = std::io::stderr();
    for line in diagnosis_lines(offer, None, "the predicate") {
        writeln!(stderr, "{line}").map_err(failed)?;
    }
    for (number, class) in (1..).zip(DiagnosisClass::ALL.iter().copied()) {
        writeln!(stderr, "  {number}  {}", class.title()).map_err(failed)?;
    }
    loop {
        write!(stderr, "What do you take it for? 1, 2, 3, or Enter to leave it open: ").map_err(failed)?;
        stderr.flush().map_err(failed)?;
        let mut answer = String::new();
        let read = std::io::stdin().lock().read_line(&mut answer).map_err(failed)?;
        match answer.trim() {
            "" => return Ok(None),
            _ if read == 0 => return Ok(None),
            "1" => return Ok(Some(DiagnosisClass::ContingentState)),
            "2" => return Ok(Some(DiagnosisClass::ContingentPolicy)),
            "3" => return Ok(Some(DiagnosisClass::Foundational)),
            _ => {}
        }
    }
}
