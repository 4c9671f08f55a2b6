//! The question of `contract extend` as data.

use dendrer_kernel::pack::extend::EFFECTIVE_FROM;
use dendrer_kernel::step::ExtensionFault;
use dendrer_object::note::{SignedNote, SigningKey};
use dendrer_object::{Code, RunName, Value, question};
use dendrer_store::Shared;

use super::{Extended, extend, last_approver, text_to_sign};
use crate::address::Address;
use crate::error::Error;
use crate::pack::yaml::Document;
use crate::problem::Problem;
use crate::repo::Repo;
use crate::source::{Asked, Desk};

question! {
    /// Asks for the contract of a run to be extended from a tick on, with an approval
    pub struct ExtendQuestion: "contract-extend-question" {
        /// The run, as an address
        pub run: String,
        /// The text of the extension, YAML or JSON
        pub file: String,
        /// The tick from which it holds, in place of that of the text
        pub effective_from: Option<u64>,
        /// The approver, in place of that of the text
        pub approved_by: Option<String>,
        /// The signed note of the approver
        pub signature: Option<String>,
        /// Whether nothing is written
        pub dry_run: bool,
    }
}

/// The names, for messages, of the text and of the key that signs it.
struct NamedFiles {
    file: String,
    key: Option<String>,
}

impl Asked for ExtendQuestion {
    type Reply = Extended;

    fn ask(&self, desk: &mut dyn Desk) -> Result<Extended, Problem> {
        let address = Address::parse(&self.run)?;
        if address.bundle.is_some() || address.pos.is_some() {
            let what = "a contract is extended at the end of a run of the store";
            return Err(Problem::new(Code::E0106, what).note("nothing was changed"));
        }
        let value = self.value(&desk.name_of("file"))?;
        let repo = if self.dry_run { desk.store()? } else { desk.writable()? };
        let store = repo.writer()?;
        let run = address.run_in(store, &[])?;
        let approver = desk.approver()?;
        let named = NamedFiles {
            file: desk.name_of("file"),
            key: approver.as_ref().map(|_| desk.name_of("approver_key")),
        };
        let note = match approver {
            None => self.signature.clone(),
            Some(key) => Some(self.sign(&repo, &run, &value, &key, &named)?),
        };
        let extended = extend(store, &run, &value, note.as_deref(), repo.environment(), self.dry_run);
        let extended = extended.map_err(|error| self.refused(&named, store, &run, error))?;
        if !self.dry_run {
            desk.close(repo)?;
        }
        Ok(extended)
    }
}

impl ExtendQuestion {
    /// Reads the text, and replaces the members that the question names.
    fn value(&self, file: &str) -> Result<Value, Problem> {
        let document = Document::read(self.file.as_bytes()).map_err(|problems| {
            let first = problems.into_iter().next();
            let (line, why) =
                first.map_or((1, String::new()), |problem| (problem.mark.line, problem.message));
            unreadable(file, &self.run, line, &why)
        })?;
        let Value::Object(mut members) = document.value else { return Ok(document.value) };
        if let Some(tick) = self.effective_from {
            members.set(EFFECTIVE_FROM, Value::from(tick));
        }
        if let Some(by) = &self.approved_by {
            members.set("approved_by", Value::from(by.as_str()));
        }
        Ok(Value::Object(members))
    }

    /// Signs the text of an extension with the key of the approver, once the signature alone is missing.
    fn sign(
        &self,
        repo: &Repo,
        run: &RunName,
        value: &Value,
        key: &SigningKey,
        named: &NamedFiles,
    ) -> Result<String, Problem> {
        let store = repo.writer()?;
        let text = text_to_sign(store, run, value, repo.environment())
            .map_err(|error| self.refused(named, store, run, error))?;
        let Some(text) = text else {
            let what =
                "the contract names no approver with a key, so nothing would show whose signature it is";
            return Err(Problem::new(Code::E0423, what)
                .note("leave out --approver-key; the approval is recorded as it is said")
                .note("nothing was changed"));
        };
        let note = SignedNote::sign(&text, key).map_err(|error| {
            let what = format!("the key in {} cannot be used", named.key.as_deref().unwrap_or_default());
            Problem::new(Code::E0804, what).at("cause", error.to_string())
        })?;
        Ok(note.to_string())
    }

    /// Adds to an error the command that would extend the contract.
    fn refused(&self, named: &NamedFiles, store: &Shared, run: &RunName, error: Error) -> Problem {
        let Error::Extension(not) = &error else { return error.into() };
        let (mut from, mut by) = (self.effective_from, self.approved_by.clone());
        let mut key = named.key.clone();
        let mut is_content = false;
        for fault in &not.faults {
            match fault {
                ExtensionFault::Past { tick, .. } => from = Some(tick + 1),
                ExtensionFault::NoApprover => by = last_approver(store, run),
                ExtensionFault::UnknownApprover { known, .. } => {
                    by = known.split(", ").next().map(str::to_owned);
                    key = key.or_else(|| Some("KEY".to_owned()));
                }
                ExtensionFault::Signature { .. } => key = key.or_else(|| Some("KEY".to_owned())),
                // The text itself is to be changed.
                _ => is_content = true,
            }
        }
        let not_approved = not.faults.contains(&ExtensionFault::NoApprover);
        let problem = Problem::from(error);
        if is_content {
            return problem.help(&["dendrer", "contract", "show", &self.run]);
        }
        if not_approved && by.is_none() {
            // A name that is made up here would be on record once the line is pasted.
            return problem.note("say who approves it with --approved-by, or as approved_by in the file");
        }
        let from = from.map(|from| from.to_string());
        let mut argv = vec!["dendrer", "contract", "extend", &self.run, "--file", &named.file];
        argv.extend(from.iter().flat_map(|from| ["--effective-from", "tick", from]));
        argv.extend(by.iter().flat_map(|by| ["--approved-by", by]));
        argv.extend(key.iter().flat_map(|key| ["--approver-key", key]));
        problem.help(&argv)
    }
}

/// The problem of a text that is no extension; `file` is its name for messages.
pub fn unreadable(file: &str, run: &str, line: usize, why: &str) -> Problem {
    Problem::new(Code::E0420, format!("{file} cannot be read: {why}"))
        .at("line", line.to_string())
        .note("nothing was changed; what an extension says is in docs/packs.md")
        .help(&["dendrer", "contract", "show", run])
}
