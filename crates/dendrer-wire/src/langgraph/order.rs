//! The order in which a saver was given the checkpoints and writes of a thread, as far as a database shows it.
//!
//! Checkpoints come in the order of their ids, a parent before its children. Writes of a task come before the first child of
//! their checkpoint, and after those of the subgraphs that the task ran. Their rows decide what is left: a program that writes in
//! the background has them in another order only where tasks ran at one time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A row of the checkpoints of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckpointRow {
    /// Its number.
    pub(crate) row: i64,
    /// The namespace.
    pub(crate) namespace: Arc<str>,
    /// The id.
    pub(crate) id: Arc<str>,
    /// The checkpoint that it follows.
    pub(crate) parent: Option<Arc<str>>,
}

/// A row of the writes of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WriteRow {
    /// Its number.
    pub(crate) row: i64,
    /// The namespace.
    pub(crate) namespace: Arc<str>,
    /// The checkpoint.
    pub(crate) checkpoint: Arc<str>,
    /// The path of the task.
    pub(crate) path: Arc<str>,
    /// The task.
    pub(crate) task: Arc<str>,
    /// Its number in the task.
    pub(crate) index: i64,
    /// The channel.
    pub(crate) channel: Arc<str>,
}

/// The relation of a checkpoint to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parent {
    /// It has none, or the parent comes before it.
    Known,
    /// The parent is not in the database.
    Missing,
    /// The parents make a circle.
    Cycle,
}

/// A call of a saver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    /// A checkpoint, by its place in the list.
    Checkpoint(usize, Parent),
    /// Writes of a task, by their places in the list; the flag is for those whose checkpoint is not in the database.
    Writes(Vec<usize>, bool),
}

/// A checkpoint of a thread: its namespace and its id.
type Place<'r> = (&'r str, &'r str);

/// How deep namespaces are followed inwards.
const DEPTH_MAX: usize = 64;

/// Writes of one call.
struct Group<'r> {
    /// Their places in the list.
    rows: Vec<usize>,
    /// One of them.
    first: &'r WriteRow,
    /// The first row.
    row: i64,
    /// Whether the framework notes something of the task, and nothing else: an interrupt, an error.
    is_noted: bool,
    /// The place of their checkpoint in the order.
    owner: Option<usize>,
    /// The namespaces of subgraphs that the task ran.
    inner: [Option<&'r BTreeSet<&'r str>>; 2],
}

impl Group<'_> {
    /// Whether its place among writes of other checkpoints follows from the rows: the node around a subgraph writes last.
    fn is_placed_by_row(&self) -> bool {
        self.is_noted || self.inner == [None; 2]
    }
}

/// Calls that are placed, and writes that wait.
struct Placing<'g, 'r> {
    groups: &'g [Group<'r>],
    calls: Vec<Call>,
    /// Writes whose checkpoint was placed, by row.
    ready: BTreeSet<(i64, usize)>,
    /// Those of them that are placed by their rows.
    by_row: BTreeSet<(i64, usize)>,
    /// Those of each namespace; notes of the framework apart.
    within: BTreeMap<(&'r str, bool), BTreeSet<(i64, usize)>>,
}

impl Placing<'_, '_> {
    fn wait(&mut self, number: usize) {
        let group = &self.groups[number];
        let key = (group.row, number);
        self.ready.insert(key);
        if group.is_placed_by_row() {
            self.by_row.insert(key);
        }
        self.within.entry((&group.first.namespace, group.is_noted)).or_default().insert(key);
    }

    /// Places writes that wait, those of subgraphs of their task in front.
    fn place(&mut self, number: usize, depth: usize) {
        let group = &self.groups[number];
        let key = (group.row, number);
        if !self.ready.remove(&key) {
            return;
        }
        self.by_row.remove(&key);
        if let Some(within) = self.within.get_mut(&(&*group.first.namespace, group.is_noted)) {
            within.remove(&key);
        }
        for namespace in group.inner.into_iter().flatten().flatten().filter(|_| depth < DEPTH_MAX) {
            // An interrupt of a node follows those in it; the subgraph may have gone on since.
            for is_noted in [true, false].into_iter().filter(|is_noted| *is_noted || !group.is_noted) {
                let waiting = self.within.remove(&(*namespace, is_noted)).unwrap_or_default();
                waiting.into_iter().for_each(|(_, inner)| self.place(inner, depth + 1));
            }
        }
        self.calls.push(Call::Writes(group.rows.clone(), false));
    }
}

