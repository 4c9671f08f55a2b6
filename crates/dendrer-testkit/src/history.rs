//! Judges what many writers and readers were told against the log that they left: a small checker of histories.
//!
//! Each writer notes what it asked for, when, and what it was told; each reader how long the log was that it saw. From
//! that and the log itself [`check`] finds every result that no sequence of the calls could explain: an acknowledged
//! commit that is missing, a tick given twice, a call that ended before another began and comes after it in the log,
//! a loser without an error, half a group.
//!
//! Never looks into a store. Rule: all times are of one clock, which every writer reads.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use dendrer_object::record::{Entry, Kind};
use dendrer_object::{Digest, RunName};

/// A call that tried to commit a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// When it was made and when it came back, in nanoseconds.
    pub time: Range<u64>,
    /// The ids of the records of the group.
    pub group: Vec<Digest>,
    /// The reply to the caller.
    pub told: Told,
}

/// The reply to a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// It is durable, at these positions of the log.
    Committed(Range<u64>),
    /// It came too late: the newest record of the run is this one.
    Stale(Digest),
    /// Nothing, as of a process that was killed.
    Nothing,
}

/// A reader that took in what others committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// When it began to and when it was done, in nanoseconds.
    pub time: Range<u64>,
    /// How many records it saw then.
    pub size: u64,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.time.start, self.time.end)?;
        match &self.told {
            Told::Committed(at) => write!(f, " committed {} {}", at.start, at.end)?,
            Told::Stale(found) => write!(f, " stale {found} -")?,
            Told::Nothing => write!(f, " nothing - -")?,
        }
        self.group.iter().try_for_each(|id| write!(f, " {id}"))
    }
}

impl FromStr for Attempt {
    type Err = String;

    /// Reads a line that another process wrote with `Display`.
    fn from_str(line: &str) -> Result<Attempt, String> {
        let parts: Vec<&str> = line.split(' ').collect();
        let [start, end, what, first, second, group @ ..] = &parts[..] else {
            return Err(format!("no attempt: {line}"));
        };
        let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{error}: {line}"));
        let digest = |text: &str| text.parse::<Digest>().map_err(|error| format!("{error}: {line}"));
        let told = match *what {
            "committed" => Told::Committed(number(first)?..number(second)?),
            "stale" => Told::Stale(digest(first)?),
            "nothing" => Told::Nothing,
            other => return Err(format!("{other} is no outcome: {line}")),
        };
        let group = group.iter().map(|id| digest(id)).collect::<Result<_, _>>()?;
        Ok(Attempt { time: number(start)?..number(end)?, group, told })
    }
}

/// Returns the contradictions between a history and a log, in words. Each reader's looks are in its order. `log` is
/// the whole log; its first `before` records precede the first attempt.
pub fn check(log: &[Entry], before: u64, attempts: &[Attempt], readers: &[Vec<Look>]) -> Vec<String> {
    let mut found = Vec::new();
    let places = places(log, &mut found);
    ticks(log, &mut found);
    let mut owner: Vec<Option<usize>> = vec![None; log.len()];
    for (number, attempt) in attempts.iter().enumerate() {
        placed(number, attempt, &places, &mut owner, &mut found);
    }
    for (position, owner) in owner.iter().enumerate().skip(before as usize) {
        if owner.is_none() {
            found.push(format!("position {position}: nobody asked for {}", log[position].hash));
        }
    }
    for attempt in attempts {
        if let Told::Stale(head) = &attempt.told {
            loser(attempt, head, &places, &owner, attempts, &mut found);
        }
    }
    order(attempts, &mut found);
    for looks in readers {
        looked(looks, attempts, before, log.len() as u64, &mut found);
    }
    found
}

fn places(log: &[Entry], found: &mut Vec<String>) -> HashMap<Digest, u64> {
    let mut places = HashMap::new();
    for (position, entry) in (0..).zip(log) {
        if let Some(first) = places.insert(entry.hash, position) {
            found.push(format!("position {position}: {} stands at {first} too", entry.hash));
        }
    }
    places
}

/// The ticks of each run are 0, 1, 2 ... in the order of the log.
fn ticks(log: &[Entry], found: &mut Vec<String>) {
    let mut next: HashMap<&RunName, u64> = HashMap::new();
    for (position, entry) in log.iter().enumerate() {
        let (Some(run), Some(tick)) = (&entry.run, entry.tick) else { continue };
        let expected = next.entry(run).or_default();
        if tick != *expected || (tick == 0) != (entry.kind == Kind::Run) {
            found.push(format!("position {position}: run {run} has tick {tick} where {expected} is due"));
        }
        *expected = tick + 1;
    }
}

