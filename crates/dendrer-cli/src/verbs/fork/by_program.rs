//! `fork RUN@N -- CMD`: a program is run again from its record, and then live with another answer.

use std::collections::BTreeMap;
use std::thread;

use dendrer::address::Position;
use dendrer::problem::Problem;
use dendrer::{Repo, Trace};
use dendrer_capture::mcp_player::tools_of_servers;
use dendrer_capture::player::tools_inside;
use dendrer_capture::proxy::Copies;
use dendrer_capture::tape::ProgramEnd;
use dendrer_capture::{Base, ForkedCalls, Forker, Proxy, Tape, VolatilePlace, bases};
use dendrer_object::{Code, Value};
use dendrer_view::fork::{ForkAnswer, ForkProgram, ForkProgramEnd};

use super::{Fork, answers, question, stays};
use crate::context::desk::CommandDesk;
use crate::context::program::{self, Started, departure, of_tape};
use crate::context::{self, keys};
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::{Out, files};

pub(super) fn run(global: &Global, args: &Fork, out: &mut Out) -> Result {
    let named = answers("--answer", &args.answer)?;
    let values = named.iter().map(|(_, file)| files::json(file)).collect::<Result<Vec<Value>>>()?;
    let path = context::find(global)?;
    let source = Repo::open(&path, keys::trust(global), dendrer::repo::Mode::Read)?;
    let (mut forker, mut given) = (None, Vec::new());
    let mut desk = CommandDesk::new(global, out);
    desk.names("contract", args.contract.as_deref());
    let made = question(args, &[])?.make_after(&mut desk, &mut |parent, tick, terms| {
        refuse_tools(args, parent, tick)?;
        let ticks = ticks(&named, parent)?;
        let answers: BTreeMap<u64, Value> = ticks.iter().copied().zip(values.iter().cloned()).collect();
        if answers.len() < ticks.len() {
            return Err(not_started(Code::E0106, "--answer names one tick twice"));
        }
        let vault = source.vault()?;
        forker = Some(Forker::open(parent, tick, vault, &answers, args.offline)?);
        given = ticks.into_iter().zip(named.iter().map(|(_, file)| (*file).to_owned())).collect();
        terms.answered = answers.into_keys().collect();
        Ok(())
    });
    drop(desk);
    let (reply, repo) = made.map_err(|failure| failure.note("the program was not started"))?;
    let mut answer = ForkAnswer::of(&reply);
    let (argv, offline) = (&args.command[..], args.offline);
    answer.program = Some(ForkProgram { argv, given: &given, offline, ended: None });
    out.pause(&mut answer)?;
    out.flush()?;
    let Some(forker) = forker.filter(|_| !args.dry_run) else { return out.end_whole(&mut answer) };
    context::sign(&repo)?;
    let run = reply.terms.run.as_str();
    let again = Again { source: &source, repo: &repo, answer: &answer };
    let ended = again.go_on(args, forker, out).map_err(|failure| stays(failure, run))?;
    answer.program.as_mut().into_iter().for_each(|program| program.ended = Some(ended.clone()));
    context::close(repo).map_err(|failure| stays(failure, run))?;
    out.end_whole(&mut answer)
}

fn not_started(code: Code, why: impl ToString) -> Failure {
    Failure::new(code, why.to_string())
}

/// Refuses to run tools inside of the program again, unless that is allowed.
fn refuse_tools(args: &Fork, parent: &Trace, tick: u64) -> std::result::Result<(), Problem> {
    // A fork starts servers of MCP from the beginning: what they did before the tick is done again.
    let mut again = tools_inside(parent, tick)?;
    again.extend(tools_of_servers(parent, tick)?);
    let again: Vec<String> = again.into_iter().collect();
    if again.is_empty() || args.tools.is_some() {
        return Ok(());
    }
    let source = format!("{}@{tick}", parent.name());
    let mut words = vec!["dendrer", "fork", &source, "--tools", "run"];
    words.extend(args.answer.iter().flat_map(|answer| ["--answer", answer]));
    words.push("--");
    words.extend(args.command.iter().map(String::as_str));
    let why = format!("tools inside the program would act again: {}", again.join(", "));
    Err(Failure::new(Code::E0469, why).help(&words))
}