/// Orders the rows of a thread as calls.
pub(crate) fn order(checkpoints: &[CheckpointRow], writes: &[WriteRow]) -> Vec<Call> {
    let sorted = parents_first(checkpoints);
    let at: BTreeMap<Place<'_>, usize> =
        sorted.iter().enumerate().map(|(at, (number, _))| (place(&checkpoints[*number]), at)).collect();
    let inner = inner_of(checkpoints);
    let groups = groups_of(writes, &at, &inner);
    let mut owned = vec![Vec::new(); sorted.len()];
    for (number, group) in groups.iter().enumerate() {
        if let Some(owner) = group.owner {
            owned[owner].push(number);
        }
    }
    let parents: Vec<Option<usize>> = sorted
        .iter()
        .map(|(number, _)| {
            let one = &checkpoints[*number];
            one.parent.as_deref().and_then(|parent| at.get(&(&*one.namespace, parent)).copied())
        })
        .collect();
    let last_child: BTreeMap<usize, usize> =
        parents.iter().enumerate().filter_map(|(child, parent)| Some(((*parent)?, child))).collect();
    let row = |number: &usize| groups[*number].row;
    let mut placing = Placing {
        groups: &groups,
        calls: Vec::new(),
        ready: BTreeSet::new(),
        by_row: BTreeSet::new(),
        within: BTreeMap::new(),
    };
    for (child, (number, relation)) in sorted.iter().enumerate() {
        let own = &owned[child];
        let mut due: BTreeSet<(i64, usize)> = BTreeSet::new();
        if let Some(parent) = parents[child] {
            // Writes that are newer than those of this child were made for a later one: a fork.
            let newest = own.iter().map(row).max().filter(|_| last_child[&parent] != child);
            let of_parent = owned[parent].iter().map(|group| (row(group), *group));
            due.extend(of_parent.filter(|(at, _)| newest.is_none_or(|newest| *at < newest)));
        }
        if let Some(oldest) = own.iter().map(row).min() {
            due.extend(placing.by_row.range(..(oldest, 0)));
        }
        due.into_iter().for_each(|(_, group)| placing.place(group, 0));
        placing.calls.push(Call::Checkpoint(*number, *relation));
        own.iter().for_each(|group| placing.wait(*group));
    }
    for (_, group) in placing.ready.clone() {
        placing.place(group, 0);
    }
    let mut calls = placing.calls;
    let lost = groups.iter().filter(|group| group.owner.is_none());
    calls.extend(lost.map(|group| Call::Writes(group.rows.clone(), true)));
    calls
}

fn place(row: &CheckpointRow) -> Place<'_> {
    (&row.namespace, &row.id)
}

/// The namespaces of subgraphs, by the namespace around each and the task or node that ran it.
type Inner<'r> = BTreeMap<(&'r str, &'r str), BTreeSet<&'r str>>;

fn inner_of(checkpoints: &[CheckpointRow]) -> Inner<'_> {
    let mut inner = Inner::new();
    for namespace in checkpoints.iter().map(|row| &*row.namespace).filter(|namespace| !namespace.is_empty()) {
        let (around, own) = namespace.rsplit_once('|').unwrap_or(("", namespace));
        let task = own.rsplit_once(':').map_or(own, |(_, task)| task);
        inner.entry((around, task)).or_default().insert(namespace);
    }
    inner
}

/// The calls that wrote the rows, each with its checkpoint and the namespaces inside of its task.
fn groups_of<'r>(
    writes: &'r [WriteRow],
    at: &BTreeMap<Place<'r>, usize>,
    inner: &'r Inner<'r>,
) -> Vec<Group<'r>> {
    let of = |rows: Vec<usize>| {
        let first = &writes[rows[0]];
        let node = first.path.rsplit_once(", ").map_or("", |(_, node)| node);
        Group {
            first,
            row: row_of(writes, &rows).unwrap_or_default(),
            is_noted: rows.iter().all(|at| writes[*at].index < 0),
            owner: at.get(&(&*first.namespace, &*first.checkpoint)).copied(),
            inner: [&*first.task, node].map(|key| inner.get(&(&*first.namespace, key))),
            rows,
        }
    };
    grouped(writes).into_iter().map(of).collect()
}

/// Groups the rows that one call wrote, by the first of them.
fn grouped(writes: &[WriteRow]) -> Vec<Vec<usize>> {
    let mut tasks: BTreeMap<(&str, &str, &str), Vec<usize>> = BTreeMap::new();
    for (at, one) in writes.iter().enumerate() {
        tasks.entry((&one.namespace, &one.checkpoint, &one.task)).or_default().push(at);
    }
    let mut found: Vec<Vec<usize>> = tasks.into_values().flat_map(|rows| calls_of(writes, rows)).collect();
    found.sort_by_key(|group| row_of(writes, group));
    found
}

