//! The examples of `docs/expressions.md` are run, and its tables name what there is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::path::Path;

use dendrer_kernel::expr::{Budget, Env, EvalError, Expr, Scope};
use dendrer_object::{Value, json};

#[expect(clippy::disallowed_methods, reason = "reads the page")]
fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/expressions.md")).unwrap()
}

/// Takes out the fenced blocks of a kind.
fn blocks<'p>(page: &'p str, kind: &str) -> Vec<&'p str> {
    let fence = format!("```{kind}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

#[test]
fn the_examples_give_what_the_page_says() {
    let page = page();
    let [state] = blocks(&page, "json")[..] else { panic!("one state") };
    let state = json::parse_tagged(state.as_bytes()).unwrap();
    let scope = Scope::new()
        .constant("LIMIT", Value::from(500u64))
        .constant("YES", Value::array([Value::from("yes"), Value::from("ok")]));
    let mut count = 0;
    for line in blocks(&page, "expr").concat().lines() {
        let (text, expected) = line.rsplit_once("=>").unwrap();
        let (text, expected) = (text.trim(), expected.trim());
        let found = match Expr::parse(text, &scope) {
            Err(error) => error.code.to_string(),
            Ok(expr) => match expr.evaluate(&Env::of(&state), &mut Budget::default()) {
                Ok(value) => value.to_string(),
                Err(EvalError::Uncertain(why)) => match why.path {
                    Some(path) => format!("uncertain: {path}"),
                    None => "uncertain".to_owned(),
                },
                Err(EvalError::Exhausted) => "exhausted".to_owned(),
            },
        };
        assert_eq!(found, expected, "{text}");
        count += 1;
    }
    assert!(count > 60, "{count} examples");
}

#[test]
fn every_function_and_macro_has_its_place_on_the_page() {
    let page = page();
    for name in dendrer_kernel::expr::vocabulary() {
        assert!(
            page.contains(&format!("`{name}("))
                || page.contains(&format!(".{name}("))
                || page.contains(&format!("`{name}`")),
            "docs/expressions.md says nothing of `{name}`"
        );
    }
}
