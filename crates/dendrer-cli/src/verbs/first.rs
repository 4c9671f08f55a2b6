//! `dendrer` alone: the newest runs of the store here and what to type next.

use dendrer::ask::runs::question::RunsQuestion;
use dendrer::source::Asked as _;

use crate::context;
use crate::context::desk::CommandDesk;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;
use dendrer_object::Code;
use dendrer_view::quote::shell;

/// How many runs are listed.
const RUNS: u64 = 10;

/// Printed if there is no store here.
const WELCOME: &str = "\
dendrer: version control for the runs of AI agents

Records what an agent proposed, what was allowed and which state followed; proves that the record is
what was committed; replays it without a model or a tool; finds the first tick that went wrong.

  dendrer demo            make a sample store and take a tour
  dendrer init            create a store here
  dendrer commit --run R  record intents, as JSON lines on standard input
  dendrer import FILE     bring in a trace that another program wrote
  dendrer help            all verbs
";

pub(crate) fn run(global: &Global, out: &mut Out) -> Result {
    let is_named = global.store.is_some();
    match context::find(global) {
        Ok(_) => newest(global, out),
        Err(failure) if failure.code == Code::E0103 && !is_named => {
            out.bytes(WELCOME.as_bytes())?;
            Ok(0)
        }
        Err(failure) => Err(failure),
    }
}

/// Lists the newest runs, and three commands about the first.
fn newest(global: &Global, out: &mut Out) -> Result {
    let question = RunsQuestion { limit: Some(RUNS), ..RunsQuestion::default() };
    let answer = question.ask(&mut CommandDesk::new(global, out))?;
    let name = answer.runs.first().map(|run| run.summary.name.to_string());
    let code = out.answer(&answer)?;
    let next: [&[&str]; 3] = match &name {
        Some(name) => [
            &["dendrer", "log", name],
            &["dendrer", "bisect", name, "--holds", "state.counters.tool_errors == 0"],
            &["dendrer", "help"],
        ],
        None => [&["dendrer", "demo"], &["dendrer", "import", "--help"], &["dendrer", "help"]],
    };
    out.line("")?;
    for argv in next {
        let command = shell(&out.to_paste(argv));
        out.line(format!("  {command}"))?;
    }
    Ok(code)
}
