//! Answers clients of MCP from a record: servers are not started.
//!
//! Rule: nothing near a recorded request is answered. The first request to a server that is not on record gets an error, and so do
//! all later ones of that client.

use std::collections::{BTreeMap, BTreeSet};

use dendrer::Trace;
use dendrer::problem::Problem;
use dendrer::vault::Vault;
use dendrer_object::value::first_difference;
use dendrer_object::{Digest, Record, RunName, Value, json};

use crate::exact;
use crate::exchange::CallNumber;
use crate::mcp::{self, MCP, McpEnd, McpLine, McpSaid, McpSide};
use crate::player::{DepartureKind, PlayedCalls, ProgramDivergence, of_vault};

/// The code of an error of a server (JSON-RPC 2.0, 5.1).
const SERVER_ERROR: i64 = -32000;

/// Answers from the calls over MCP of a run.
#[derive(Debug)]
pub struct McpPlayer {
    /// The runs under whose names exact bytes are.
    runs: BTreeSet<RunName>,
    vault: Vault,
    calls: Vec<RecordedCall>,
    /// By the keyed digest of a command, how its server ended if that was no success.
    servers: BTreeMap<Digest, Option<McpEnd>>,
    played: PlayedCalls,
}

/// A call on record.
#[derive(Debug)]
struct RecordedCall {
    call: CallNumber,
    /// The run under whose name its exact bytes are: a fork has calls of its parents.
    run: RunName,
    agent: String,
    command: Digest,
    known: Digest,
    method: String,
    has_answer: bool,
    is_served: bool,
}

/// A client that is answered.
#[derive(Debug)]
pub(crate) struct McpClient {
    command: Vec<String>,
    /// The keyed digests of its command under which a server was recorded.
    known: Vec<Digest>,
    agent: String,
    has_departed: bool,
}

impl McpClient {
    /// Whether its command is that of a recorded server.
    pub(crate) fn is_known(&self) -> bool {
        !self.known.is_empty()
    }
}

impl McpPlayer {
    /// Reads the calls over MCP of a run.
    ///
    /// # Errors
    ///
    /// A record cannot be read, or the key of its vault is not here (E0465).
    pub fn open(trace: &Trace, vault: Vault) -> Result<McpPlayer, Problem> {
        let (mut calls, mut servers) = (BTreeMap::new(), BTreeMap::new());
        for tick in 1..=trace.tip() {
            let record = trace.record(tick)?;
            let Some((command, end, call)) = recorded(&record, &vault) else { continue };
            let known = servers.entry(command).or_insert(None);
            *known = end.or(*known);
            if let Some(call) = call {
                calls.entry(call.call).or_insert(call);
            }
        }
        let calls: Vec<RecordedCall> = calls.into_values().collect();
        if let Some(first) = calls.iter().find(|call| call.has_answer) {
            vault.get(&first.run, &exact::locator(first.call, "answer")).map_err(of_vault)?;
        }
        let played = PlayedCalls { recorded: calls.len() as u64, ..PlayedCalls::default() };
        let runs = calls.iter().map(|call| call.run.clone()).collect();
        Ok(McpPlayer { runs, vault, calls, servers, played })
    }

    /// Begins to answer a client that started a command.
    pub(crate) fn begin(&mut self, command: &[String], name: Option<&str>) -> McpClient {
        let known = self.known(&mcp::command_key(command)).into_iter().map(|(_, known)| known);
        let known = known.filter(|known| self.servers.contains_key(known)).collect();
        let agent = format!("{MCP}:{}", mcp::server_name(name, command));
        McpClient { command: command.to_vec(), known, agent, has_departed: false }
    }

    /// Answers a line. The end is that of the server, if it ended without an answer.
    pub(crate) fn answer(
        &mut self,
        client: &mut McpClient,
        line: &[u8],
        left_out: u64,
    ) -> (Vec<u8>, Option<McpEnd>) {
        let is_batch = line.trim_ascii_start().first() == Some(&b'[');
        let said = match McpLine::new(McpSide::Client, line.to_vec(), left_out, &mut || 0).said {
            Ok(said) => said,
            Err(why) => {
                let why = format!("a line that cannot be read is on no record ({why})");
                self.surplus(client);
                return (with_end(error(&Value::Null, &why)), None);
            }
        };
        let (mut answers, mut end) = (Vec::new(), None);
        for one in said {
            if let McpSaid::Request { id, method, whole, .. } = one {
                match self.find(client, &method, &whole) {
                    Served::Answer(bytes) => answers.push(with_id(bytes, &id)),
                    Served::Nothing => end = end.or(self.ending(client)),
                    Served::Refusal(why) => answers.push(error(&id, &why)),
                }
            }
        }
        let bytes = match (is_batch, answers.is_empty()) {
            (_, true) => Vec::new(),
            (true, false) => with_end([b"[".as_slice(), &answers.join(&b','), b"]"].concat()),
            (false, false) => answers.into_iter().flat_map(with_end).collect(),
        };
        (bytes, end)
    }

