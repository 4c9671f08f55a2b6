//! Items that stand in a source more than once, and items that name another one before them.
//!
//! An id names one item. The same content under it again is a repetition, which states nothing; other content is a further piece of
//! the same answer. A value on items of several roles is no such id. Items that name a parent among them are a tree, and the run
//! is the branch that was gone on with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use dendrer_object::value::Object;
use dendrer_object::{Digest, Value, json};

/// The identity of an item or of its content, short enough to be held for each.
pub(crate) type Short = [u8; 16];

/// Names of members that hold the id of an item.
const IDS: [&str; 4] = ["id", "uuid", "message_id", "messageId"];

/// How many branches next to the main one are read, the newest: each is read from the whole source.
pub(crate) const BRANCHES_MAX: usize = 100;

/// Names of members that hold the id of the item before.
pub(crate) const PARENTS: [&str; 10] = [
    "parent",
    "parent_id",
    "parentId",
    "parentUuid",
    "parent_uuid",
    "parent_message_id",
    "parentMessageId",
    "previous_message_id",
    "previousMessageId",
    "reply_to",
];

/// Names of members next to a list that hold the id of the newest item of the branch that was gone on with.
const CURRENT: [&str; 6] =
    ["current_node", "currentNode", "current_leaf", "currentLeaf", "current_message_id", "currentMessageId"];

/// Makes the identity of a text.
pub(crate) fn short(text: &[u8]) -> Short {
    Digest::of(text).0[..16].try_into().expect("a digest has 32 bytes")
}

/// Whether an item was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// It has no id, or its id is new.
    New,
    /// Its id and its content were there: at this number.
    Repeated(u64),
    /// A further piece of the item with its id.
    Piece,
}

/// The items of one source by their ids.
#[derive(Debug, Default)]
pub(crate) struct Once {
    seen: HashMap<Short, Seen>,
    /// Values that stand on items of several roles.
    pub(crate) void: BTreeSet<Short>,
}

#[derive(Debug)]
struct Seen {
    role: Short,
    contents: Vec<(u64, Short)>,
}

impl Once {
    /// Ids that are known to be none are passed over.
    pub(crate) fn without(void: &BTreeSet<Short>) -> Once {
        Once { void: void.clone(), ..Once::default() }
    }

    /// Returns the id of a message, and whether it was there. A format may state which id it is.
    pub(crate) fn message(
        &mut self,
        message: &Object,
        known: Option<Short>,
        number: u64,
    ) -> (Option<Short>, Again) {
        let Some(id) = known.or_else(|| id_of(message)) else { return (None, Again::New) };
        if self.void.contains(&id) {
            return (None, Again::New);
        }
        let role = short(message.get("role").and_then(Value::as_str).unwrap_or_default().as_bytes());
        let content = || {
            let mut content = message.clone();
            // Lines before an item are no content of it.
            if known.is_some() {
                content.remove("lines");
            }
            short(json::to_string(&Value::Object(content)).as_bytes())
        };
        let Some(seen) = self.seen.get_mut(&id) else {
            self.seen.insert(id, Seen { role, contents: vec![(number, content())] });
            return (Some(id), Again::New);
        };
        if seen.role != role {
            self.void.insert(id);
            return (None, Again::New);
        }
        let content = content();
        if let Some((first, _)) = seen.contents.iter().find(|(_, other)| *other == content) {
            return (Some(id), Again::Repeated(*first));
        }
        seen.contents.push((number, content));
        (Some(id), Again::Piece)
    }
}

/// The id of a message as it states it.
fn id_of(message: &Object) -> Option<Short> {
    let id = IDS.iter().find_map(|name| message.get(name))?;
    match id {
        Value::String(text) if !text.is_empty() => Some(short(text.as_bytes())),
        Value::Number(_) => Some(short(json::to_string(id).as_bytes())),
        _ => None,
    }
}

/// The items of a source as a tree, as far as they name their parents.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    names_parents: bool,
    /// How many items are in front of all others and are on each branch: those that belong to the run, and those that have neither
    /// an id nor a parent.
    front: usize,
}