/// Checks that a committed group is where its caller was told, whole; that a lost group is missing; and that a group
/// without an answer is there as a whole or not at all.
fn placed(
    number: usize,
    attempt: &Attempt,
    places: &HashMap<Digest, u64>,
    owner: &mut [Option<usize>],
    found: &mut Vec<String>,
) {
    let at: Vec<Option<u64>> = attempt.group.iter().map(|id| places.get(id).copied()).collect();
    let begin = match &attempt.told {
        Told::Committed(told) => {
            if told.end - told.start != attempt.group.len() as u64 {
                found.push(format!("attempt {number}: {} records at {told:?}", attempt.group.len()));
            }
            Some(told.start)
        }
        Told::Stale(_) => None,
        Told::Nothing => at.first().copied().flatten(),
    };
    for (index, (id, at)) in attempt.group.iter().zip(at).enumerate() {
        let expected = begin.map(|begin| begin + index as u64);
        if at != expected {
            let word = |at: Option<u64>| at.map_or("nowhere".to_owned(), |at| format!("at {at}"));
            found.push(format!(
                "attempt {number}, told {:?}: {id} belongs {} and stands {}",
                attempt.told,
                word(expected),
                word(at)
            ));
        }
        if let Some(owner) = at.and_then(|at| owner.get_mut(at as usize))
            && let Some(other) = owner.replace(number)
        {
            found.push(format!("{id} is of attempts {other} and {number}"));
        }
    }
}

/// Checks that the record named to a loser is there, and that a writer asked for it before the answer came.
fn loser(
    attempt: &Attempt,
    head: &Digest,
    places: &HashMap<Digest, u64>,
    owner: &[Option<usize>],
    attempts: &[Attempt],
    found: &mut Vec<String>,
) {
    let Some(place) = places.get(head) else {
        found.push(format!("a loser was told of {head}, which is not in the log"));
        return;
    };
    let winner = owner[*place as usize].map(|number| &attempts[number]);
    if winner.is_some_and(|winner| winner.time.start > attempt.time.end) {
        found.push(format!("a loser was told of {head} before anybody asked for it"));
    }
}

/// Checks that a call that ended before another began precedes it in the log.
fn order(attempts: &[Attempt], found: &mut Vec<String>) {
    let committed = |attempt: &Attempt| match &attempt.told {
        Told::Committed(at) => Some((attempt.time.clone(), at.clone())),
        _ => None,
    };
    let mut begins: Vec<_> = attempts.iter().filter_map(committed).collect();
    let mut ends = begins.clone();
    begins.sort_by_key(|(time, _)| time.start);
    ends.sort_by_key(|(time, _)| time.end);
    let mut ended = ends.into_iter().peekable();
    let mut highest = 0;
    for (time, at) in begins {
        while let Some((_, before)) = ended.next_if(|(before, _)| before.end < time.start) {
            highest = highest.max(before.end);
        }
        if at.start < highest {
            found.push(format!("positions {at:?} were asked for when {highest} records were durable"));
        }
    }
}

