//! A pack as an answer: what it declares, and the outcome of its tests.
//!
//! Reads the pack of a file or of a run; never a module from anywhere but the text that names it.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_kernel::pack::Pack;
use dendrer_kernel::pack::modules::{self, NamedModule};
use dendrer_object::Digest;

use crate::error::Error;
use crate::pack::{Source, Tested, TextMark, yaml};
use crate::run::trace::Trace;

/// A pack, and its source.
#[derive(Debug)]
pub struct PackShown {
    /// The pack.
    pub pack: Pack,
    /// Whether the recorded text has the digest of the recorded pack; `None` for a file.
    pub text_agrees: Option<bool>,
    /// The text, which names the files of modules; `None` if the run carries none.
    pub text: Option<Arc<str>>,
}

impl PackShown {
    /// Returns the pack of a file.
    pub fn of_source(source: Source) -> PackShown {
        PackShown { pack: source.pack, text_agrees: None, text: Some(source.text) }
    }

    /// Returns the pack in force at the tip of a run; `None` if the run has no pack, or it was erased or withheld.
    pub fn of_run(trace: &Trace) -> Result<Option<PackShown>, Error> {
        let Some(pack) = crate::run::pack::of_run(trace)? else { return Ok(None) };
        let text = crate::run::pack::text_of_run(trace);
        let agrees = text.as_ref().is_some_and(|(_, agrees)| *agrees);
        Ok(Some(PackShown { pack, text_agrees: Some(agrees), text: text.map(|(text, _)| text) }))
    }

    /// Lists the modules of the pack, each with the file name that the text gives it.
    pub fn modules(&self) -> Vec<(NamedModule, Option<String>)> {
        let text = self.text.as_deref().and_then(|text| yaml::Document::read(text.as_bytes()).ok());
        let named = |module: NamedModule| {
            let file = text.as_ref().and_then(|text| module.place.get(&text.value)?.as_str());
            let file = file.map(str::to_owned);
            (module, file)
        };
        modules::named(self.pack.value()).into_iter().map(named).collect()
    }
}

/// The outcome of the tests of a pack. Every test ran to its end.
#[derive(Debug)]
pub struct PackTested {
    /// The name of the pack.
    pub pack: Arc<str>,
    /// Its digest.
    pub digest: Digest,
    /// The names of its rules, in order.
    pub rules: Vec<String>,
    /// The tests, each with the path of the file that has it.
    pub tests: Vec<(String, Tested)>,
}

/// A test that a limit of a module ended, so it neither passed nor failed.
#[derive(Debug)]
pub struct StoppedTest {
    /// The path of the file that has the test.
    pub file: String,
    /// The name of the test.
    pub name: Arc<str>,
    /// The place of the question that was asked of the module.
    pub mark: TextMark,
    /// The limit.
    pub error: Error,
}

impl PackTested {
    /// Gathers the outcome of tests. If a limit ended one of them, no count can be given, and the first is returned.
    pub fn of(pack: &Pack, mut tests: Vec<(String, Tested)>) -> Result<PackTested, Box<StoppedTest>> {
        for (file, test) in &mut tests {
            if let Some((mark, error)) = test.stopped.take() {
                let (file, name) = (file.clone(), Arc::clone(&test.name));
                return Err(Box::new(StoppedTest { file, name, mark, error }));
            }
        }
        let rules = pack.rule_names().map(str::to_owned).collect();
        Ok(PackTested { pack: Arc::clone(&pack.name), digest: pack.digest(), rules, tests })
    }

    /// Returns the number of tests that failed.
    pub fn failed(&self) -> usize {
        self.tests.iter().filter(|(_, test)| !test.failed.is_empty()).count()
    }

    /// Returns the rules that wrote to the state in a test, by number from 1.
    pub fn exercised(&self) -> BTreeSet<usize> {
        self.tests.iter().flat_map(|(_, test)| test.rules.iter().copied()).collect()
    }

    /// Returns the names of the rules that wrote nothing in any test.
    pub fn idle(&self) -> impl Iterator<Item = &str> {
        let exercised = self.exercised();
        let numbered = (1..).zip(&self.rules);
        numbered.filter(move |(number, _)| !exercised.contains(number)).map(|(_, name)| name.as_str())
    }
}
