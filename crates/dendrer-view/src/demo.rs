//! The answer of `demo`: its runs, its files and a tour of questions.

use dendrer_object::{RunName, Value};

use crate::answer::{Answer, Line, Page};
use crate::{count, document, quote, thousands};

/// A run of the demo.
#[derive(Debug, Clone)]
pub struct DemoRunShown {
    /// The run.
    pub name: RunName,
    /// The number of its ticks.
    pub ticks: u64,
    /// A sentence about it.
    pub shows: &'static str,
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
    /// Text before everything else.
    pub receipt: Vec<String>,
}

impl Answer for DemoAnswer {
    fn document(&self) -> Value {
        let run = |run: &DemoRunShown| {
            Value::record([
                ("name", Value::from(run.name.as_str())),
                ("ticks", Value::from(run.ticks)),
                ("shows", Value::from(run.shows)),
            ])
        };
        let stop = |stop: &TourStop| {
            let exit = Value::from(u64::from(stop.exit));
            Value::record([("command", Value::from(stop.command)), ("exit", exit)])
        };
        let members = [
            ("path", Value::from(self.path.as_str())),
            ("items", Value::array(self.runs.iter().map(run))),
            ("files", Value::array(self.files.iter().map(|name| Value::from(*name)))),
            ("tour", Value::array(self.tour.iter().map(stop))),
        ];
        document("demo", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines: Vec<Line> = self.receipt.iter().map(|line| line.as_str().into()).collect();
        let path = quote::escape(&self.path);
        let runs = count(self.runs.len() as u64, "run", "runs");
        lines.push(
            format!(
                "made {path} with {runs} and {} damaged bundles; all of it is synthetic, and its key is public",
                self.damaged
            )
            .into(),
        );
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
