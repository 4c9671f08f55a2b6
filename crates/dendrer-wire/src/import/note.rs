//! Oddities of a source that an import notes. A note is kept in the `anomalies` of the transition it concerns.

use std::fmt;

use dendrer_object::{Code, Value};

/// The kind of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoteKind {
    /// An item that is not an object.
    MessageUnreadable,
    /// A message that does not say who speaks.
    MessageWithoutRole,
    /// Messages outside the list, which are not read.
    MessageOutside,
    /// A value over 64 MiB.
    ValueTooLarge,
    /// A value nested beyond 128 levels.
    ValueTooDeep,
    /// The source ends inside this item.
    SourceCut,
    /// A call that is not an object, or that is in a place where no call is read.
    CallUnreadable,
    /// A call that is never answered.
    CallWithoutResult,
    /// A result that answers no open call.
    ResultWithoutCall,
    /// A result that may answer several open calls.
    ResultAmbiguous,
    /// A call that a result may answer which may answer another one as well.
    CallContested,
    /// A result whose status cannot be read.
    StatusUnknown,
    /// A result that names another tool than the call of its id.
    ResultNameDiffers,
    /// An id of a call that is not text.
    CallIdNotText,
    /// Arguments that are not JSON; they stay text.
    ArgumentsNotJson,
    /// A call with the id of one that is still open.
    CallIdRepeated,
    /// Content in parts, among them calls or results that are kept and not read as such.
    PartsNotRead,
    /// An unknown way to merge agents: units in conflict are kept.
    MergeNotRead,
    /// A part of an item that is in no table of its format, and that may state what is counted.
    NotRead,
    /// An item whose parent is not in the source: the item before it is taken.
    ParentMissing,
    /// An item whose parents make a circle: the item before it is taken.
    ParentCycle,
    /// More branches than are read: the oldest are left out.
    BranchesLeftOut,
    /// An item whose id and content are on record already.
    Repeated,
    /// Items whose order only their times give.
    OrderedByTime,
    /// An item without the time by which its source is ordered: it comes after the one before it.
    NoOrder,
    /// Members of an event that this store did not make: they are kept as text.
    KeptFromSource,
    /// Events that do not have the whole state.
    StateIncomplete,
    /// A row of a chain that is cut, or no step.
    RowUnreadable,
    /// A row whose action is unknown, also to the extension.
    ActionUnknown,
    /// A row that states another hash than it has, or another row before it.
    RowHashWrong,
    /// A row with the id of a step before it.
    StepRepeated,
    /// A row or header of another chain than the first of the file.
    RowOfOtherChain,
    /// The first row, which follows a row that is not in the file.
    RowsBeforeMissing,
}

impl NoteKind {
    /// Returns the word for it in `anomalies`.
    pub fn as_str(self) -> &'static str {
        match self {
            NoteKind::MessageUnreadable => "message_unreadable",
            NoteKind::MessageWithoutRole => "message_without_role",
            NoteKind::MessageOutside => "message_outside",
            NoteKind::ValueTooLarge => "value_too_large",
            NoteKind::ValueTooDeep => "value_too_deep",
            NoteKind::SourceCut => "source_cut",
            NoteKind::CallUnreadable => "call_unreadable",
            NoteKind::CallWithoutResult => "call_without_result",
            NoteKind::ResultWithoutCall => "result_without_call",
            NoteKind::ResultAmbiguous => "result_ambiguous",
            NoteKind::CallContested => "call_contested",
            NoteKind::StatusUnknown => "status_unknown",
            NoteKind::ResultNameDiffers => "result_name_differs",
            NoteKind::CallIdNotText => "call_id_not_text",
            NoteKind::ArgumentsNotJson => "arguments_not_json",
            NoteKind::CallIdRepeated => "call_id_repeated",
            NoteKind::PartsNotRead => "parts_not_read",
            NoteKind::MergeNotRead => "merge_not_read",
            NoteKind::NotRead => "not_read",
            NoteKind::ParentMissing => "parent_missing",
            NoteKind::ParentCycle => "parent_cycle",
            NoteKind::BranchesLeftOut => "branches_left_out",
            NoteKind::Repeated => "repeated",
            NoteKind::OrderedByTime => "ordered_by_time",
            NoteKind::NoOrder => "no_order",
            NoteKind::KeptFromSource => "kept_from_source",
            NoteKind::StateIncomplete => "state_incomplete",
            NoteKind::RowUnreadable => "row_unreadable",
            NoteKind::ActionUnknown => "action_unknown",
            NoteKind::RowHashWrong => "row_hash_wrong",
            NoteKind::StepRepeated => "step_repeated",
            NoteKind::RowOfOtherChain => "row_of_other_chain",
            NoteKind::RowsBeforeMissing => "rows_before_missing",
        }
    }

    /// Whether something is missing, so that `--on-gap stop` stops.
    pub fn is_gap(self) -> bool {
        !matches!(
            self,
            NoteKind::KeptFromSource
                | NoteKind::Repeated
                | NoteKind::OrderedByTime
                | NoteKind::StateIncomplete
                | NoteKind::ArgumentsNotJson
                | NoteKind::CallIdNotText
                | NoteKind::CallIdRepeated
                | NoteKind::CallContested
                | NoteKind::ResultNameDiffers
                | NoteKind::MergeNotRead
        )
    }

    /// The code of an import that was stopped by it.
    pub fn code(self) -> Code {
        match self {
            NoteKind::ValueTooLarge => Code::E0205,
            NoteKind::ValueTooDeep => Code::E0204,
            NoteKind::SourceCut => Code::E0201,
            NoteKind::RowHashWrong => Code::E0462,
            NoteKind::RowsBeforeMissing => Code::E0468,
            _ => Code::E0213,
        }
    }
}

