//! Owners of commitments, their rank, and addresses of items (design, section 14.2).
//!
//! The owner of an item is the author of its transition: each agent and each named user is one of its own. An id belongs to its
//! author: `ID` is the item of the highest rank, `ID@agent:dev` that of one author.
//!
//! Rule: a word has an effect on a commitment that it lowers only if [`CommitmentOwner::may_lower`] permits it; test
//! `no_line_of_an_agent_lowers_the_word_of_another`.

use std::fmt;
use std::sync::Arc;

use dendrer_object::Value;
use dendrer_object::record::Author;

/// The member of a line with the name of the user who speaks.
pub(crate) const USER: &str = "user";

/// The owner of a commitment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommitmentOwner {
    /// An agent; without a name in a run by version 1 of the rules.
    Agent(Option<Arc<str>>),
    /// The program that runs the agents, and the kernel for what it writes on its behalf.
    Runtime,
    /// The parent of a delegated run.
    Parent,
    /// A user, with the name that the line gives.
    User(Option<Arc<str>>),
    /// The institution or the pack.
    Policy,
}

impl CommitmentOwner {
    /// The owner of what an author writes, with the name of the agent or the user.
    pub fn of(author: Author, name: Option<Arc<str>>) -> CommitmentOwner {
        match author {
            Author::Agent => CommitmentOwner::Agent(name),
            Author::User => CommitmentOwner::User(name),
            Author::Institution => CommitmentOwner::Policy,
            Author::Runtime | Author::Kernel => CommitmentOwner::Runtime,
        }
    }

    /// The owner by version 1 of the rules, which knows no names and takes the runtime for the agent.
    pub(super) fn of_first(author: Author) -> CommitmentOwner {
        match author {
            Author::User => CommitmentOwner::User(None),
            Author::Institution => CommitmentOwner::Policy,
            Author::Agent | Author::Runtime | Author::Kernel => CommitmentOwner::Agent(None),
        }
    }

    /// The rank: institution over user over runtime over agent. Commitments of a contract are closed in the parent alone.
    pub fn rank(&self) -> u8 {
        match self {
            CommitmentOwner::Agent(_) => 0,
            CommitmentOwner::Runtime => 1,
            CommitmentOwner::User(_) => 2,
            CommitmentOwner::Policy => 3,
            CommitmentOwner::Parent => 4,
        }
    }

    /// The rank by version 1 of the rules: user and policy are alike.
    pub(super) fn first_rank(&self) -> u8 {
        match self {
            CommitmentOwner::Agent(_) | CommitmentOwner::Runtime => 0,
            CommitmentOwner::Parent => 1,
            CommitmentOwner::Policy | CommitmentOwner::User(_) => 2,
        }
    }

    /// Whether this one is an agent.
    pub(super) fn is_agent(&self) -> bool {
        matches!(self, CommitmentOwner::Agent(_))
    }

    /// Whether a word of this one has an effect on a commitment of an owner that it lowers: its own, or that of a lower rank.
    /// An agent without a name, of a run by version 1, is any agent.
    pub fn may_lower(&self, owner: &CommitmentOwner) -> bool {
        use CommitmentOwner as O;
        match (self, owner) {
            (O::Agent(_), O::Agent(None)) | (O::Agent(None), O::Agent(_)) => true,
            _ => self == owner || self.rank() > owner.rank(),
        }
    }

    /// Reads an owner of an address: `user`, `user:ann`, `runtime`, `agent:dev`, `agent`, `policy`.
    pub(super) fn read(text: &str) -> Option<CommitmentOwner> {
        let name = |name: &str| (!name.is_empty()).then(|| Some(Arc::from(name)));
        Some(match text.split_once(':') {
            Some(("agent", agent)) => CommitmentOwner::Agent(name(agent)?),
            Some(("user", user)) => CommitmentOwner::User(name(user)?),
            Some(_) => return None,
            None => match text {
                "agent" => CommitmentOwner::Agent(None),
                "user" => CommitmentOwner::User(None),
                "runtime" => CommitmentOwner::Runtime,
                "policy" => CommitmentOwner::Policy,
                _ => return None,
            },
        })
    }
}

impl fmt::Display for CommitmentOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitmentOwner::Agent(None) => f.write_str("agent"),
            CommitmentOwner::Agent(Some(name)) => write!(f, "agent:{name}"),
            CommitmentOwner::Runtime => f.write_str("runtime"),
            CommitmentOwner::Parent => f.write_str("parent"),
            CommitmentOwner::User(None) => f.write_str("user"),
            CommitmentOwner::User(Some(name)) => write!(f, "user:{name}"),
            CommitmentOwner::Policy => f.write_str("policy"),
        }
    }
}

/// The name of the agent or the user who wrote a transition, as its content has it.
pub(super) fn name_in(author: Author, content: &Value) -> Option<Arc<str>> {
    let member = match author {
        Author::Agent => "agent_id",
        Author::User => USER,
        Author::Runtime | Author::Institution | Author::Kernel => return None,
    };
    content.get(member).and_then(Value::as_str).map(Arc::from)
}

/// Splits an address `ID@OWNER`; `None` for a plain id. A name of an agent may have an `@` itself, an owner begins at the first
/// that reads as one.
pub(super) fn split_address(text: &str) -> Option<(&str, CommitmentOwner)> {
    text.match_indices('@').find_map(|(at, _)| {
        let owner = CommitmentOwner::read(&text[at + 1..])?;
        (at > 0).then(|| (&text[..at], owner))
    })
}

/// Writes the address of an item of an owner.
pub(super) fn address(id: &str, owner: &CommitmentOwner) -> Arc<str> {
    format!("{id}@{owner}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_is_written() {
        let name = |name: &str| Some(Arc::from(name));
        for (text, id, owner) in [
            ("C1@user", "C1", CommitmentOwner::User(None)),
            ("C1@user:ann", "C1", CommitmentOwner::User(name("ann"))),
            ("C1@runtime", "C1", CommitmentOwner::Runtime),
            ("C1@agent:a@b", "C1", CommitmentOwner::Agent(name("a@b"))),
            ("C1@agent:x:y", "C1", CommitmentOwner::Agent(name("x:y"))),
            ("a@b@policy", "a@b", CommitmentOwner::Policy),
        ] {
            assert_eq!(split_address(text), Some((id, owner.clone())), "{text}");
            assert_eq!(&*address(id, &owner), text);
        }
        for text in ["C1", "C1@child", "C1@user:", "@user", "C1@parent", "C1@User"] {
            assert_eq!(split_address(text), None, "{text}");
        }
    }

    #[test]
    fn a_word_lowers_its_own_and_what_is_below() {
        let (dev, ops) = (CommitmentOwner::of(Author::Agent, Some("dev".into())), |name: &str| {
            CommitmentOwner::of(Author::Agent, Some(name.into()))
        });
        let user = CommitmentOwner::of(Author::User, None);
        let ann = CommitmentOwner::of(Author::User, Some("ann".into()));
        let policy = CommitmentOwner::of(Author::Institution, None);
        let runtime = CommitmentOwner::of(Author::Runtime, None);
        assert!(dev.may_lower(&dev) && !dev.may_lower(&ops("ops")) && !dev.may_lower(&runtime));
        assert!(runtime.may_lower(&dev) && !runtime.may_lower(&user));
        assert!(user.may_lower(&runtime) && !user.may_lower(&ann) && !ann.may_lower(&user));
        assert!(policy.may_lower(&ann) && !user.may_lower(&policy));
        assert!(!policy.may_lower(&CommitmentOwner::Parent));
    }
}