    /// The keyed digests of some bytes, for each run.
    fn known(&mut self, bytes: &[u8]) -> Vec<(RunName, Digest)> {
        let vault = &mut self.vault;
        self.runs.iter().filter_map(|run| Some((run.clone(), vault.known_by(run, bytes).ok()?))).collect()
    }

    /// How a server ends whose client sends nothing more.
    pub(crate) fn client_end(&self, client: &McpClient) -> McpEnd {
        let end = client.known.iter().find_map(|known| *self.servers.get(known)?);
        McpEnd { exit: end.and_then(|end| end.exit).or(Some(0)), signal: None }
    }

    /// The counts; a call that was not made is a divergence, if there is no other.
    pub(crate) fn end(&mut self) -> PlayedCalls {
        let mut played = self.played.clone();
        let left = self.calls.iter().find(|call| !call.is_served && call.method != PING);
        if let (true, Some(left)) = (played.divergences.is_empty(), left) {
            played.divergences.push(divergence(Some(left.call), &left.agent, DepartureKind::Missing));
        }
        played
    }

    /// How the server ended, if nothing of it is left.
    fn ending(&self, client: &McpClient) -> Option<McpEnd> {
        let is_left = self.calls.iter().any(|call| client.known.contains(&call.command) && !call.is_served);
        client.known.iter().find_map(|known| *self.servers.get(known)?).filter(|_| !is_left)
    }

    fn find(&mut self, client: &mut McpClient, method: &str, whole: &Value) -> Served {
        if client.has_departed {
            return Served::Refusal("this client departed from the record before".to_owned());
        }
        let known = mcp::request_key(&client.command, method, &mcp::params(whole));
        let known = self.known(&known);
        let is_it =
            |call: &RecordedCall| known.iter().any(|(run, known)| *run == call.run && *known == call.known);
        let Some(found) = self.calls.iter().position(|call| !call.is_served && is_it(call)) else {
            // Whether a connection lives is asked by the clock.
            if method == PING {
                return Served::Answer(json::to_vec(&Value::record([
                    ("jsonrpc", Value::from("2.0")),
                    ("id", Value::Null),
                    ("result", Value::object()),
                ])));
            }
            return Served::Refusal(self.depart(client, method, whole));
        };
        let call = &mut self.calls[found];
        call.is_served = true;
        self.played.served += 1;
        if !call.has_answer {
            return Served::Nothing;
        }
        match self.vault.get(&call.run, &exact::locator(call.call, "answer")) {
            Ok(bytes) => match exact::split(&bytes) {
                Some((_, body)) => Served::Answer(body.to_vec()),
                None => Served::Refusal("the answer in the vault cannot be read".to_owned()),
            },
            Err(error) => Served::Refusal(error.to_string()),
        }
    }

    /// Notes that a client departs, and returns the reason.
    fn depart(&mut self, client: &mut McpClient, method: &str, whole: &Value) -> String {
        let left =
            || self.calls.iter().filter(|call| !call.is_served && client.known.contains(&call.command));
        let due = left().find(|call| call.method == method).or_else(|| left().next());
        let Some(due) = due else {
            self.surplus(client);
            return "no recorded call is left for this request".to_owned();
        };
        let (call, run, agent) = (due.call, due.run.clone(), due.agent.clone());
        let as_compared = |method: Option<&str>, whole: &Value| {
            Value::record([
                ("method", method.map_or(Value::Null, Value::from)),
                ("params", mcp::params(whole)),
            ])
        };
        let recorded = self.vault.get(&run, &exact::locator(call, "request")).ok();
        let recorded = recorded.and_then(|bytes| json::parse_door(exact::split(&bytes)?.1).ok());
        let recorded = recorded.map(|whole| as_compared(whole.get("method").and_then(Value::as_str), &whole));
        let difference =
            recorded.and_then(|recorded| first_difference(&recorded, &as_compared(Some(method), whole)));
        let mut found = divergence(Some(call), &agent, DepartureKind::ChangedRequest);
        if let Some(difference) = difference {
            found.path = Some(difference.path.to_string());
            (found.expected, found.got) = (difference.left, difference.right);
        }
        let place = found.path.clone().unwrap_or_default();
        self.played.divergences.push(found);
        client.has_departed = true;
        format!("this request is not on record; call {call} differs at {place:?}")
    }

