//! Comparisons of redacted values (design, 14.4).

use super::*;

const KEYS: [(&str, &str); 3] =
    [("A", "ab12000000000001"), ("B", "ab12000000000002"), ("C", "cd34000000000001")];

fn state() -> Value {
    let text = r#"{
        "a":{"$redacted":{"kind":"named","len":"short","tag":"A"}},
        "same":{"$redacted":{"kind":"known","len":"short","tag":"A"}},
        "b":{"$redacted":{"kind":"named","len":"short","tag":"B"}},
        "other":{"$redacted":{"kind":"named","len":"short","tag":"C"}},
        "bare":{"$redacted":{"kind":"named","len":"short"}},
        "using_a":"using <redacted:openai-key#A> now","using_b":"using <redacted:openai-key#B> now",
        "using":"using <redacted:pin> now","plain":"done","known":[{"$redacted":{"kind":"named","len":"short","tag":"A"}}],"agent":"<redacted:known>",
        "list":["x","<redacted:known>"],"row":[{"$redacted":{"kind":"named","len":"short"}},1],
        "map":{"<redacted:jwt#A>":1,"clear":2},"open":{"<redacted:jwt>":1},"only":{"clear":2},
        "three":[{"$redacted":{"kind":"named","len":"short","tag":"A"}},
            {"$redacted":{"kind":"known","len":"short","tag":"A"}},{"$redacted":{"kind":"named","len":"short","tag":"B"}}],
        "only_b":[{"$redacted":{"kind":"named","len":"short","tag":"B"}},true,null],
        "sent":[["send",{"$redacted":{"kind":"named","len":"short"}}],["read","x"],["send",""]],
        "twice":[["send",{"$redacted":{"kind":"named","len":"short"}}],["send",{"$redacted":{"kind":"named","len":"short"}}]]
    }"#;
    let text = KEYS.iter().fold(text.to_owned(), |text, (name, tag)| {
        text.replace(&format!("\"{name}\""), &format!("\"{tag}\""))
            .replace(&format!("#{name}>"), &format!("#{tag}>"))
    });
    read_tagged(&text)
}

fn answer(text: &str, scope: &Scope) -> &'static str {
    let state = state();
    let expr = Expr::parse_condition(text, scope).unwrap_or_else(|error| panic!("{text}: {error}"));
    match expr.holds(&Env::of(&state), &mut Budget::default()) {
        Truth::True => "true",
        Truth::False => "false",
        Truth::Uncertain(why) if why.met == crate::sealed::WITHHELD => "open",
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn redacted_values_are_compared_by_their_tags() {
    let table = [
        ("state.a == state.same", "true"),
        ("state.a == state.b", "false"),
        ("state.a != state.b", "true"),
        ("state.a == state.other", "open"),
        ("state.a == state.bare", "open"),
        ("state.bare == state.bare", "open"),
        ("state.a == 'Gr8pass99zz'", "open"),
        ("state.a == 'longer than sixteen bytes'", "false"),
        ("state.a == ''", "false"),
        ("state.a == null", "false"),
        ("state.a != null", "true"),
        ("state.using_a == state.using_b", "false"),
        ("state.using_a == 'using x now'", "open"),
        ("state.using_a == 'done'", "false"),
        ("state.using == state.using", "open"),
        ("state.plain == 'done'", "true"),
        ("state.agent == 'router'", "open"),
        ("state.agent in ['router', 'planner']", "open"),
        ("state.agent in ['router', '<redacted:known>', 3]", "open"),
        ("'x' in state.list", "true"),
        ("'y' in state.list", "open"),
        ("state.a in state.known", "true"),
        ("state.b in state.known", "false"),
        ("state.row == [2, 2]", "false"),
        ("state.row == ['x', 2]", "false"),
        ("state.row == ['x', 1]", "open"),
        ("'clear' in state.map", "true"),
        ("'x' in state.map", "open"),
        ("'x' in state.open", "open"),
        ("'x' in state.only", "false"),
        ("state.map == {'clear': 2, 'x': 1}", "open"),
        ("state.using < 'z'", "open"),
        ("state.bare == 'x' || state.plain == 'done'", "true"),
        ("distinct(state.list).size() == 2", "open"),
        ("size(distinct(state.three)) == 2", "true"),
        ("size(distinct(state.only_b)) == 3", "true"),
        ("size(distinct(state.three + ['Gr8pass99zz'])) == 3", "open"),
        ("size(distinct(state.sent)) == 3", "true"),
        ("size(distinct(state.twice)) == 2", "open"),
        ("size(distinct([state.using, 'done', 'done'])) == 2", "true"),
        ("intersects(state.list, ['x'])", "true"),
        ("intersects(['x'], ['y', '<redacted:known>', 'x'])", "true"),
        ("intersects(state.sent, [['delete', 'x']])", "false"),
        ("intersects(state.sent, [['send', 'x']])", "open"),
        ("intersects(state.three, state.only_b)", "true"),
        ("intersects(state.known, state.only_b)", "false"),
        ("state.using.contains('now')", "true"),
    ];
    for (text, wanted) in table {
        assert_eq!(answer(text, &Scope::new()), wanted, "{text}");
    }
}

#[test]
fn runs_of_before_are_judged_as_they_were() {
    let before = Scope::new().by_rules(2);
    for (text, was, is) in [
        ("state.agent == 'router'", "false", "open"),
        ("state.using == state.using", "true", "open"),
        ("state.a == state.b", "open", "false"),
        ("'y' in state.list", "false", "open"),
        ("state.row == ['x', 2]", "open", "false"),
        ("state.using < 'z'", "true", "open"),
    ] {
        assert_eq!((answer(text, &before), answer(text, &Scope::new())), (was, is), "{text}");
    }
}
