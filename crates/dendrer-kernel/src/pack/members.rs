//! Lists the members of a pack, with the questions on contracts that handle each.
//!
//! Rule: a member is added here alone. A question that does not handle it shows it as it is written, so that no member is
//! passed over; test `each_member_has_one_row`.

/// A member at the top of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Name in the pack.
    pub name: &'static str,
    /// The terms of a contract have a place for it, or it has no effect on what may happen.
    pub in_terms: bool,
    /// A comparison of contracts ranks its changes, or they have no effect on what may happen.
    pub in_comparison: bool,
}

const fn member(name: &'static str, in_terms: bool, in_comparison: bool) -> Member {
    Member { name, in_terms, in_comparison }
}

/// All members, in the order of the documentation.
pub const MEMBERS: [Member; 27] = [
    member("name", true, true),
    member("version", true, true),
    member("words", true, true),
    member("goal", false, false),
    member("policy", false, false),
    member("reducer", true, true),
    member("module", true, true),
    member("clock", false, false),
    member("constants", true, true),
    member("define", true, true),
    member("state", true, true),
    member("types", true, true),
    member("tools", true, true),
    member("concurrency", false, false),
    member("rules", true, true),
    member("predicates", true, true),
    member("contracts", true, true),
    member("violations", true, true),
    member("approvers", false, false),
    member("obligations", true, false),
    member("progress_contracts", false, false),
    member("progress", false, false),
    member("commitments", false, false),
    member("trust", false, false),
    member("merge", true, true),
    member("redact", true, true),
    member("tests", true, true),
];

impl Member {
    /// Returns the row of a member; `None` for a name that no pack may have.
    pub fn find(name: &str) -> Option<&'static Member> {
        MEMBERS.iter().find(|member| member.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_has_one_row() {
        for member in &MEMBERS {
            assert_eq!(
                MEMBERS.iter().filter(|other| other.name == member.name).count(),
                1,
                "{}",
                member.name
            );
            assert_eq!(Member::find(member.name), Some(member));
        }
        let rest: Vec<&str> =
            MEMBERS.iter().filter(|member| !member.in_comparison).map(|member| member.name).collect();
        assert_eq!(
            rest,
            [
                "goal",
                "policy",
                "clock",
                "concurrency",
                "approvers",
                "obligations",
                "progress_contracts",
                "progress",
                "commitments",
                "trust"
            ]
        );
        let others: Vec<&str> =
            MEMBERS.iter().filter(|member| !member.in_terms).map(|member| member.name).collect();
        assert_eq!(
            others,
            [
                "goal",
                "policy",
                "clock",
                "concurrency",
                "approvers",
                "progress_contracts",
                "progress",
                "commitments",
                "trust"
            ]
        );
    }
}