/// The first row of a call.
fn row_of(writes: &[WriteRow], group: &[usize]) -> Option<i64> {
    group.iter().map(|at| writes[*at].row).min()
}

/// The calls that wrote the rows of a task: its results, and notes of the framework apart. A result is numbered by its place in its
/// call, and the rows of a call follow each other, so a note whose row is among those of the results has come with them.
fn calls_of(writes: &[WriteRow], rows: Vec<usize>) -> Vec<Vec<usize>> {
    let row = |at: &usize| writes[*at].row;
    let (mut notes, mut call): (Vec<usize>, Vec<usize>) =
        rows.into_iter().partition(|at| writes[*at].index < 0);
    call.sort_by_key(|at| writes[*at].index);
    let mut calls: Vec<Vec<usize>> = Vec::new();
    if let Some((first, last)) = call.first().copied().zip(call.iter().map(row).max()) {
        let begin = row(&first).saturating_sub(writes[first].index);
        let (within, alone) = notes.into_iter().partition(|note| (begin..=last).contains(&row(note)));
        notes = alone;
        call.extend::<Vec<usize>>(within);
        call.sort_by_key(|at| match writes[*at].index {
            index @ 0.. => index,
            _ => row(at).saturating_sub(begin),
        });
        calls.push(call);
    }
    notes.sort_by_key(row);
    let mut end = None;
    for note in notes {
        match calls.last_mut().filter(|_| end.is_some_and(|end: i64| end.saturating_add(1) == row(&note))) {
            Some(call) => call.push(note),
            None => calls.push(vec![note]),
        }
        end = Some(row(&note));
    }
    calls
}

/// The checkpoints by their ids, each after its parent.
fn parents_first(rows: &[CheckpointRow]) -> Vec<(usize, Parent)> {
    let at: BTreeMap<Place<'_>, usize> = rows.iter().enumerate().map(|(at, row)| (place(row), at)).collect();
    let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut relation = vec![Parent::Known; rows.len()];
    // Those that wait for nothing, and those that are left, by their ids.
    let (mut free, mut left) = (BTreeSet::new(), BTreeSet::new());
    for (number, row) in rows.iter().enumerate() {
        let key = (&*row.id, &*row.namespace, number);
        left.insert(key);
        match row.parent.as_deref().map(|parent| at.get(&(&*row.namespace, parent))) {
            Some(Some(parent)) => children.entry(*parent).or_default().push(number),
            parent => {
                relation[number] = if parent.is_some() { Parent::Missing } else { Parent::Known };
                free.insert(key);
            }
        }
    }
    let mut sorted = Vec::new();
    loop {
        let key = match free.pop_first() {
            Some(key) => key,
            None => {
                // All that is left is in a circle or follows one.
                let Some(key) = first_in_circle(rows, &at, &left) else { return sorted };
                relation[key.2] = Parent::Cycle;
                key
            }
        };
        if !left.remove(&key) {
            continue;
        }
        sorted.push((key.2, relation[key.2]));
        for child in children.get(&key.2).into_iter().flatten() {
            let row = &rows[*child];
            let key = (&*row.id, &*row.namespace, *child);
            if left.contains(&key) {
                free.insert(key);
            }
        }
    }
}