/// An item of a tree.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Node {
    pub(crate) number: u64,
    pub(crate) id: Option<Short>,
    pub(crate) parent: Option<Short>,
    /// The answer that it is a piece of.
    pub(crate) answer: Option<Short>,
    /// Whether it goes with its parent: the result of a call.
    pub(crate) is_result: bool,
    /// Whether it goes with the newest item of the branch of its parent: an item of another agent than that of the branch.
    pub(crate) is_aside: bool,
    /// Whether it belongs to the run, if it is in front of all others.
    pub(crate) is_preamble: bool,
}

/// A branch of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Branch {
    /// The numbers of its items from the first on.
    pub(crate) items: Arc<BTreeSet<u64>>,
    /// Those of its items that the main branch has as well.
    shared: Arc<BTreeSet<u64>>,
}

impl Branch {
    /// Whether the main branch has an item as well.
    pub(crate) fn is_shared(&self, number: u64) -> bool {
        self.shared.contains(&number)
    }
}

/// The branches of a tree: the one that was gone on with, and the others, oldest first.
#[derive(Debug)]
pub(crate) struct Branches {
    pub(crate) main: Branch,
    pub(crate) others: Vec<Branch>,
    /// How many more branches there are than are read.
    pub(crate) left_out: usize,
    /// Items whose parent is not in the file.
    pub(crate) missing: Vec<u64>,
    /// Items whose parents make a circle.
    pub(crate) cycles: Vec<u64>,
}

impl Tree {
    /// Takes in a message.
    pub(crate) fn message(&mut self, message: &Object, number: u64, is_result: bool, is_preamble: bool) {
        let parent = PARENTS.iter().find_map(|name| message.get(name));
        let parent = parent.and_then(|parent| match parent {
            Value::String(text) if !text.is_empty() => Some(short(text.as_bytes())),
            Value::Number(_) => Some(short(json::to_string(parent).as_bytes())),
            _ => None,
        });
        let id = id_of(message);
        self.item(Node { number, id, parent, answer: id, is_result, is_aside: false, is_preamble });
    }

    /// Takes in an item.
    pub(crate) fn item(&mut self, node: Node) {
        self.names_parents |= node.parent.is_some();
        let is_front = node.is_preamble || (node.id.is_none() && node.parent.is_none());
        self.front += usize::from(is_front && self.front == self.nodes.len());
        self.nodes.push(node);
    }

    /// The item of each id: a parent may be after its child, and the first item of an id is that of the id.
    fn by_id(&self) -> HashMap<Short, usize> {
        let mut by_id: HashMap<Short, usize> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if let Some(id) = node.id {
                by_id.entry(id).or_insert(index);
            }
        }
        by_id
    }

    /// Returns the branches; `None` if the items are one line in the order of the file. `around` may name the current one.
    pub(crate) fn branches(&self, around: Option<&Value>) -> Option<Branches> {
        if !self.names_parents {
            return None;
        }
        let by_id = self.by_id();
        let (mut missing, mut cycles) = (Vec::new(), Vec::new());
        let mut parents: Vec<Option<usize>> = Vec::new();
        // Pieces of an answer and results of its calls make one line: by the first of them, the last one so far.
        let mut line_of: Vec<usize> = Vec::new();
        let mut end_of: HashMap<usize, usize> = HashMap::new();
        let mut answers: HashMap<Short, usize> = HashMap::new();
        let mut tips = Tips::default();
        let front = self.front.checked_sub(1);
        for (index, node) in self.nodes.iter().enumerate() {
            let before = index.checked_sub(1);
            if index < self.front {
                tips.add(index, before);
                parents.push(before);
                line_of.push(index);
                end_of.insert(index, index);
                continue;
            }
            let named = node.parent.map(|id| by_id.get(&id).copied().filter(|known| *known != index));
            let of_answer =
                node.answer.filter(|_| !node.is_result).and_then(|answer| answers.get(&answer).copied());
            let named_line = named.flatten().and_then(|known| line_of.get(known).copied());
            // An item without id and parent goes with the item before it, and makes no branch either.
            let unnamed = before.filter(|_| node.id.is_none() && node.parent.is_none());
            let of_unnamed = unnamed.and_then(|before| line_of.get(before).copied());
            let tip = named.flatten().filter(|_| node.is_aside).and_then(|known| tips.of(known));
            let of_tip = tip.and_then(|tip| line_of.get(tip).copied());
            let line = of_tip.or(of_answer).or(named_line.filter(|_| node.is_result)).or(of_unnamed);
            let parent = match (line, named) {
                _ if tip.is_some() => tip,
                (Some(line), _) => end_of.get(&line).copied(),
                (None, Some(Some(known))) => {
                    Some(named_line.and_then(|line| end_of.get(&line).copied()).unwrap_or(known))
                }
                (None, Some(None)) => {
                    missing.push(node.number);
                    before
                }
                (None, None) if node.is_result => before,
                (None, None) => None,
            };
            let parent = parent.filter(|parent| *parent >= self.front).or(front);
            let line = line.unwrap_or(index);
            tips.add(index, parent);
            parents.push(parent);
            line_of.push(line);
            end_of.insert(line, index);
            if let Some(answer) = node.answer.filter(|_| !node.is_result) {
                answers.entry(answer).or_insert(line);
            }
        }
        cut_cycles(&mut parents, |index| cycles.push(self.nodes[index].number));
        let paths = Paths { parents: &parents, nodes: &self.nodes };
        let current = around.and_then(|around| named_current(around, &by_id));
        paths.branches(current, missing, cycles)
    }
}