/// Checks that a reader sees the records that were durable when it looked, no record that was not asked for yet, no
/// half of a group, and never fewer records than before.
fn looked(looks: &[Look], attempts: &[Attempt], before: u64, size: u64, found: &mut Vec<String>) {
    let mut ends: Vec<(u64, u64)> = Vec::new();
    let mut begins: Vec<(u64, u64)> = Vec::new();
    let mut inside = vec![false; size as usize + 1];
    for attempt in attempts {
        let Told::Committed(at) = &attempt.told else { continue };
        ends.push((attempt.time.end, at.end));
        begins.push((attempt.time.start, at.end));
        inside[at.start as usize + 1..at.end as usize].fill(true);
    }
    let knows_all = attempts.iter().all(|attempt| attempt.told != Told::Nothing);
    for table in [&mut ends, &mut begins] {
        table.sort_unstable();
        let mut highest = before;
        for (_, end) in table {
            highest = highest.max(*end);
            *end = highest;
        }
    }
    let until = |table: &[(u64, u64)], time: u64| {
        let count = table.partition_point(|(at, _)| *at < time);
        count.checked_sub(1).map_or(before, |last| table[last].1)
    };
    let mut last = 0;
    for look in looks {
        let (least, most) = (until(&ends, look.time.start), until(&begins, look.time.end + 1));
        if look.size < least.max(last) || (knows_all && look.size > most) || look.size > size {
            found.push(format!(
                "a reader saw {} records where {} to {most} were there",
                look.size,
                least.max(last)
            ));
        } else if inside[look.size as usize] {
            found.push(format!("a reader saw {} records, which is half a group", look.size));
        }
        last = look.size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> Digest {
        Digest::of(&number.to_le_bytes())
    }

    fn log() -> Vec<Entry> {
        let entry = |number: u64, run: &str, tick: u64| Entry {
            hash: id(number),
            kind: if tick == 0 { Kind::Run } else { Kind::Transition },
            run: Some(run.parse().expect("a name")),
            tick: Some(tick),
        };
        vec![entry(0, "a", 0), entry(1, "b", 0), entry(2, "a", 1), entry(3, "a", 2), entry(4, "b", 1)]
    }

    fn attempts() -> Vec<Attempt> {
        let attempt = |time, group: &[u64], told| Attempt {
            time,
            group: group.iter().map(|number| id(*number)).collect(),
            told,
        };
        vec![
            attempt(10..20, &[1], Told::Committed(1..2)),
            attempt(15..30, &[2, 3], Told::Committed(2..4)),
            attempt(12..25, &[7], Told::Stale(id(3))),
            attempt(31..40, &[4], Told::Committed(4..5)),
        ]
    }

    fn looks() -> Vec<Look> {
        vec![
            Look { time: 1..5, size: 1 },
            Look { time: 16..32, size: 4 },
            Look { time: 33..34, size: 4 },
            Look { time: 41..42, size: 5 },
        ]
    }

    /// Checks a history with one thing changed in it.
    fn changed(change: impl FnOnce(&mut Vec<Entry>, &mut Vec<Attempt>, &mut Vec<Look>)) -> Vec<String> {
        let (mut log, mut attempts, mut looks) = (log(), attempts(), looks());
        change(&mut log, &mut attempts, &mut looks);
        check(&log, 1, &attempts, &[looks])
    }

    #[test]
    fn a_history_that_can_have_happened_is_none_to_complain_of() {
        assert_eq!(changed(|_, _, _| {}), Vec::<String>::new());
        // Of a process that was killed, its last group may be there or not.
        for gone in [false, true] {
            let found = changed(|log, attempts, looks| {
                attempts[3].told = Told::Nothing;
                if gone {
                    log.pop();
                    looks.pop();
                }
            });
            assert_eq!(found, Vec::<String>::new());
        }
    }

    #[test]
    fn whatever_cannot_have_happened_is_found() {
        let says = |found: Vec<String>, what: &str| {
            assert!(found.iter().any(|line| line.contains(what)), "{what}: {found:?}");
        };
        // An acknowledged commit is lost, or another record is in its place.
        says(changed(|log, _, looks| drop((log.pop(), looks.pop()))), "belongs at 4 and stands nowhere");
        says(changed(|log, _, _| log[4].hash = id(9)), "nobody asked for");
        // A tick is given twice, or left out; a run begins in the middle.
        says(changed(|log, _, _| log[3].tick = Some(1)), "has tick 1 where 2 is due");
        says(changed(|log, _, _| log[3].tick = Some(3)), "has tick 3 where 2 is due");
        says(changed(|log, _, _| log[4].kind = Kind::Run), "has tick 1 where 1 is due");
        // The same record twice.
        says(changed(|log, _, _| log[3].hash = id(2)), "stands at 2 too");
        // A loser is recorded all the same, or was told of a record that is missing or came later.
        says(changed(|_, attempts, _| attempts[2].group = vec![id(4)]), "belongs nowhere and stands at 4");
        says(changed(|_, attempts, _| attempts[2].told = Told::Stale(id(8))), "not in the log");
        says(changed(|_, attempts, _| attempts[2].told = Told::Stale(id(4))), "before anybody asked");
        // Two were told the same place.
        says(changed(|_, attempts, _| attempts.push(attempts[3].clone())), "is of attempts 3 and 4");
        // A later record precedes one that was durable already.
        says(
            changed(|_, attempts, _| attempts[0].time = 50..60),
            "were asked for when 5 records were durable",
        );
        // A reader misses a durable record, sees one that was not asked for, half a group, or fewer records than
        // before.
        says(changed(|_, _, looks| looks[3].size = 4), "saw 4 records where 5 to 5");
        says(changed(|_, _, looks| looks[0].size = 2), "saw 2 records where 1 to 1");
        says(changed(|_, _, looks| looks[1].size = 3), "half a group");
        says(changed(|_, _, looks| looks.push(Look { time: 43..44, size: 4 })), "saw 4 records where 5");
    }

    #[test]
    fn an_attempt_reads_back_from_its_line() {
        for attempt in attempts() {
            assert_eq!(attempt.to_string().parse(), Ok(attempt));
        }
        for bad in ["", "1 2 committed 3", "1 2 lost - -", "x 2 nothing - -", "1 2 nothing - - sha256:00"] {
            assert!(bad.parse::<Attempt>().is_err(), "{bad}");
        }
    }
}