/// The smallest id of the circle that the parents of a row lead to.
fn first_in_circle<'r>(
    rows: &'r [CheckpointRow],
    at: &BTreeMap<Place<'r>, usize>,
    left: &BTreeSet<(&'r str, &'r str, usize)>,
) -> Option<(&'r str, &'r str, usize)> {
    let parent_of = |number: usize| {
        let row = &rows[number];
        row.parent.as_deref().and_then(|parent| at.get(&(&*row.namespace, parent)).copied())
    };
    let mut number = left.first()?.2;
    let mut seen = BTreeSet::new();
    while seen.insert(number) {
        number = parent_of(number)?;
    }
    let from = number;
    let mut least = number;
    loop {
        number = parent_of(number)?;
        if rows[number].id < rows[least].id {
            least = number;
        }
        if number == from {
            return Some((&rows[least].id, &rows[least].namespace, least));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checkpoints as `NS:ID<PARENT`, and writes as `NS:ID/TASK[!]` in the order of their rows.
    fn shown(checkpoints: &str, writes: &str) -> String {
        let place = |text: &str| -> (Arc<str>, Arc<str>) {
            let (namespace, id) = text.rsplit_once(':').unwrap_or(("", text));
            (namespace.into(), id.into())
        };
        let rows: Vec<CheckpointRow> = (1..)
            .zip(checkpoints.split_whitespace())
            .map(|(row, text)| {
                let (own, parent) =
                    text.split_once('<').map_or((text, None), |(own, parent)| (own, Some(parent)));
                let (namespace, id) = place(own);
                CheckpointRow { row, namespace, id, parent: parent.map(Into::into) }
            })
            .collect();
        let given: Vec<WriteRow> = (1..)
            .zip(writes.split_whitespace())
            .map(|(row, text)| {
                let (own, task) = text.split_once('/').unwrap();
                let (namespace, checkpoint) = place(own);
                let before =
                    writes.split_whitespace().take(row as usize - 1).filter(|one| *one == text).count();
                let index = if task.ends_with('!') { -3 } else { before as i64 };
                let (path, channel) = ("".into(), "c".into());
                WriteRow {
                    row,
                    namespace,
                    checkpoint,
                    path,
                    task: task.trim_end_matches('!').into(),
                    index,
                    channel,
                }
            })
            .collect();
        let text = |call: &Call| match call {
            Call::Checkpoint(at, parent) => {
                let mark = match parent {
                    Parent::Known => "",
                    Parent::Missing => "?",
                    Parent::Cycle => "@",
                };
                format!("{}{mark}", rows[*at].id)
            }
            Call::Writes(group, is_lost) => {
                let one = &given[group[0]];
                format!("{}/{}x{}{}", one.checkpoint, one.task, group.len(), if *is_lost { "?" } else { "" })
            }
        };
        order(&rows, &given).iter().map(text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn writes_come_before_the_child_of_their_checkpoint() {
        assert_eq!(shown("1 2<1 3<2", "1/a 1/a 1/b 2/c"), "1 1/ax2 1/bx1 2 2/cx1 3");
        // An interrupt is a call of its own, and so are the writes at the end.
        assert_eq!(shown("1 2<1", "1/a! 1/a 2/b"), "1 1/ax1 1/ax1 2 2/bx1");
    }

    #[test]
    fn a_value_to_resume_with_comes_with_the_results() {
        let row = |row, index| WriteRow {
            row,
            namespace: "".into(),
            checkpoint: "1".into(),
            path: "".into(),
            task: "t".into(),
            index,
            channel: "c".into(),
        };
        let calls = |rows: &[(i64, i64)]| {
            let writes: Vec<WriteRow> = rows.iter().map(|(at, index)| row(*at, *index)).collect();
            let shown = |call: Vec<usize>| call.iter().map(|at| writes[*at].index).collect::<Vec<_>>();
            grouped(&writes).into_iter().map(shown).collect::<Vec<_>>()
        };
        assert_eq!(calls(&[(11, -3), (21, -4), (22, 1), (23, 2)]), [vec![-3], vec![-4, 1, 2]]);
        assert_eq!(calls(&[(5, -3), (6, -4), (9, 0)]), [vec![-3, -4], vec![0]]);
        assert_eq!(calls(&[(9, 0), (11, -1)]), [vec![0], vec![-1]]);
        assert_eq!(calls(&[(i64::MIN, i64::MAX), (i64::MAX, -1)]), [vec![i64::MAX], vec![-1]]);
    }

    #[test]
    fn a_subgraph_comes_before_the_node_around_it() {
        let graph = "1 n:q:2 n:q:3<2 n:q:4<3 5<1";
        for writes in ["n:q:2/a n:q:3/b 1/q", "1/q n:q:3/b n:q:2/a"] {
            assert_eq!(shown(graph, writes), "1 2 2/ax1 3 3/bx1 4 1/qx1 5", "{writes}");
        }
        // A task next to it, and an interrupt of the subgraph with that of the node.
        assert_eq!(
            shown("1 n:q:2 n:q:3<2 5<1", "n:q:2/a! 1/q! 1/p n:q:2/a n:q:3/b 1/q"),
            "1 2 2/ax1 1/qx1 1/px1 2/ax1 3 3/bx1 1/qx1 5"
        );
    }

    #[test]
    fn writes_for_a_fork_come_where_the_fork_does() {
        assert_eq!(shown("1 2<1 3<2 4<1", "1/a 2/b 1/f"), "1 1/ax1 2 2/bx1 3 1/fx1 4");
    }

    #[test]
    fn rows_in_another_order_are_ordered_by_the_parents() {
        assert_eq!(shown("3<2 2<1 1", "2/b 1/c 1/a"), "1 1/cx1 1/ax1 2 2/bx1 3");
    }

    #[test]
    fn parents_that_are_missing_or_make_a_circle_are_marked() {
        assert_eq!(shown("5<9 6<5", "8/a"), "5? 6 8/ax1?");
        assert_eq!(shown("1<2 2<1 3<3 4<3", ""), "1@ 2 3@ 4");
        assert_eq!(shown("0<2 1<3 2<1 3<2", ""), "1@ 2 0 3");
    }
}
