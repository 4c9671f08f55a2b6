use dendrer::Error;
use dendrer::ask::log::{Lanes, LogDetails, LogFilter, LogTerms, log};
use dendrer_view::answer::{ItemAnswer as _, Page, plain};
use dendrer_view::log::{LogAnswer, LogEnd};

use super::{NARROW, check, last_text, risky, trace};

fn terms(lanes: Option<Lanes>) -> LogTerms {
    LogTerms {
        newest: false,
        from: 1,
        to: 4,
        reverse: false,
        limit: 3,
        refusals: true,
        filter: LogFilter::default(),
        details: LogDetails::default(),
        lanes,
        folds: false,
    }
}

fn logged(terms: LogTerms, page: &Page) -> String {
    let store = risky();
    let trace = trace(&store, "risky");
    let mut answer = LogAnswer::new(trace.name().clone(), terms.details.whole);
    if let Some(lanes) = &terms.lanes {
        answer = answer.with_lanes(lanes.agents());
    }
    let mut text = String::new();
    let summary = log::<Error>(&trace, terms, &mut |item| {
        text.push_str(&plain(&answer.item_lines(&item, page)));
        Ok(())
    });
    answer.ends(LogEnd::Summed { summary: summary.unwrap(), found_intact: false, trust: None });
    text + &last_text(&mut answer, page)
}

#[test]
fn a_log_lines_its_columns_up_and_counts() {
    check(
        &logged(terms(None), &Page::WIDE),
        r#"
         tick  agent   type             conf  summary
            1  writer  observation.add  0.90  "step 1"
            2  reader  observation.add  0.90  "step 2"
            3  writer  observation.add  0.90  "step 3"
        3 of 4 transitions (use -n 0 for all), 2 agents, 0 anomalies"#,
    );
}

#[test]
fn a_cut_log_notes_it_before_the_sum() {
    check(
        &logged(terms(None), &NARROW),
        r#"
         tick  agent   type             summary
            1  writer  observation.add  "step 1"
            2  reader  observation.add  "step 2"
            3  writer  observation.add  "step 3"
        3 of 4 transitions (use -n 0 for all), 2
          agents, 0 anomalies"#,
    );
}

#[test]
fn lanes_are_drawn_from_data() {
    let store = risky();
    let lanes = Lanes::new(&trace(&store, "risky").at(4).unwrap().agents);
    check(
        &logged(LogTerms { limit: 9, ..terms(Some(lanes)) }, &Page::WIDE),
        r#"
        lanes   reader, writer
         tick       agent   type             conf  summary
            1    *  writer  observation.add  0.90  "step 1"
            2  * |  reader  observation.add  0.90  "step 2"
            3  | *  writer  observation.add  0.90  "step 3"
            4  *    reader  observation.add  0.90  "step 4"
        4 of 4 transitions, 2 agents, 0 anomalies"#,
    );
}

#[test]
fn a_filter_takes_only_matching_records() {
    let filter = LogFilter { text: Some(Box::new(|text| text == "step 2")), ..LogFilter::default() };
    check(
        &logged(LogTerms { filter, ..terms(None) }, &Page::WIDE),
        r#"
         tick  agent   type             conf  summary
            2  reader  observation.add  0.90  "step 2"
        1 of 4 transitions, 1 agent, 0 anomalies"#,
    );
}
