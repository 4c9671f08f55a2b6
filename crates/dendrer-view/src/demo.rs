//! The answer of `demo`: its runs, its files and a tour of questions.

use dendrer_object::{RunName, Value, document};

use crate::answer::{Answer, Line, Page};
use crate::{count, quote, thousands};

/// A run of the demo.
#[derive(Debug, Clone)]
pub struct DemoRunShown {
    /// The run.
    pub name: RunName,
    /// The number of its ticks.
    pub ticks: u64,
    /// A sentence about it.
    pub shows: String,
}

/// A question of the tour.
#[derive(Debug, Clone, Copy)]
pub struct TourStop {
    /// The command.
    pub command: &'static str,
    /// Its exit code.
    pub exit: u8,
    /// A sentence about its answer.
    pub shows: &'static str,
}

/// A directory with a store that was made.
#[derive(Debug, Clone)]
pub struct DemoAnswer {
    /// The directory.
    pub path: String,
    /// The runs.
    pub runs: Vec<DemoRunShown>,
    /// The files beside the store.
    pub files: Vec<&'static str>,
    /// The number of bundles that were damaged.
    pub damaged: usize,
    /// The questions; empty for a generated run, which is for load.
    pub tour: Vec<TourStop>,
    /// Whether text has the tour as well.
    pub shows_tour: bool,
}

document! {
    /// A sample store that was made
    pub object DemoDocument: "demo" (answer: &DemoAnswer) {
        /// The directory
        path: &str = &answer.path,
        /// The runs
        items: Vec<DemoRun> = answer.runs.iter().map(DemoRun::of).collect(),
        /// The files beside the store
        files: &[&str] = &answer.files[..],
        /// The questions of a tour; empty for a generated run
        tour: Vec<DemoStop> = answer.tour.iter().map(DemoStop::of).collect(),
    }

    /// A run of the demo
    object DemoRun(run: &DemoRunShown) {
        /// The name
        name: &RunName = &run.name,
        /// The number of ticks
        ticks: u64 = run.ticks,
        /// A sentence about the run
        shows: &str = &run.shows,
    }

    /// A question of the tour
    object DemoStop(stop: &TourStop) {
        /// The command
        command: &str = stop.command,
        /// The exit code of the command
        exit: u8 = stop.exit,
    }
}

impl Answer for DemoAnswer {
    fn document(&self) -> Value {
        DemoDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let path = quote::escape(&self.path);
        let runs = count(self.runs.len() as u64, "run", "runs");
        let first = format!(
            "made {path} with {runs} and {} damaged bundles; all of it is synthetic, and its key is public",
            self.damaged
        );
        let mut lines: Vec<Line> = vec![first.into()];
        lines.extend(self.runs.iter().map(|run| {
            format!("  {:<20} {:>9} ticks   {}", run.name.as_str(), thousands(run.ticks), run.shows).into()
        }));
        if self.shows_tour && !self.tour.is_empty() {
            lines.extend(["".into(), format!("a tour (first: cd {path}):").into()]);
            for stop in &self.tour {
                let exit = if stop.exit == 0 { String::new() } else { format!("; exit code {}", stop.exit) };
                lines.extend([
                    format!("  {}", stop.command).into(),
                    format!("      {}{exit}", stop.shows).into(),
                ]);
            }
        }
        lines
    }
}
