//! `dendrer explain`

use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use dendrer_object::Code;
use dendrer_object::text::nearest;
use dendrer_view::help::ExplainAnswer;
use dendrer_view::verify::words;

use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::offers;
use crate::out::Out;

/// `explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The code, like E0301, or a word of verify, like UNWITNESSED; all of them if not given
    #[arg(add = ArgValueCompleter::new(offers::codes))]
    pub(crate) code: Option<String>,
}

pub(crate) fn run(_: &Global, args: &Explain, out: &mut Out) -> Result {
    let Some(wanted) = &args.code else { return out.answer(&ExplainAnswer::All) };
    if let Some(word) = words::word(wanted) {
        return out.answer(&ExplainAnswer::Word(word));
    }
    let wanted = wanted.to_uppercase();
    let code = wanted.parse().map_err(|_| {
        let words = words::WORDS.iter().map(|entry| entry.word);
        let near = nearest(&wanted, Code::ALL.iter().map(|code| code.as_str()).chain(words));
        let failure = Failure::new(Code::E0109, format!("there is no code and no word {wanted}"));
        failure.help(&[&["dendrer", "explain"][..], near.as_slice()].concat())
    })?;
    out.answer(&ExplainAnswer::Code(code))
}