/// The ticks for which answers are given.
fn ticks(named: &[(Position, &str)], parent: &Trace) -> std::result::Result<Vec<u64>, Problem> {
    named.iter().map(|(position, _)| Ok(position.tick(parent)?)).collect()
}

/// A fork whose program is run again.
struct Again<'a> {
    source: &'a Repo,
    repo: &'a Repo,
    answer: &'a ForkAnswer<'a>,
}

impl Again<'_> {
    /// Runs the program, and records its calls after the tick of the fork.
    fn go_on(&self, args: &Fork, forker: Forker, out: &mut Out) -> Result<ForkProgramEnd> {
        let not_started = |error: &dyn std::fmt::Display| not_started(Code::E0106, error);
        let reply = self.answer.reply;
        let parent = self.source.run(&reply.parent)?;
        let recorder = self.repo.recorder(&reply.terms.run)?;
        let tape = Tape::new(recorder, Some(self.repo.vault()?)).without(VolatilePlace::of_run(&parent));
        let tape = tape.resume(&parent, reply.forked.tick);
        let mut tape = tape.map_err(of_tape)?;
        let variable = |name: &str| std::env::var(name).ok();
        let bases = Base::of_fork(&parent, variable).map_err(|error| not_started(&error))?;
        let (proxy, copies) = Proxy::fork(bases, forker).map_err(|error| not_started(&error))?;
        let mut command = program::command(&args.command);
        command.envs(bases::variables(proxy.bases(), proxy.address(), variable));
        if !out.is_text() {
            command.stdout(program::stderr());
        }
        let signals = proxy.hold_signals().map_err(|error| not_started(&error))?;
        let waiting = thread::Builder::new().name("program".to_owned()).spawn(move || {
            let started = program::run(command, |process| proxy.forward(signals, process));
            let calls = proxy.forked();
            (started, calls, proxy.end())
        });
        let waiting = waiting.map_err(|error| not_started(&error))?;
        let failed = record(copies, &mut tape);
        let ended = waiting.join().map_err(|_| not_started(&"the thread of the program ended early"))?;
        self.end(ended, tape, failed, out)
    }

    fn end(
        &self,
        (started, calls, refused): (Started, ForkedCalls, u64),
        mut tape: Tape,
        failed: Option<Failure>,
        out: &mut Out,
    ) -> Result<ForkProgramEnd> {
        let program::Exit { code: exit, signal, why } = started.exit();
        let ended =
            ProgramEnd { exit: Some(exit).filter(|_| signal.is_none()), signal, refused, around: None };
        let failed = failed.or_else(|| tape.end(&ended).map_err(of_tape).err());
        if let Some(why) = why {
            return Err(Failure::new(Code::E0808, "the program was not started").at("cause", why.to_string()));
        }
        if let Some(failure) = failed {
            out.warn(
                failure.code,
                &format!("recording stopped, and the program went on: {}", failure.told()),
            );
        }
        let tip = tape.recorder().head().tick();
        let redactor = self.repo.redactor(None)?;
        let ForkedCalls { served, live, answers, divergences } = calls;
        let departure = divergences.into_iter().next().map(|found| departure(found, &redactor));
        Ok(ForkProgramEnd { exit, served, live, answers, departure, tip })
    }
}

/// Records what passes, until the server has ended. The first failure ends the record, and nothing else.
fn record(copies: Copies, tape: &mut Tape) -> Option<Failure> {
    let mut failed = None;
    for seen in copies {
        if failed.is_none() {
            failed = tape.take(seen).map_err(of_tape).err();
        }
    }
    failed
}
