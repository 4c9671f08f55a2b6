//! Texts about published runs have every value and every place of their documents.

#![cfg(unix)]

use super::data::{Domain, corpus};
use super::import_as;
use crate::all_shown::{Asked, check, part, questions};
use crate::support::Place;

/// How many runs of each domain are asked about.
const RUNS: [(Domain, usize); 6] = [
    (Domain::Airline, 3),
    (Domain::Retail, 3),
    (Domain::Banking, 4),
    (Domain::Slack, 4),
    (Domain::Workspace, 3),
    (Domain::Log, 3),
];

/// Reduces runs under the packs of their domains; a database of a shop has no place in a page and is left out.
#[test]
fn each_value_of_the_corpus_is_in_its_text() {
    let Some(corpus) = corpus() else { return };
    let place = Place::with_store();
    let mut names = Vec::new();
    for (domain, count) in RUNS {
        let runs = corpus.runs(domain);
        let all: Vec<usize> = (0..count).map(|at| at * runs.len() / count).collect();
        for at in part(&all, 3) {
            let run = &runs[at];
            let name = format!("{}-{at}", format!("{domain:?}").to_lowercase());
            match domain {
                Domain::Banking | Domain::Slack | Domain::Workspace | Domain::Log => {
                    let source = format!("{name}-source");
                    import_as(&place, domain, &run.path(), domain.s0(run), [&source, &name]).unwrap();
                }
                Domain::Airline | Domain::Retail => {
                    place.ok(&["import", run.path().to_str().unwrap(), "--run", &name, "-q"]);
                }
            }
            names.push(name);
        }
    }
    let asked = Asked { dir: place.path().to_owned(), home: place.path().to_owned() };
    check(&asked, &questions(&asked, &names, 4, 8));
}
