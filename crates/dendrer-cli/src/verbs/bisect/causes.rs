//! The class of a failure that a person decides on, asked on a terminal.

use dendrer_object::Code;
use std::io::{BufRead, IsTerminal, Write};

use dendrer::diagnosis::{DiagnosisClass, Offer};
use dendrer_view::bisect::BisectCommand;
use dendrer_view::contributors::diagnosis_lines;

use super::args::DiagnosisChoice;
use crate::failure::{Failure, Result};

/// Returns the class that a person decided on; `None` if no question was asked, or it was left open.
pub(super) fn decide(
    choice: Option<DiagnosisChoice>,
    offer: Option<&Offer>,
    command: &BisectCommand,
) -> Result<Option<DiagnosisClass>> {
    Ok(match (choice, offer) {
        (None, _) => None,
        (Some(_), None) => {
            return Err(Failure::new(Code::E0106, "there is no onset, so there is nothing to diagnose")
                .note("leave --diagnosis out to see the answer"));
        }
        (Some(DiagnosisChoice::Ask), Some(offer)) => ask(command, offer)?,
        (Some(DiagnosisChoice::ContingentState), _) => Some(DiagnosisClass::ContingentState),
        (Some(DiagnosisChoice::ContingentPolicy), _) => Some(DiagnosisClass::ContingentPolicy),
        (Some(DiagnosisChoice::Foundational), _) => Some(DiagnosisClass::Foundational),
    })
}

/// Asks for a class on the terminal; an error if standard input is not one.
fn ask(command: &BisectCommand, offer: &Offer) -> Result<Option<DiagnosisClass>> {
    let failed = |error: std::io::Error| {
        Failure::new(Code::E0801, "the question could not be asked").at("cause", error.to_string())
    };
    if !std::io::stdin().is_terminal() {
        let argv = command.with(&["--diagnosis", offer.class.word(), "--record"]);
        return Err(Failure::new(Code::E0106, "--diagnosis ask asks on a terminal, and this is none")
            .note("say which: contingent-state, contingent-policy or foundational")
            .help(&argv.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    let mut stderr = std::io::stderr();
    for line in diagnosis_lines(offer, None, "the predicate") {
        writeln!(stderr, "{line}").map_err(failed)?;
    }
    for (number, class) in (1..).zip(DiagnosisClass::ALL) {
        writeln!(stderr, "  {number}  {class}").map_err(failed)?;
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