/// The newest item of each branch, while a tree is read.
#[derive(Debug, Default)]
struct Tips {
    branch_of: Vec<usize>,
    tips: Vec<usize>,
}

impl Tips {
    /// Takes in the next item: it continues the branch of its parent if that is the newest item there, else it begins a branch.
    fn add(&mut self, index: usize, parent: Option<usize>) {
        let branch = parent.and_then(|parent| self.branch_of.get(parent).copied());
        let branch = branch.filter(|branch| Some(self.tips[*branch]) == parent).unwrap_or(self.tips.len());
        self.branch_of.push(branch);
        if branch == self.tips.len() {
            self.tips.push(index);
        }
        self.tips[branch] = index;
    }

    /// The newest item of the branch that an item before is in.
    fn of(&self, index: usize) -> Option<usize> {
        Some(self.tips[*self.branch_of.get(index)?])
    }
}

/// The item that the members around a list name as the newest of the current branch.
fn named_current(around: &Value, by_id: &HashMap<Short, usize>) -> Option<usize> {
    let object = around.as_object()?;
    let named = CURRENT.iter().find_map(|name| object.get(name)?.as_str());
    by_id.get(&short(named?.as_bytes())).copied()
}

/// Ends each circle of parents at its item with the lowest number, which gets the item before it as its parent.
fn cut_cycles(parents: &mut [Option<usize>], mut cut: impl FnMut(usize)) {
    let mut done = vec![0u8; parents.len()];
    for start in 0..parents.len() {
        let mut path = Vec::new();
        let mut at = Some(start);
        while let Some(index) = at {
            match done[index] {
                0 => {
                    done[index] = 1;
                    path.push(index);
                    at = parents[index];
                }
                1 => {
                    let from = path.iter().position(|one| *one == index).unwrap_or(0);
                    let first = path[from..].iter().copied().min().unwrap_or(index);
                    parents[first] = first.checked_sub(1).filter(|before| !path[from..].contains(before));
                    cut(first);
                    break;
                }
                _ => break,
            }
        }
        path.into_iter().for_each(|index| done[index] = 2);
    }
}

struct Paths<'t> {
    parents: &'t [Option<usize>],
    nodes: &'t [Node],
}