    fn surplus(&mut self, client: &mut McpClient) {
        if !std::mem::replace(&mut client.has_departed, true) {
            self.played.divergences.push(divergence(None, &client.agent, DepartureKind::Surplus));
        }
    }
}

/// The tools that servers of MCP ran for a program up to a tick.
///
/// # Errors
///
/// A record cannot be read.
pub fn tools_of_servers(trace: &Trace, to: u64) -> Result<BTreeSet<String>, dendrer::Error> {
    let mut tools = BTreeSet::new();
    for tick in 1..=to {
        let content = trace.record(tick)?.content();
        let capture = content.get("intent").and_then(|words| words.get("capture"));
        let tool = content.get("action").filter(|_| content.get("result").is_some());
        let tool = tool.and_then(|action| action.get("tool")?.as_str().map(str::to_owned));
        tools.extend(tool.filter(|_| capture.is_some_and(mcp::is_mcp)));
    }
    Ok(tools)
}

/// The request that asks whether a server lives.
const PING: &str = "ping";

enum Served {
    Answer(Vec<u8>),
    /// It had no answer when it was recorded.
    Nothing,
    Refusal(String),
}

fn divergence(call: Option<CallNumber>, agent: &str, kind: DepartureKind) -> ProgramDivergence {
    let (api, agent) = (MCP.to_owned(), agent.to_owned());
    ProgramDivergence { call, api, agent, kind, path: None, expected: None, got: None }
}

/// The command of a server, its end, and a call to it.
type RecordedServer = (Digest, Option<McpEnd>, Option<RecordedCall>);

/// Reads the command, the end and a call of a server.
fn recorded(record: &Record, vault: &Vault) -> Option<RecordedServer> {
    let content = record.content();
    let run = record.header().run.clone()?;
    let words = content.get("intent")?;
    let capture = words.get("capture").filter(|capture| mcp::is_mcp(capture))?;
    let digest = |name: &str| -> Option<Digest> { capture.get(name)?.as_str()?.parse().ok() };
    let command = digest("command")?;
    let end = words.get(MCP).and_then(|said| said.get("ended")).map(|end| {
        let byte =
            |name: &str| end.get(name).and_then(Value::as_u64).and_then(|value| u8::try_from(value).ok());
        McpEnd { exit: byte("exit"), signal: byte("signal") }
    });
    let call = || {
        let call = capture.get("call")?.as_u64()?;
        let exact = capture.get("exact")?;
        let request = vault.get(&run, &exact::locator(call, "request")).ok();
        let request = request.and_then(|bytes| json::parse_door(exact::split(&bytes)?.1).ok());
        let method = request.and_then(|whole| whole.get("method")?.as_str().map(str::to_owned));
        Some(RecordedCall {
            call,
            run: run.clone(),
            agent: content.get("agent_id")?.as_str()?.to_owned(),
            command,
            known: digest("asked")?,
            method: method.unwrap_or_default(),
            has_answer: exact.get("answer").is_some(),
            is_served: false,
        })
    };
    Some((command, end, call()))
}

/// An answer with the id of a request: the bytes themselves if it is the recorded one.
fn with_id(bytes: Vec<u8>, id: &Value) -> Vec<u8> {
    match json::parse_door(&bytes) {
        Ok(Value::Object(mut whole)) if whole.get("id") != Some(id) => {
            whole.set("id", id.clone());
            json::to_vec(&Value::Object(whole))
        }
        _ => bytes,
    }
}

fn with_end(mut line: Vec<u8>) -> Vec<u8> {
    line.push(b'\n');
    line
}

fn error(id: &Value, why: &str) -> Vec<u8> {
    let error = [("code", Value::from(SERVER_ERROR)), ("message", Value::from(format!("dendrer: {why}")))];
    let whole = [("error", Value::record(error)), ("id", id.clone()), ("jsonrpc", Value::from("2.0"))];
    json::to_vec(&Value::record(whole))
}
