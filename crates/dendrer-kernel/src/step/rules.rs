//! Versions of the kernel's rules (design, section 3).
//!
//! A run records the version it was made by, and each step of it, also one that is made again, goes by that version: another
//! version of the evaluator, of the limits or of the steps themselves is a row of this table beside the old one, and changes no
//! run that is recorded.
//!
//! Rule: nothing in `step` or `replay` judges or reduces an intent but through [`RuleSet::prepare`]; test
//! `a_run_goes_by_the_rules_of_its_version`.

use dendrer_object::{Intent, Value};

use super::version::{FIRST_VERSION, KERNEL_VERSION};
use super::{Inputs, Prepared, RunState, StartError, StepError};
use crate::reduce::Reducer;

/// Judges and reduces one intent.
type Prepare = fn(&mut RunState, &Intent, Inputs, &dyn Reducer) -> Result<Prepared, StepError>;

/// The rules of one version.
pub(super) struct RuleSet {
    /// The version.
    pub(super) version: u64,
    /// Judges and reduces an intent, and drafts the record that it becomes.
    pub(super) prepare: Prepare,
}

/// The rules by which new runs are made.
pub(super) const CURRENT: &RuleSet = &RuleSet { version: KERNEL_VERSION, prepare: super::prepare };

/// The rules of runs that were recorded before version 2. [`RunState::is_since`] tells them apart.
const FIRST: &RuleSet = &RuleSet { version: FIRST_VERSION, prepare: super::prepare };

/// The rules of version 2. Expressions compared the text of a marker.
const SECOND: &RuleSet = &RuleSet { version: 2, prepare: super::prepare };

/// Every version that this kernel knows.
const KNOWN: &[&RuleSet] = &[
    CURRENT,
    SECOND,
    FIRST,
    #[cfg(test)]
    tests::DOUBLING,
];

/// Returns the rules by which a run was recorded.
pub(super) fn of(content: &Value) -> Result<&'static RuleSet, StartError> {
    let Some(version) = content.get("kernel") else { return Ok(FIRST) };
    let known = KNOWN.iter().copied().find(|rules| *version == Value::from(rules.version));
    known.ok_or_else(|| StartError::Kernel(version.to_string()))
}

#[cfg(test)]
mod tests {
    use dendrer_object::record::Record;
    use dendrer_object::{Code, Delta, Timestamp, delta::Op};

    use super::*;
    use crate::reduce::DeltaReducer;
    use crate::replay::{replay_start, replay_step};
    use crate::step::{Fork, Outcome, Seeds, Start, begin_by, fork, step};

    /// A version that exists in tests alone: it writes every value that is set twice as large.
    pub(super) const DOUBLING: &RuleSet = &RuleSet { version: 1000, prepare: doubled };

    fn doubled(
        head: &mut RunState,
        intent: &Intent,
        inputs: Inputs,
        reducer: &dyn Reducer,
    ) -> Result<Prepared, StepError> {
        super::super::prepare(head, intent, inputs, &Doubling(reducer))
    }

    struct Doubling<'r>(&'r dyn Reducer);

    impl Reducer for Doubling<'_> {
        fn info(&self) -> crate::reduce::ReducerInfo<'_> {
            crate::reduce::ReducerInfo { takes_delta: true, quantizes: false, ..self.0.info() }
        }

        fn reduce(&self, before: &Value, intent: &Intent) -> Result<Delta, crate::reduce::ReduceError> {
            let mut delta = self.0.reduce(before, intent)?;
            for op in &mut delta.0 {
                let number = op.value.as_ref().and_then(Value::as_u64).unwrap_or_default();
                // The values of a replay are results: they are written as they are.
                if number < 100 {
                    op.value = Some(Value::from(number + 100));
                }
            }
            Ok(delta)
        }
    }

    fn inputs(n: u8) -> Inputs {
        Inputs { clock: Timestamp::from_ms(u64::from(n)), seeds: Seeds::of_secret([n; 16]) }
    }

    fn set(value: u64) -> Intent {
        let delta = Delta(vec![Op::set("/x".parse().unwrap(), Value::from(value))]);
        Intent::new("memory.write".parse().unwrap(), "a").with_delta(delta)
    }

    fn made(rules: &'static RuleSet) -> (Vec<Record>, RunState) {
        let start = Start::new("r".parse().unwrap());
        let (record, mut head) =
            begin_by(rules, dendrer_object::StoreId([7; 16]), &start, inputs(1)).unwrap();
        let mut records = vec![record];
        for n in 2..5 {
            let outcome = step(&mut head, &set(u64::from(n)), inputs(n)).unwrap();
            let Outcome::Committed(record) = outcome else { panic!("refused") };
            records.push(record);
        }
        (records, head)
    }

    #[test]
    fn a_run_goes_by_the_rules_of_its_version() {
        let (first, one) = made(CURRENT);
        let (second, two) = made(DOUBLING);
        assert_eq!(one.state().get("x"), Some(&Value::from(4u64)));
        assert_eq!(two.state().get("x"), Some(&Value::from(104u64)));
        for records in [&first, &second] {
            let mut head = replay_start(&records[0], &DeltaReducer).unwrap();
            for record in &records[1..] {
                replay_step(&mut head, record, &DeltaReducer, true).unwrap();
            }
            assert_eq!(head.id(), records[3].id());
        }
        // A record of one version does not pass for one of the other.
        let mut head = replay_start(&second[0], &DeltaReducer).unwrap();
        assert!(replay_step(&mut head, &first[1], &DeltaReducer, false).is_err());
        // A fork has the newest rules, whatever those of its parent are.
        let (_, _, mut forked) = fork(&two, &Fork::new("f".parse().unwrap()), inputs(9)).unwrap();
        step(&mut forked, &set(7), inputs(10)).unwrap();
        assert_eq!(forked.state().get("x"), Some(&Value::from(7u64)));
    }

    #[test]
    fn a_run_of_an_unknown_version_is_named_so() {
        let content = Value::record([("kernel", Value::from(999u64))]);
        let error = of(&content).err().unwrap();
        assert_eq!((error.code(), error.to_string().contains("version 999")), (Code::E0602, true));
    }
}