/// The place of an item. Its JSON pointer is written only where something is said of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    /// The pointer to the list.
    pub(crate) list: &'a str,
    /// Which of its items, from 0; `None` if `list` is the place itself.
    pub(crate) number: Option<u64>,
    /// The path in the item to the message that it holds; empty if it is one.
    pub(crate) within: &'static str,
    /// The member of the message and the number in it, for a part of an item.
    pub(crate) part: Option<(&'static str, u64)>,
}

impl<'a> At<'a> {
    /// The place of an item of a list.
    pub(crate) fn item(list: &'a str, number: u64) -> At<'a> {
        At { list, number: Some(number), within: "", part: None }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.list)?;
        self.number.map_or(Ok(()), |number| write!(f, "/{number}"))?;
        if !self.within.is_empty() {
            write!(f, "/{}", self.within)?;
        }
        self.part.map_or(Ok(()), |(member, number)| write!(f, "/{member}/{number}"))
    }
}

/// One such thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportNote {
    /// The kind of the note.
    pub kind: NoteKind,
    /// The place in the source, as a JSON pointer from the top of the run.
    pub path: String,
    /// One sentence.
    pub message: String,
    /// One more member of its entry of `anomalies`.
    member: Option<(&'static str, Value)>,
    /// Meanings that a part may have that was not read.
    may: &'static [&'static str],
}

impl ImportNote {
    pub(crate) fn new(kind: NoteKind, path: impl fmt::Display, message: impl Into<String>) -> ImportNote {
        ImportNote { kind, path: path.to_string(), message: message.into(), member: None, may: &[] }
    }

    /// Adds a member to its entry of `anomalies`.
    pub(crate) fn with(self, name: &'static str, value: Value) -> ImportNote {
        ImportNote { member: Some((name, value)), ..self }
    }

    /// A place in no table, with what it may state.
    pub(crate) fn not_read(
        path: impl fmt::Display,
        may: &'static [&'static str],
        text: impl Into<String>,
    ) -> ImportNote {
        let words = Value::array(may.iter().map(|word| Value::from(*word)));
        ImportNote { may, ..ImportNote::new(NoteKind::NotRead, path, text).with("may", words) }
    }

    /// Meanings that a part may have that was not read.
    pub fn may(&self) -> &'static [&'static str] {
        self.may
    }

    /// Returns the note as an entry of `anomalies`: kind and place, and no sentence.
    pub fn to_value(&self) -> Value {
        let mut members =
            vec![("kind", Value::from(self.kind.as_str())), ("path", Value::from(self.path.as_str()))];
        if self.kind.is_gap() {
            members.push(("gap", Value::from(true)));
        }
        members.extend(self.member.clone());
        Value::record(members)
    }
}
