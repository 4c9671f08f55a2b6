//! Answers as rows, text and documents; no terminal, no HTML, no files.
//!
//! Text of a trace may be hostile. Rule: it reaches lines only through [`quote`], and documents only as JSON values;
//! never format such a value directly.

pub mod answer;
pub mod ask;
pub mod backup;
pub mod bisect;
pub mod branches;
pub mod care;
pub mod casebook;
pub mod ccas;
pub mod certainty;
pub mod change;
pub mod cherrypick;
pub mod closed;
pub mod codes;
pub mod commit;
pub mod commitments;
pub mod compare;
pub mod conflicts;
pub mod contract;
pub mod contributors;
pub mod demo;
pub mod diff;
pub mod doctor;
pub mod erase;
pub mod export;
pub mod fields;
pub mod fork;
pub mod forms;
pub mod fsck;
pub mod gate;
pub mod gc;
pub mod graph;
pub mod graphs;
pub mod head;
pub mod help;
pub mod import;
pub mod init;
pub mod intent;
pub mod log;
pub mod mark;
pub mod merge;
pub mod pack;
pub mod predicate;
pub mod problem;
pub mod profile;
pub mod progress;
pub mod provenance;
pub mod quote;
pub mod rebase;
pub mod receipt;
pub mod reduce;
pub mod registration;
pub mod replay;
pub mod restore;
pub mod row;
pub mod runs;
pub mod schemas;
pub mod secrets;
pub mod show;
pub mod state;
pub mod steps;
pub mod suite;
pub mod table;
pub mod text;
pub mod verdict;
pub mod verify;
pub mod version;
pub mod why;

pub use dendrer_object::text::{count, thousands};

use dendrer_object::document::PublishedSchema;

/// The documents of each file that publishes some.
pub(crate) const DOCUMENTS: &[&[PublishedSchema]] = &[
    backup::DOCUMENTS,
    bisect::DOCUMENTS,
    branches::DOCUMENTS,
    casebook::DOCUMENTS,
    cherrypick::DOCUMENTS,
    commit::DOCUMENTS,
    commitments::DOCUMENTS,
    compare::DOCUMENTS,
    conflicts::DOCUMENTS,
    contract::check::DOCUMENTS,
    contract::extend::DOCUMENTS,
    contract::found::DOCUMENTS,
    contract::lint::DOCUMENTS,
    contract::suggest::DOCUMENTS,
    demo::DOCUMENTS,
    diff::DOCUMENTS,
    doctor::DOCUMENTS,
    erase::DOCUMENTS,
    export::DOCUMENTS,
    fork::DOCUMENTS,
    fsck::DOCUMENTS,
    gate::DOCUMENTS,
    gc::DOCUMENTS,
    graphs::DOCUMENTS,
    help::DOCUMENTS,
    import::DOCUMENTS,
    init::DOCUMENTS,
    log::DOCUMENTS,
    merge::DOCUMENTS,
    pack::DOCUMENTS,
    predicate::DOCUMENTS,
    problem::DOCUMENTS,
    profile::DOCUMENTS,
    progress::DOCUMENTS,
    rebase::DOCUMENTS,
    reduce::DOCUMENTS,
    replay::DOCUMENTS,
    restore::DOCUMENTS,
    runs::DOCUMENTS,
    schemas::DOCUMENTS,
    secrets::DOCUMENTS,
    show::DOCUMENTS,
    state::DOCUMENTS,
    steps::DOCUMENTS,
    suite::DOCUMENTS,
    verify::DOCUMENTS,
    version::DOCUMENTS,
    why::DOCUMENTS,
];
