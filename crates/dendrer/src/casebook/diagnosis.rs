//! The class of a failure: offered from the evidence, and decided by a person (dendrer paper 4.5).

use dendrer_object::words;

words! {
    /// The classes of dendrer paper 4.5.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum DiagnosisClass {
        /// The state held bad data, and the steps made of it were sound. A fork from before it, with better data.
        ContingentState = "contingent-state",
        /// The policy let pass an action that it should not have, or the other way round. A fork from before it, under another
        /// policy.
        ContingentPolicy = "contingent-policy",
        /// The goal, the prompt or the pack is at fault: no state of the run is from before that. A new run; no fork.
        Foundational = "foundational",
    }
}

impl DiagnosisClass {
    /// The use of the run afterwards (dendrer paper 4.5, the table).
    pub fn role(self) -> &'static str {
        match self {
            DiagnosisClass::ContingentState | DiagnosisClass::ContingentPolicy => "fork seed",
            DiagnosisClass::Foundational => "post-mortem artifact",
        }
    }

    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            DiagnosisClass::ContingentState => "contingent (state-level)",
            DiagnosisClass::ContingentPolicy => "contingent (policy-level)",
            DiagnosisClass::Foundational => "foundational (prompt-level)",
        }
    }
}

/// A class that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The class.
    pub class: DiagnosisClass,
    /// The evidence for it.
    pub evidence: String,
    /// The tick of the decision that let pass what broke it, where that speaks for the class.
    pub decision: Option<u64>,
    /// The tick at which the data entered that the onset follows from, by recorded links; that of the onset if it brought it.
    pub entered: Option<u64>,
    /// The part that is missing in the record of the onset: neither data nor policy of the run is known to be at fault.
    pub gap: Option<String>,
    /// The other class that the evidence allows.
    pub or: Option<Box<Offer>>,
}