impl Paths<'_> {
    fn branches(&self, current: Option<usize>, missing: Vec<u64>, cycles: Vec<u64>) -> Option<Branches> {
        let mut has_child = vec![false; self.nodes.len()];
        self.parents.iter().flatten().for_each(|parent| has_child[*parent] = true);
        let leaves: Vec<usize> = (0..self.nodes.len()).filter(|index| !has_child[*index]).collect();
        let newest = *leaves.last()?;
        // An agent that is still at work on another branch does not make that the current one.
        let goes_on = || self.nodes.iter().rposition(|node| !node.is_aside);
        let current = current.or_else(|| goes_on().filter(|_| self.nodes[newest].is_aside));
        // Below a named item the newest leaf is taken.
        let main_leaf = current.and_then(|current| self.newest_below(current, &leaves)).unwrap_or(newest);
        let main: BTreeSet<usize> = self.path(main_leaf).into_iter().collect();
        let is_in_order = self.path(main_leaf).windows(2).all(|pair| pair[0] > pair[1]);
        if leaves.len() == 1 && is_in_order && missing.is_empty() && cycles.is_empty() {
            return None;
        }
        let numbers = |path: &BTreeSet<usize>| {
            Arc::new(path.iter().map(|index| self.nodes[*index].number).collect::<BTreeSet<u64>>())
        };
        let mut others = Vec::new();
        let left_out = (leaves.len() - 1).saturating_sub(BRANCHES_MAX);
        for leaf in leaves.iter().copied().filter(|leaf| *leaf != main_leaf).skip(left_out) {
            let path: BTreeSet<usize> = self.path(leaf).into_iter().collect();
            let shared = path.intersection(&main).copied().collect();
            others.push(Branch { items: numbers(&path), shared: numbers(&shared) });
        }
        let main = Branch { shared: numbers(&main), items: numbers(&main) };
        Some(Branches { main, others, left_out, missing, cycles })
    }

    /// The newest leaf that an item leads to.
    fn newest_below(&self, current: usize, leaves: &[usize]) -> Option<usize> {
        let mut is_met = vec![false; self.nodes.len()];
        leaves.iter().rev().copied().find(|leaf| {
            let mut at = Some(*leaf);
            while let Some(index) = at.filter(|index| !is_met[*index]) {
                if index == current {
                    return true;
                }
                is_met[index] = true;
                at = self.parents[index];
            }
            false
        })
    }

    /// The items from a leaf up to its root.
    fn path(&self, leaf: usize) -> Vec<usize> {
        let mut path = vec![leaf];
        while let Some(parent) = self.parents[path[path.len() - 1]] {
            path.push(parent);
        }
        path
    }
}

/// The usage that is on record for each id: a later statement is in place of the one before.
#[derive(Debug, Default)]
pub(crate) struct Stated(BTreeMap<Short, [Option<f64>; 2]>, BTreeMap<Short, u64>);

impl Stated {
    /// Whether an item of this id was given another number of tokens before.
    pub(crate) fn changes_input(&mut self, id: Short, input: u64) -> bool {
        *self.1.entry(id).or_insert(input) != input
    }

