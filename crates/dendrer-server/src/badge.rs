//! The verification of a run as a badge: it is begun when the badge is read, and what another process found does not count.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use axum::response::Response;
use dendrer::watch::Watch;
use dendrer_object::{Object, Timestamp, Value};
use dendrer_view::answer::Answer as _;
use dendrer_view::badge::{BadgeAnswer, BadgeState};

use crate::answer::{Refusal, document, exit_of};
use crate::served::Served;
use crate::work::Work;

/// The most runs whose verification is kept; the one that was read longest ago makes room.
const KEPT: usize = 256;

/// The verifications of a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Badges(Arc<Mutex<BTreeMap<String, Badge>>>);

/// The verification of a run.
#[derive(Debug, Default)]
struct Badge {
    /// The last one that ended.
    found: Option<Arc<Checked>>,
    /// The one that is under way, with its count of records.
    running: Option<Watch>,
    /// A number that grows with each reading.
    read: u64,
}

/// A verification that ended.
#[derive(Debug)]
struct Checked {
    document: Value,
    exit: u8,
    log_size: u64,
    at: Timestamp,
}

impl Badges {
    /// Answers with the state of the verification of a run, and begins one unless it has one of the log as it is now. With
    /// `waits`, the answer is that of a verification that ended.
    ///
    /// # Errors
    ///
    /// The problem of `verify`, or 503 if too many questions wait.
    pub(crate) async fn read(
        &self,
        served: &Arc<Served>,
        work: &Work,
        run: &str,
        waits: bool,
    ) -> Result<Response, Refusal> {
        let (place, name) = (Arc::clone(served), run.to_owned());
        let (log_size, tip) = work.run(move |_| size_and_tip(&place, &name)).await?;
        if waits {
            let (place, name) = (Arc::clone(served), run.to_owned());
            let checked = work.run(move |watch| check(&place, &name, log_size, watch)).await?;
            self.ended(run, Ok(checked));
        } else {
            self.begin(served, work, run, log_size);
        }
        let answer = self.answer(run, log_size, tip);
        Ok(document(&answer.document(), answer.exit))
    }

    /// Begins a verification, unless one is under way or the last one is of this log.
    fn begin(&self, served: &Arc<Served>, work: &Work, run: &str, log_size: u64) {
        let watch = Watch::new();
        {
            let mut all = self.lock();
            make_room(&mut all, run);
            let read = all.values().map(|badge| badge.read).max().unwrap_or(0) + 1;
            let badge = all.entry(run.to_owned()).or_default();
            badge.read = read;
            let is_known = badge.found.as_ref().is_some_and(|found| found.log_size == log_size);
            if badge.running.is_some() || is_known {
                return;
            }
            badge.running = Some(watch.clone());
        }
        let (badges, served, work, run) = (self.clone(), Arc::clone(served), work.clone(), run.to_owned());
        tokio::spawn(async move {
            let (place, name) = (served, run.clone());
            let found = work.run_under(watch, move |watch| check(&place, &name, log_size, watch)).await;
            badges.ended(&run, found);
        });
    }

    /// Keeps a verification that ended. One that found no answer is begun again by the next reading.
    fn ended(&self, run: &str, found: Result<Checked, Refusal>) {
        let mut all = self.lock();
        let badge = all.entry(run.to_owned()).or_default();
        badge.running = None;
        if let Ok(found) = found {
            badge.found = Some(Arc::new(found));
        }
    }

    fn answer(&self, run: &str, log_size: u64, tip: u64) -> BadgeAnswer {
        let all = self.lock();
        let badge = all.get(run);
        let found = badge.and_then(|badge| badge.found.clone());
        let running = badge.and_then(|badge| badge.running.as_ref());
        let state = match (running, &found) {
            (Some(_), _) => BadgeState::Checking,
            (None, Some(_)) => BadgeState::Checked,
            (None, None) => BadgeState::NotChecked,
        };
        BadgeAnswer {
            run: run.to_owned(),
            state,
            done: match (running, &found) {
                (Some(running), _) => running.done().min(log_size),
                (None, Some(found)) => found.log_size,
                (None, None) => 0,
            },
            of: log_size,
            verify: found.as_ref().map(|found| found.document.clone()),
            exit: found.as_ref().map_or(0, |found| found.exit),
            tip,
            log_size: found.as_ref().map(|found| found.log_size),
            at: found.as_ref().map(|found| found.at),
            is_stale: found.is_some_and(|found| found.log_size != log_size),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Badge>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the verification that was read longest ago, if there are too many.
fn make_room(all: &mut BTreeMap<String, Badge>, run: &str) {
    if all.len() < KEPT || all.contains_key(run) {
        return;
    }
    let idle = all.iter().filter(|(_, badge)| badge.running.is_none());
    let oldest = idle.min_by_key(|(_, badge)| badge.read).map(|(name, _)| name.clone());
    oldest.and_then(|name| all.remove(&name));
}

/// Returns how many records the log has, and the last tick of the run.
fn size_and_tip(served: &Served, run: &str) -> Result<(u64, u64), Refusal> {
    let store = served.reader()?;
    let (_, tip) = served.run(&store, run)?;
    Ok((store.tree().size, tip))
}

/// Verifies a run.
fn check(served: &Served, run: &str, log_size: u64, watch: Watch) -> Result<Checked, Refusal> {
    let mut question = Object::default();
    question.set("schema", Value::from("dendrer.verify-question/1"));
    question.set("targets", Value::array([Value::from(run)]));
    let answered = served.ask(&Value::Object(question), watch)?;
    let (exit, document) = (exit_of(&answered), answered.document);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let at = Timestamp::from_ms(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    Ok(Checked { document, exit, log_size, at })
}
