//! Conversations by chance, before any format: agents, turns of the user, messages of models, calls and their results.

use std::ops::Range;

/// Numbers by chance, the same for the same seed.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, many: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % many
    }

    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    pub(crate) fn in_ten(&mut self, many: u64) -> bool {
        self.below(10) < many
    }
}

/// How calls are numbered.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Ids {
    Unique,
    /// Each agent begins anew with each turn of the user.
    Anew,
    None,
}

/// What a format can state.
#[derive(Clone, Copy)]
pub(crate) struct Can {
    pub(crate) agents: u64,
    pub(crate) ids: &'static [Ids],
    /// Whether a result may name tool and agent.
    pub(crate) names: bool,
    /// Whether a result may come after other messages than results of the same request.
    pub(crate) late: bool,
    /// Whether a call may be answered twice.
    pub(crate) twice: bool,
    /// Whether a call may be asked for again with the same parameters.
    pub(crate) same: bool,
    /// Whether a conversation may go back to an earlier turn of the user.
    pub(crate) trees: bool,
    /// Whether a message may stand in the file again.
    pub(crate) again: bool,
}

pub(crate) struct Call {
    pub(crate) id: Option<String>,
    pub(crate) tool: &'static str,
    pub(crate) params: u64,
    pub(crate) agent: &'static str,
}

/// Whether a text has a tag that opens a call or a result.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Text {
    Plain,
    InCode,
    Tag,
}

pub(crate) enum Said {
    User(Text),
    Model {
        agent: &'static str,
        text: Option<Text>,
        calls: Range<usize>,
        /// Tokens in and out.
        usage: Option<[u64; 2]>,
    },
    Result {
        call: usize,
        names_tool: bool,
        names_agent: bool,
    },
    /// An earlier entry, once more.
    Again(usize),
}

pub(crate) struct Entry {
    pub(crate) before: Option<usize>,
    pub(crate) said: Said,
    /// A number by which a writer chooses among its spellings.
    pub(crate) how: u64,
}

/// A conversation.
pub(crate) struct Model {
    pub(crate) entries: Vec<Entry>,
    pub(crate) calls: Vec<Call>,
    pub(crate) ids: Ids,
}

pub(crate) const TOOLS: [&str; 3] = ["search", "pay", "wipe"];
pub(crate) const AGENTS: [&str; 3] = ["ann", "bob", "assistant"];

/// The calls of one branch while it is drawn.
#[derive(Clone, Default)]
struct Open {
    open: Vec<usize>,
    done: Vec<usize>,
    /// Calls of the newest request, which an immediate result answers.
    newest: Range<usize>,
    next: [u64; 3],
}

impl Model {
    pub(crate) fn draw(dice: &mut Dice, can: Can) -> Model {
        let ids = dice.one(can.ids);
        let mut model = Model { entries: Vec::new(), calls: Vec::new(), ids };
        let agents =
            if can.agents == 1 { &AGENTS[2..] } else { &AGENTS[..1 + dice.below(can.agents) as usize] };
        // How often a message of a model states what it used: never, mostly, always.
        let usage_of_ten = dice.one(&[0, 8, 10]);
        let mut states: Vec<Open> = Vec::new();
        let (mut state, mut tip) = (Open::default(), None);
        for _ in 0..2 + dice.below(14) {
            if can.trees && dice.below(12) == 0 {
                let is_turn = |at: &usize| matches!(model.entries[*at].said, Said::User(_));
                let turns: Vec<usize> = (1..model.entries.len()).filter(is_turn).collect();
                if !turns.is_empty() {
                    let before = model.entries[dice.one(&turns)].before.unwrap_or(0);
                    (state, tip) = (states[before].clone(), Some(before));
                    state.newest = 0..0;
                    let said = Said::User(Text::Plain);
                    model.add(dice, &mut tip, said);
                    states.push(state.clone());
                    continue;
                }
            }
            let said = model.next(dice, can, agents, usage_of_ten, &mut state, tip);
            if let Some(said) = said {
                model.add(dice, &mut tip, said);
                states.push(state.clone());
            }
        }
        model
    }

    fn add(&mut self, dice: &mut Dice, tip: &mut Option<usize>, said: Said) {
        self.entries.push(Entry { before: *tip, said, how: dice.below(1 << 20) });
        *tip = Some(self.entries.len() - 1);
    }

