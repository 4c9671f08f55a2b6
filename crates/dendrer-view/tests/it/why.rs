use dendrer::ask::why::gather::{BacktrackTerms, backtrack, why};
use dendrer::why::Reach;
use dendrer_view::answer::{Answer as _, End, Page};

use super::{check, path, risky, text, trace};

#[test]
fn the_last_write_of_a_place_comes_with_its_inputs() {
    let store = risky();
    let reach = Reach { depth: 2, cross_agent: true };
    let answer = why(&trace(&store, "risky"), 4, &path("/notes"), reach).unwrap().unwrap();
    check(
        &text(&answer, &Page::WIDE),
        r#"
        ["note 1","note 2","note 3","note 4"] since tick 4  notes of risky
        tick 4  observation.add  reader  "step 4"
          notes: append "note 4"
          <- tick 3  observation.add  writer  built on what stood there (exact)
             "step 3"
             notes: append "note 3"
            <- tick 2  observation.add  reader  built on what stood there (exact)
               "step 2"
               notes: append "note 2"
        FIRST SEEN (heuristic)  "note 4": not before tick 4
        (stderr) note: --depth goes further back"#,
    );
    assert_eq!(answer.end(), End::Answered);
    assert!(why(&trace(&store, "risky"), 4, &path("/nothing"), reach).unwrap().is_none());
}

#[test]
fn writes_are_listed_newest_first_up_to_a_limit() {
    let store = risky();
    let question = BacktrackTerms {
        into_sources: false,
        along: None,
        path: path("/risk"),
        from: 1,
        to: 4,
        agent: None,
        limit: 2,
        values: true,
        inputs: false,
    };
    let mut answer = backtrack(&trace(&store, "risky"), &question).unwrap().unwrap();
    check(
        &text(&answer, &Page::WIDE),
        r#"
        ~ tick 4  reader  observation.add  0.8 -> 0.9
        ~ tick 3  writer  observation.add  0.6 -> 0.8
        2 of 4 writes (use -n 0 for all) in 4 ticks"#,
    );
    answer.hidden = vec![2];
    assert!(text(&answer, &Page::WIDE).ends_with("not known: what ticks 2 wrote was erased or withheld\n"));
    assert_eq!(answer.end(), End::Unknown);
}
