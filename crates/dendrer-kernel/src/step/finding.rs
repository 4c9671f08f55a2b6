//! Findings: what an analysis of a run found, kept as a transition of another (dendrer paper 4.1; design, section 2).
//!
//! Written by the kernel, so no agent can author one. It is kept in a run of its own, the casebook, because looking at a
//! run must not change it.

use dendrer_object::delta::Delta;
use dendrer_object::record::Link;
use dendrer_object::{TypeName, Value};

/// The analysis that made a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    /// A bisect: the first tick that violates a predicate.
    Bisect,
    /// How two runs differ.
    Diff,
    /// A causal chain: the transitions that followed from an onset.
    Chain,
}

impl FindingKind {
    const ALL: [FindingKind; 3] = [FindingKind::Bisect, FindingKind::Diff, FindingKind::Chain];

    /// The type of its transition.
    pub fn type_name(self) -> &'static str {
        match self {
            FindingKind::Bisect => "bisect.result",
            FindingKind::Diff => "diff.summary",
            FindingKind::Chain => "causal.chain",
        }
    }

    /// The member that holds what was found.
    pub fn member(self) -> &'static str {
        match self {
            FindingKind::Bisect => "bisect",
            FindingKind::Diff => "diff",
            FindingKind::Chain => "chain",
        }
    }
}

/// Something that was found.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The analysis.
    pub kind: FindingKind,
    /// The content of the record.
    pub content: Value,
    /// The records it is about.
    pub links: Vec<Link>,
    /// The change of the state of the run that keeps the finding.
    pub delta: Delta,
}

/// Whether a type is that of a finding.
pub(super) fn is_finding(type_name: &TypeName) -> bool {
    FindingKind::ALL.iter().any(|kind| kind.type_name() == type_name.as_str())
}
