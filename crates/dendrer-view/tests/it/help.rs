use dendrer_object::{Code, Value};
use dendrer_object::{json, tag};
use dendrer_view::answer::{Answer as _, Page};
use dendrer_view::fields::FieldsAnswer;
use dendrer_view::help::{ExitCodesAnswer, ExplainAnswer, HelpAnswer};
use dendrer_view::schemas::{SchemaAnswer, SchemaListAnswer, find as schema, names};
use dendrer_view::version::VersionAnswer;

use super::{NARROW, check, text};

#[test]
fn code_is_explained_with_its_exit_code() {
    check(
        &text(&ExplainAnswer::Code(Code::E0104), &Page::WIDE),
        r#"
        E0104  Nothing stands at this path of the state.

        Paths are written `a.b[2]` or as a JSON pointer `/a/b/2`. `dendrer state RUN@TICK` shows the whole state.

        exit code 3"#,
    );
}

#[test]
fn codes_are_listed_and_counted() {
    let list = text(&ExplainAnswer::All, &Page::WIDE);
    check(
        &list.lines().take(2).collect::<Vec<_>>().join("\n"),
        r#"
        E0101  exit 3  There is no run of this name.
        E0102  exit 3  The run has no such tick."#,
    );
    let n = list.lines().count() - 2;
    assert_eq!(list.lines().last().unwrap(), format!("{n} of {n} codes"));
    let items = ExplainAnswer::All.document();
    assert_eq!(items.get("items").and_then(Value::as_array).unwrap().iter().count(), n);
}

#[test]
fn exit_codes_are_a_table() {
    check(
        &text(&ExitCodesAnswer, &Page { width: Some(60), ..NARROW }),
        r#"
        code  meaning                     for example
           0  done, or the answer is yes  onset found; intact
           1  done, the answer is no      bisect found no violation;
             another onset than expected; diff --exit-code differs;
             a case of a suite failed
           2  usage                       unknown flag, two that
             exclude each other, a text that is not JSON
           3  not found                   store, run, tick, path,
             file, predicate
           4  integrity                   content, chain, root, tip
             or signature is not what was committed
           5  refused for safety          an agent tried a type that
             is not its own; the run has ended or moved on
           6  unsound or unverifiable     bisect with a predicate
             that recovers; erased values, a missing prefix, an
             unknown key
           7  replay divergence           replay does not reproduce
             a recorded state
           8  environment                 disk full, store locked,
             newer format, no key, a command of fork --exec that
             failed
         130  interrupted                 safe at any time; nothing
           is left half-written
        of several answers the worst one counts: 4, then 7, then 6;
          each error's own code is in dendrer explain"#,
    );
}

#[test]
fn help_is_the_text_of_the_parser() {
    let verbs = vec![("log".to_owned(), "List transitions".to_owned())];
    let answer = HelpAnswer { verbs, text: "List transitions\n\nUsage: dendrer log\n".to_owned() };
    assert_eq!(text(&answer, &NARROW), answer.text);
    check(
        &answer.document().to_string(),
        r#"
        {"items":[{"about":"List transitions","verb":"log"}],"schema":"dendrer.help/1","text":"List transitions\n\nUsage: dendrer log\n"}"#,
    );
}

#[test]
fn fields_of_items_come_before_those_of_the_document() {
    let answer = FieldsAnswer { document: "labels" };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        id
        name
        run
        tick
        incomplete
        recorded
        tampered
        unfinished"#,
    );
    check(
        &answer.document().to_string(),
        r#"
        {"document":"labels","items":[{"name":"id","of":"items"},{"name":"name","of":"items"},{"name":"run","of":"items"},{"name":"tick","of":"items"},{"name":"incomplete","of":"document"},{"name":"recorded","of":"document"},{"name":"tampered","of":"document"},{"name":"unfinished","of":"document"}],"schema":"dendrer.fields/1"}"#,
    );
}

#[test]
fn schema_is_its_own_document() {
    for name in names() {
        let answer = SchemaAnswer(schema(name).unwrap());
        let printed = text(&answer, &NARROW);
        let read =
            json::parse_door(printed.as_bytes()).unwrap_or_else(|why| panic!("{name}: {why}\n{printed}"));
        assert_eq!(tag::undoubled(&read), answer.document(), "{name}");
        assert!(!printed.contains("\"$$"), "{name}");
    }
    assert!(schema("labels").is_some());
}

#[test]
fn schemas_are_counted() {
    let list = text(&SchemaListAnswer, &Page::WIDE);
    let names = names();
    assert!(names.is_sorted() && names.len() > 80);
    let n = names.len();
    assert_eq!(list, format!("{}\n{n} of {n} schemas\n", names.join("\n")));
}

#[test]
fn version_names_every_format() {
    let answer = VersionAnswer { program: "9.8.7" };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        dendrer 9.8.7
        formats   record 1, bundle 1, store 2, kernel 3"#,
    );
    check(
        &answer.document().to_string(),
        r#"
        {"bundle":1,"kernel":3,"record":1,"schema":"dendrer.version/1","store":2,"version":"9.8.7"}"#,
    );
}