    /// Returns what a statement adds to what its id has stated already: for each metric the difference; `None` where it is less.
    pub(crate) fn add(&mut self, id: Short, stated: &[Option<Value>; 2]) -> Option<[Option<f64>; 2]> {
        let now = stated.each_ref().map(|value| value.as_ref()?.as_number()?.as_f64());
        let Some(before) = self.0.get_mut(&id) else {
            self.0.insert(id, now);
            return Some(now);
        };
        let more = [0, 1].map(|at| match (before[at], now[at]) {
            (Some(before), Some(now)) => Some(now - before),
            (_, now) => now,
        });
        let shrinks = more.iter().flatten().any(|more| *more < 0.0);
        for at in [0, 1] {
            before[at] = now[at].or(before[at]);
        }
        (!shrinks).then_some(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(nodes: &[(u64, &str, Option<&str>)]) -> Tree {
        let mut tree = Tree::default();
        for (number, id, parent) in nodes {
            tree.item(Node {
                number: *number,
                id: Some(short(id.as_bytes())),
                parent: parent.map(|parent| short(parent.as_bytes())),
                ..Node::default()
            });
        }
        tree
    }

    fn numbers(branch: &Branch) -> Vec<u64> {
        branch.items.iter().copied().collect()
    }

    #[test]
    fn a_line_is_no_tree_and_a_fork_of_answers_is_two_branches() {
        let line = [(0, "a", None), (1, "b", Some("a")), (2, "c", Some("b"))];
        assert!(tree(&line).branches(None).is_none());
        let forked = [(0, "a", None), (1, "b", Some("a")), (2, "c", Some("b")), (3, "d", Some("a"))];
        let found = tree(&forked).branches(None).unwrap();
        assert_eq!((numbers(&found.main), found.others.len()), (vec![0, 3], 1));
        assert_eq!((numbers(&found.others[0]), found.others[0].shared.len()), (vec![0, 1, 2], 1));
        let around = dendrer_object::json::parse_door(br#"{"current_node":"b"}"#).unwrap();
        let found = tree(&forked).branches(Some(&around)).unwrap();
        assert_eq!(numbers(&found.main), [0, 1, 2]);
    }

    #[test]
    fn results_of_parallel_calls_and_pieces_of_an_answer_make_no_branch() {
        let node = |number, id: &str, parent: &str, answer: &str, is_result| Node {
            number,
            id: Some(short(id.as_bytes())),
            parent: Some(short(parent.as_bytes())),
            answer: Some(short(answer.as_bytes())),
            is_result,
            ..Node::default()
        };
        let mut tree = Tree::default();
        tree.item(Node { number: 0, id: Some(short(b"u")), ..Node::default() });
        tree.item(node(1, "p1", "u", "m", false));
        tree.item(node(2, "p2", "p1", "m", false));
        tree.item(node(3, "r1", "p1", "r1", true));
        tree.item(node(4, "r2", "p2", "r2", true));
        tree.item(node(5, "n", "r2", "n", false));
        assert!(tree.branches(None).is_none());
    }

    #[test]
    fn an_item_of_another_agent_makes_no_branch_after_the_conversation_went_on() {
        let id = |text: &str| Some(short(text.as_bytes()));
        let mut tree = Tree::default();
        for (number, name, parent, is_aside) in [
            (0, "u", None, false),
            (1, "call", Some("u"), false),
            (2, "s1", Some("call"), true),
            (3, "next", Some("call"), false),
            (4, "s2", Some("s1"), true),
            (5, "last", Some("next"), false),
        ] {
            let parent = parent.and_then(id);
            let is_result = is_aside;
            tree.item(Node { number, id: id(name), parent, is_result, is_aside, ..Node::default() });
        }
        assert!(tree.branches(None).is_none());
        // An item that begins a branch before the call leaves the other agent where it is.
        tree.item(Node { number: 6, id: id("again"), parent: id("u"), ..Node::default() });
        tree.item(Node {
            number: 7,
            id: id("s3"),
            parent: id("s2"),
            is_result: true,
            is_aside: true,
            ..Node::default()
        });
        let found = tree.branches(None).unwrap();
        assert_eq!(
            (numbers(&found.main), numbers(&found.others[0])),
            (vec![0, 6], vec![0, 1, 2, 3, 4, 5, 7])
        );
    }

    #[test]
    fn a_missing_parent_and_a_circle_are_named() {
        let found = tree(&[(0, "a", None), (1, "b", Some("gone"))]).branches(None).unwrap();
        assert_eq!((numbers(&found.main), found.missing), (vec![0, 1], vec![1]));
        let found = tree(&[(0, "a", Some("b")), (1, "b", Some("a"))]).branches(None).unwrap();
        assert_eq!(found.cycles.len(), 1);
    }

    #[test]
    fn a_value_on_items_of_several_roles_is_no_id() {
        let parse = |text: &str| dendrer_object::json::parse_door(text.as_bytes()).unwrap();
        let mut once = Once::default();
        let mut take = |text: &str, number| once.message(parse(text).as_object().unwrap(), None, number).1;
        assert_eq!(take(r#"{"id":"m","role":"assistant","content":"a"}"#, 0), Again::New);
        assert_eq!(take(r#"{"id":"m","role":"assistant","content":"b"}"#, 1), Again::Piece);
        assert_eq!(take(r#"{"id":"m","role":"assistant","content":"a"}"#, 2), Again::Repeated(0));
        assert_eq!(take(r#"{"id":"m","role":"user","content":"a"}"#, 3), Again::New);
        assert_eq!(take(r#"{"id":"m","role":"assistant","content":"a"}"#, 4), Again::New);
        assert_eq!(once.void.len(), 1);
    }
}
