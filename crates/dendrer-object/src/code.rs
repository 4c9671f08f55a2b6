//! Codes of errors and warnings: the one list that every crate takes them from.
//!
//! A code keeps its meaning for ever, since scripts compare it. Meaning, remedy and exit number of each are in
//! `dendrer_view::codes`. Rule: no other file spells a code as text; `xtask tidy codes.literals` counts them.

use std::fmt;
use std::str::FromStr;

macro_rules! codes {
    ($($code:ident $kind:literal,)*) => {
        /// A code that is printed with an error (`E`) or a warning (`W`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $(#[doc = concat!("`", $kind, "`.")] $code,)*
        }

        impl Code {
            /// All codes, in order.
            pub const ALL: &[Code] = &[$(Code::$code),*];

            /// The code as it is printed, such as `E0101`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$code => stringify!($code),)*
                }
            }

            /// A word for programs, such as `no_run`.
            pub fn kind(self) -> &'static str {
                match self {
                    $(Code::$code => $kind,)*
                }
            }
        }
    };
}

codes! {
    E0101 "no_run",
    E0102 "no_tick",
    E0103 "no_store",
    E0104 "no_path",
    E0105 "address",
    E0106 "usage",
    E0107 "ambiguous",
    E0108 "file",
    E0109 "no_code",
    E0110 "store_exists",
    E0111 "run_exists",
    E0112 "key_exists",
    E0113 "other_backup",
    E0114 "newer_store",
    E0115 "not_empty",
    E0116 "nothing_enforces",
    E0117 "no_answer",
    E0118 "other_engine",
    E0119 "nothing_of_its_own",
    E0120 "no_label",
    E0121 "no_name",
    E0122 "dropped",
    E0123 "request",
    E0201 "not_json",
    E0202 "duplicate_name",
    E0203 "unknown_trace",
    E0204 "too_deep",
    E0205 "too_large",
    E0206 "not_text",
    E0207 "number_range",
    E0208 "tag",
    E0209 "not_an_intent",
    E0210 "name",
    E0211 "too_many_fields",
    E0212 "which_run",
    E0213 "gap",
    E0214 "imported_already",
    E0215 "map",
    E0216 "source_changed",
    E0301 "content",
    E0302 "chain",
    E0303 "root",
    E0304 "tip",
    E0305 "damage",
    E0306 "malformed",
    E0307 "loss",
    E0308 "signature",
    E0309 "index",
    E0310 "prefix_missing",
    E0311 "erased",
    E0312 "not_complete",
    E0313 "not_witnessed",
    E0314 "not_compared",
    E0315 "no_bundle",
    E0316 "map_false",
    E0317 "erased_value",
    E0401 "forged_type",
    E0402 "unknown_type",
    E0403 "runtime_type",
    E0404 "change",
    E0405 "kernel_path",
    E0406 "ended",
    E0407 "stale",
    E0408 "author",
    E0409 "imported",
    E0411 "required_state",
    E0412 "context_violation",
    E0413 "hash_contract_mismatch",
    E0414 "contracts_differ",
    E0415 "no_contract",
    E0416 "no_context",
    E0418 "not_importable",
    E0419 "import_violates",
    E0420 "extension",
    E0421 "extension_in_the_past",
    E0422 "no_approver",
    E0423 "approval",
    E0424 "casebook",
    E0425 "ungoverned",
    E0426 "undeclared_tool",
    E0427 "member",
    E0428 "unjudged",
    E0429 "would_violate",
    E0430 "not_a_writer",
    E0431 "no_such_contract",
    E0432 "ambiguous_contract",
    E0433 "key_used",
    E0434 "begins_violated",
    E0435 "denied_before",
    E0436 "finer_than_declared",
    E0437 "tool_beside_calls",
    E0438 "look_alike",
    E0441 "not_seedable",
    E0442 "terms_differ",
    E0443 "open_under_rules",
    E0444 "not_merged",
    E0445 "no_conflict",
    E0446 "settled",
    E0447 "open_source",
    E0451 "commitment_violated",
    E0452 "outside_scope",
    E0453 "stale_support",
    E0454 "derived_member",
    E0455 "commitment_rank",
    E0456 "delegate_rejected",
    E0457 "over_budget",
    E0461 "not_a_chain_id",
    E0462 "row_hash",
    E0463 "extension_step",
    E0464 "no_steps",
    E0465 "vault_locked",
    E0466 "erased_already",
    E0467 "lineage_open",
    E0468 "part_of_chain",
    E0469 "tools_inside",
    E0501 "expression",
    E0502 "expression_type",
    E0503 "not_monotone",
    E0504 "recovers",
    E0505 "unknown_name",
    E0506 "not_supported",
    E0507 "division",
    E0508 "expression_limits",
    E0509 "uncertain",
    E0510 "onset_differs",
    E0511 "no_predicate",
    E0512 "not_a_predicate",
    E0513 "predicate_name",
    E0514 "predicate_version",
    E0515 "no_metric",
    E0520 "module",
    E0521 "module_stopped",
    E0540 "too_many_earlier",
    E0541 "not_one_state",
    E0601 "unsupported",
    E0602 "other_rules",
    E0603 "too_far_apart",
    E0604 "stage",
    E0701 "divergence",
    E0702 "answer_missing",
    E0703 "cannot_replay",
    E0704 "not_a_read",
    E0801 "io",
    E0802 "locked",
    E0803 "newer_format",
    E0804 "no_key",
    E0805 "read_only",
    E0806 "is_backup",
    E0807 "no_home",
    E0808 "command",
    E0809 "damaged_index",
    E0810 "cancelled",
    E0811 "draft_format",
    E0812 "key_changed",
    E0813 "not_revocable",
    E0814 "untagged",
    E0815 "not_set_aside",
    E0816 "store_address",
    E0817 "server_refused",
    E0818 "not_built",
    E0819 "no_connection",
    E0820 "not_on_a_server",
    E0821 "export_unfinished",
    E0822 "not_exported",
    E0823 "other_epoch",
    E0824 "export_damaged",
    E0900 "pack",
    E0901 "pack_text",
    E0902 "pack_member",
    E0903 "pack_name",
    E0904 "pack_limit",
    E0905 "engine",
    E0906 "init",
    E0907 "pillar",
    E0908 "pack_recorded",
    E0909 "no_pack",
    E0920 "graph_syntax",
    E0921 "graph_contract",
    E0922 "graph_rec",
    E0923 "graph_index",
    E0924 "graph_argument",
    E0925 "graph_order",
    E0926 "graph_function",
    E0927 "graph_impure",
    E0928 "graph_class",
    E0929 "graph_loop",
    E0930 "graph_clock",
    E0931 "graph_environment",
    E0932 "graph_chance",
    E0933 "graph_file",
    E0934 "graph_input",
    E0935 "graph_node",
    E0936 "graph_edge",
    E0937 "graph_diverged",
    E0938 "no_graph",
    E0939 "graph_run_exists",
    E0940 "graph_edge_unknown",
    E0941 "graph_run_of_others",
    E0942 "graph_of_another_run",
    E0943 "graph_run_under_way",
    E0944 "graph_run_hypothetical",
    E0945 "host_function_not_pure",
    E0946 "host_function_at_stage",
    W0441 "precision",
    W0442 "guard_band",
    W0443 "not_required",
    W0444 "not_monotone",
    W0445 "unreachable",
    W0446 "unmeetable",
    W0447 "unknown_word",
    W0448 "open_field",
    W0449 "never_missing",
    W0450 "may_be_missing",
    W0451 "moment_as_text",
    W0468 "no_call",
}

impl Code {
    /// Whether it is that of a warning.
    pub fn is_warning(self) -> bool {
        self.as_str().starts_with('W')
    }

    /// Whether it says that the record is not what was committed, or that part of it is missing.
    pub fn is_of_record(self) -> bool {
        self.as_str().starts_with("E03")
    }
}

/// A text that is no code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownCode;

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a code of dendrer")
    }
}

impl std::error::Error for UnknownCode {}

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Code, UnknownCode> {
        Code::ALL.iter().copied().find(|code| code.as_str() == text).ok_or(UnknownCode)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl PartialEq<str> for Code {
    fn eq(&self, text: &str) -> bool {
        self.as_str() == text
    }
}

impl PartialEq<&str> for Code {
    fn eq(&self, text: &&str) -> bool {
        self.as_str() == *text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_in_order_and_are_read_back() {
        assert!(Code::ALL.windows(2).all(|pair| pair[0].as_str() < pair[1].as_str()));
        for code in Code::ALL {
            assert_eq!(code.as_str().parse(), Ok(*code));
        }
        assert_eq!("E0000".parse::<Code>(), Err(UnknownCode));
        assert_eq!(Code::E0101, "E0101");
    }
}
