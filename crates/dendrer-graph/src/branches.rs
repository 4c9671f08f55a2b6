//! Statements that only branches of `select` and `switch` read: each is evaluated once its branch is taken, and not before
//! (design, 14.5: branches not taken are not evaluated).

use std::collections::BTreeMap;

use crate::functions::BUILT_IN;
use crate::{Argument, Reference, Statement, StatementBody, last_node};

/// How statements are read by later ones, by id: whether a reader needs the value whatever branch it takes.
type Uses<'g> = BTreeMap<&'g str, bool>;

/// Whether each statement of a list has a value only if a branch that reads it is taken. `kept` is one that its round needs.
pub(crate) fn branch_only(statements: &[Statement], kept: Option<&str>) -> Vec<bool> {
    walk(statements, kept, false, &mut Uses::new())
}

fn walk<'g>(
    statements: &'g [Statement],
    kept: Option<&'g str>,
    is_inside: bool,
    uses: &mut Uses<'g>,
) -> Vec<bool> {
    let last = last_node(statements);
    let mut only = vec![false; statements.len()];
    for (position, statement) in statements.iter().enumerate().rev() {
        let is_kept = [last, kept].contains(&Some(&*statement.id));
        only[position] = !is_kept && uses.get(&*statement.id) == Some(&false);
        mark(statement, is_inside || only[position], uses);
    }
    only
}

/// Adds what a statement reads. `is_branch` is true of one that itself has a value only in a branch.
fn mark<'g>(statement: &'g Statement, is_branch: bool, uses: &mut Uses<'g>) {
    let mut read = |reference: &'g Reference, needs: bool| {
        *uses.entry(&reference.name).or_default() |= needs && !is_branch;
    };
    statement.condition.iter().for_each(|reference| read(reference, true));
    let (args, call): (&[Argument], &str) = match &statement.body {
        StatementBody::Node { call, args } | StatementBody::Edge { call, args, .. } => (args, call),
        StatementBody::Repeat { from, .. } => (std::slice::from_ref(from), ""),
    };
    let is_node = matches!(statement.body, StatementBody::Node { .. });
    for (position, argument) in args.iter().enumerate() {
        let is_choice = position > 0 && is_node && BUILT_IN.contains(&call);
        let is_taken = call == "select" || position % 2 == 0 || position + 1 == args.len();
        if let Argument::Reference(reference) = argument {
            read(reference, !(is_choice && is_taken));
        }
    }
    if let StatementBody::Repeat { statements, until, .. } = &statement.body {
        walk(statements, Some(until), is_branch, uses);
    }
}

/// Whether a statement, or one inside it, reads the value of one.
pub(crate) fn reads(statement: &Statement, id: &str) -> bool {
    let mut uses = Uses::new();
    mark(statement, false, &mut uses);
    uses.contains_key(id)
}