    fn next(
        &mut self,
        dice: &mut Dice,
        can: Can,
        agents: &[&'static str],
        usage_of_ten: u64,
        state: &mut Open,
        tip: Option<usize>,
    ) -> Option<Said> {
        let text = dice.one(&[
            Text::Plain,
            Text::Plain,
            Text::Plain,
            Text::Plain,
            Text::Plain,
            Text::InCode,
            Text::Tag,
        ]);
        match dice.below(10) {
            0 | 1 => {
                if self.ids == Ids::Anew {
                    state.next = [0; 3];
                }
                state.newest = 0..0;
                Some(Said::User(text))
            }
            2 if can.again && tip.is_some() && dice.below(2) == 0 => {
                let from = self.entries.iter().rposition(|entry| !matches!(entry.said, Said::Again(_)))?;
                state.newest = 0..0;
                Some(Said::Again(from))
            }
            roll @ 2..=5 => {
                let agent = dice.one(agents);
                let from = self.calls.len();
                if roll > 2 {
                    (0..1 + dice.below(3)).for_each(|_| self.ask(dice, can.same, agent, state));
                }
                let calls = from..self.calls.len();
                state.open.extend(calls.clone());
                state.newest = calls.clone();
                let usage = dice.in_ten(usage_of_ten).then(|| [1 + dice.below(500), 1 + dice.below(99)]);
                let text = if calls.is_empty() {
                    Some(text)
                } else {
                    (dice.below(3) == 0).then(|| dice.one(&[Text::Plain, Text::InCode]))
                };
                Some(Said::Model { agent, text, calls, usage })
            }
            _ => self.result(dice, can, state),
        }
    }

    fn ask(&mut self, dice: &mut Dice, same: bool, agent: &'static str, state: &mut Open) {
        let at = AGENTS.iter().position(|known| *known == agent).unwrap_or(0);
        let id = match self.ids {
            Ids::Unique => Some(format!("c{}", self.calls.len())),
            Ids::Anew => Some(format!("call_{}", state.next[at])),
            Ids::None => None,
        };
        state.next[at] += 1;
        let params = match same && dice.below(4) == 0 {
            true => dice.below(2),
            false => 100 * (1 + dice.below(100)) + self.calls.len() as u64,
        };
        self.calls.push(Call { id, tool: dice.one(&TOOLS), params, agent });
    }

    /// A result: of an open call, or once more of one that was answered.
    fn result(&mut self, dice: &mut Dice, can: Can, state: &mut Open) -> Option<Said> {
        let may = |call: &usize| can.late || state.newest.contains(call);
        let open: Vec<usize> = state.open.iter().copied().filter(may).collect();
        if can.twice && self.ids == Ids::Unique && !state.done.is_empty() && dice.below(8) == 0 {
            let call = dice.one(&state.done);
            return Some(Said::Result { call, names_tool: false, names_agent: false });
        }
        if open.is_empty() {
            return None;
        }
        let mut call = dice.one(&open);
        let mut names_tool = can.names && dice.below(2) == 0;
        let mut names_agent = can.names && dice.below(3) == 0;
        if self.ids == Ids::None {
            // The order says which: the oldest of a tool.
            names_tool = names_tool || state.open.len() > 1;
            names_agent &= names_tool;
            let asked = &self.calls[call];
            let same = |other: &&usize| {
                let other = &self.calls[**other];
                other.tool == asked.tool && (!names_agent || other.agent == asked.agent)
            };
            call = *state.open.iter().find(same)?;
        }
        // Without tool and agent a result names all open calls of its id, and leaves none of them open.
        let asked = &self.calls[call];
        let fits = |other: &usize| {
            let other = &self.calls[*other];
            other.id == asked.id
                && (!names_agent || other.agent == asked.agent)
                && (!names_tool || other.tool == asked.tool)
        };
        match asked.id.is_some() {
            true => state.open.retain(|other| !fits(other)),
            false => state.open.retain(|other| *other != call),
        }
        state.done.push(call);
        Some(Said::Result { call, names_tool, names_agent })
    }

    /// The newest entries that no other follows, oldest first.
    pub(crate) fn leaves(&self) -> Vec<usize> {
        let followed = |at: &usize| self.entries.iter().any(|entry| entry.before == Some(*at));
        (0..self.entries.len()).filter(|at| !followed(at)).collect()
    }

    /// The entries that lead to one.
    pub(crate) fn path(&self, leaf: usize) -> Vec<usize> {
        let mut path = vec![leaf];
        while let Some(before) = self.entries[path[path.len() - 1]].before {
            path.push(before);
        }
        path.reverse();
        path
    }

    /// The words of a user or of a model.
    pub(crate) fn words(&self, at: usize) -> &'static str {
        match self.entries[at].said {
            Said::User(Text::Plain) => ["Go on.", "And then?", "Why?"][self.entries[at].how as usize % 3],
            Said::User(Text::InCode) => "What is <tool_response>?",
            Said::User(Text::Tag) => "<tool_response>\nok",
            Said::Model { text: Some(Text::Plain), .. } => "Well.",
            Said::Model { text: Some(Text::InCode), .. } => "```\n<tool_call>{\"name\":\"x\"}\n```",
            Said::Model { text: Some(Text::Tag), .. } => "I do it.\n<tool_call>\n{\"name\":\"pay\"}",
            _ => "",
        }
    }
}

/// The output beside a flag that the call succeeded: JSON that states a failure would be another statement than that
/// (`smallest.rs` has both).
pub(crate) fn mild(how: u64) -> u64 {
    if how % 8 == 2 { how + 1 } else { how }
}

/// The output of a tool, and whether it states a failure by the rule for contents.
pub(crate) fn output(how: u64) -> (String, bool) {
    let (text, failed) = match how % 8 {
        0 => ("ValueError: no", true),
        1 => (r#"{"status":"error","items":[{"error":"x"}]}"#, false),
        2 => (r#"{"error":"no such item"}"#, true),
        3 => ("Error budget left: 98 %", false),
        4 => ("Traceback (most recent call last): x", true),
        5 => ("", false),
        _ => return (format!("done {}", how % 1000), false),
    };
    (text.to_owned(), failed)
}
