//! `replay RUN -- CMD`: a program is served from its record.

use std::process::Command;

use dendrer::casebook::{self, Place};
use dendrer::source::Desk;
use dendrer::{Repo, Trace};
use dendrer_capture::player::{DepartureKind, Player, tools_inside};
use dendrer_capture::{Base, McpPlayer, Proxy, VolatilePlace, bases};
use dendrer_object::{Code, RunName, Value};
use dendrer_view::replay::ProgramReplayAnswer;

use super::Replay;
use crate::context::desk::CommandDesk;
use crate::context::program::{self, Network, departure};
use crate::context::shell::shell;
use crate::context::shims::Shims;
use crate::context::{self, keys};
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;

pub(super) fn run(global: &Global, args: &Replay, out: &mut Out) -> Result {
    let path = context::find(global)?;
    let repo = Repo::open(&path, keys::trust(global), dendrer::repo::Mode::Read)?;
    let run: RunName = args.run.parse().map_err(not_started)?;
    let trace = repo.run(&run)?;
    let again: Vec<String> = tools_inside(&trace, trace.tip())?.into_iter().collect();
    if !again.is_empty() && args.tools.is_none() {
        let mut words = vec!["dendrer", "replay", run.as_str(), "--tools", "run", "--"];
        words.extend(args.command.iter().map(String::as_str));
        let why = format!("tools inside the program would act again: {}", again.join(", "));
        return Err(Failure::new(Code::E0469, why).note("the program was not started").help(&words));
    }
    let player = player(&repo, &trace, args)?;
    let servers = McpPlayer::open(&trace, repo.vault()?)
        .map_err(|problem| problem.note("the program was not started"))?;
    let not_isolated = match program::network() {
        Network::Own => None,
        // The same command, which then finds itself inside.
        Network::Behind(command) => return Ok(program::instead(command).exit().code),
        Network::Shared(why) => Some(why),
    };
    for line in ProgramReplayAnswer::head(&run, not_isolated.as_deref()) {
        out.say(line);
    }
    let bases = Base::of_run(&trace).map_err(not_started)?;
    let proxy = Proxy::play(bases, player).map_err(not_started)?;
    let variable = |name: &str| std::env::var(name).ok();
    let shims = Shims::play(&names(&trace), servers).map_err(not_started)?;
    let mut command = command(args);
    command.envs(shims.variables());
    command.envs(bases::variables(proxy.bases(), proxy.address(), variable));
    if !out.is_text() {
        command.stdout(program::stderr());
    }
    let signals = proxy.hold_signals().map_err(not_started)?;
    let exit = program::run(command, |process| proxy.forward(signals, process)).exit();
    if let Some(why) = exit.why {
        return Err(Failure::new(Code::E0808, "the program was not started").at("cause", why.to_string()));
    }
    let (of_servers, played) = (shims.end(), proxy.end_play());
    let redactor = repo.redactor(None)?;
    // A call over MCP that departs shows in a later request as well; one that was not made may follow from either.
    let found = of_servers.divergences.into_iter().chain(played.divergences);
    let found = found.min_by_key(|found| found.kind == DepartureKind::Missing);
    let departure = found.map(|found| departure(found, &redactor));
    let volatile: Vec<(String, u64)> =
        played.volatile.iter().map(|(place, requests)| (place.to_string(), *requests)).collect();
    let answer = ProgramReplayAnswer {
        run: &run,
        not_isolated: not_isolated.as_deref(),
        recorded: played.recorded + of_servers.recorded,
        served: played.served + of_servers.served,
        exit: exit.code,
        again: &again,
        volatile,
        departure,
    };
    if args.record {
        record(&answer, &trace, &mut CommandDesk::new(global, out))?;
    }
    out.answer(&answer)
}

/// Writes into the casebook which places differ, or where the program departs.
fn record(answer: &ProgramReplayAnswer<'_>, trace: &Trace, desk: &mut dyn Desk) -> Result<()> {
    let place = Place::of(trace, None)?;
    if let Some(divergence) = answer.divergence() {
        desk.write_down(|store, environment| {
            casebook::record_divergence(store, &place, &divergence, environment)
        })?;
    }
    if !answer.volatile.is_empty() {
        let mut places: Vec<String> = answer.volatile.iter().map(|(place, _)| place.clone()).collect();
        desk.write_down(|store, environment| {
            places.extend(casebook::volatile_of(store, trace.name())?);
            places.sort_unstable();
            places.dedup();
            casebook::record_volatile(store, &place, &places, "dendrer replay --calibrate", environment)
        })?;
    }
    Ok(())
}

fn not_started(error: impl ToString) -> Failure {
    Failure::new(Code::E0106, error.to_string()).note("the program was not started")
}

fn player(repo: &Repo, trace: &Trace, args: &Replay) -> Result<Player> {
    let mut volatile = program::volatile(&args.volatile)?;
    let known = casebook::volatile_of(trace.store(), trace.name())?;
    volatile.extend(known.iter().filter_map(|place| VolatilePlace::parse(place).ok()));
    let player = Player::open(trace, repo.vault()?, volatile)
        .map_err(|problem| problem.note("the program was not started"))?;
    Ok(if args.calibrate { player.calibrating() } else { player })
}

/// The names of the shims that a run was recorded with.
fn names(trace: &Trace) -> Vec<String> {
    let meta = trace.start().body().value("/meta");
    let names = meta.and_then(|meta| meta.get("capture")?.get("mcp").cloned());
    let names = names.as_ref().and_then(Value::as_array);
    names
        .into_iter()
        .flat_map(|names| names.iter())
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

fn command(args: &Replay) -> Command {
    match &args.exec {
        Some(command) => shell(command),
        None => program::command(&args.command),
    }
}
