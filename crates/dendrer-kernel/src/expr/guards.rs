//! Indexes by a computed name that nothing guards: where the name is missing, the expression cannot be judged.

use super::Expr;
use super::ast::{Base, Kind, Node, Path, Step, StepKind};
use super::error::Span;
use super::eval::place;
use super::functions::Function;
use super::print;

impl Expr {
    /// Returns the indexes by a computed name that no `in`, no `has` and no loop over the same members guards, each as it is
    /// written, with its span in the text. Guards are looked for in the whole expression: what is not listed may still be missing.
    pub fn unguarded(&self) -> Vec<(String, Span)> {
        let mut found = Found::default();
        found.walk(&self.0.tree);
        let Found { guards, indexes } = found;
        indexes.into_iter().filter(|(index, _)| !guards.contains(index)).collect()
    }
}

#[derive(Default)]
struct Found {
    /// Indexes that are known to be there, as they would be written.
    guards: Vec<String>,
    indexes: Vec<(String, Span)>,
}

impl Found {
    fn walk(&mut self, node: &Node) {
        match &node.kind {
            Kind::Path(path) => self.indexes_of(path),
            // The last part of the path need not be there; the parts before it must.
            Kind::Has(path) => {
                self.guards.push(place(path, path.steps.len(), &[]));
            }
            Kind::In(pair) => {
                let [name, members] = &**pair;
                self.guards.push(format!("{}[{}]", print::print(members), print::print(name)));
            }
            Kind::Comprehend(comprehension) => {
                if let Some(variable) = comprehension.variables.first() {
                    let range = print::print(named(&comprehension.range));
                    self.guards.push(format!("{range}[{variable}]"));
                }
            }
            _ => {}
        }
        node.children(&mut |child| self.walk(child));
    }

    fn indexes_of(&mut self, path: &Path) {
        for (at, step) in path.steps.iter().enumerate() {
            if let Step { kind: StepKind::Computed(_), span } = step
                && matches!(path.base, Base::State)
            {
                self.indexes.push((place(path, at + 1, &[]), *span));
            }
        }
    }
}

/// The list or map whose members a range has as its values: `keys(m)` and `indices(l)` are loops over `m` and `l`.
fn named(range: &Node) -> &Node {
    match &range.kind {
        Kind::Call(Function::Keys | Function::Indices, arguments) => arguments.first().unwrap_or(range),
        _ => range,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Expr, Scope};

    #[test]
    fn an_index_by_a_computed_name_is_guarded_or_found() {
        let found = |text: &str| -> Vec<String> {
            let expr = Expr::parse(text, &Scope::new()).unwrap_or_else(|error| panic!("{text}: {error}"));
            expr.unguarded().into_iter().map(|(index, _)| index).collect()
        };
        let open = "state.spent.exists(m, state.spent[m] > state.limits[m])";
        assert_eq!(found(open), ["state.limits[m]"]);
        for closed in [
            "state.spent.exists(m, m in state.limits && state.spent[m] > state.limits[m])",
            "state.spent.exists(m, has(state.limits[m]) && state.spent[m] > state.limits[m])",
            "state.spent.all(m, state.spent[m] > 0)",
            "keys(state.spent).all(m, state.spent[m] > 0)",
            "state.list[0] > 1",
            "state.spent.lee > 1",
        ] {
            assert_eq!(found(closed), Vec::<String>::new(), "{closed}");
        }
        assert_eq!(found("state.spent[state.who] > 1"), ["state.spent[state.who]"]);
    }
}
