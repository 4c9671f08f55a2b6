//! Contracts by themselves as answers: the list of a store, one of them, and two compared.

use std::sync::Arc;

use dendrer::contract::compare::{ContractChange, Ranked};
use dendrer::contract::find::{ContractInForce, ContractPlace, FoundContract, Listing};
use dendrer::contract::terms::terms;
use dendrer::kernel::pack::Pack;
use dendrer_object::{RunName, TypeName, Value};

use super::{change_json, change_line, extension_json, extension_lines, listing_json, terms_json};
use crate::answer::{Answer, CUT, End, Line, Page, Style};
use crate::table::{Align, Table};
use crate::{count, document, quote};

impl Answer for Listing {
    fn document(&self) -> Value {
        listing_json(self)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let (left, right) = (Align::Left, Align::Right);
        let mut table = Table::new([
            ("contract", left),
            ("runs", right),
            ("types", right),
            ("violations", right),
            ("digest", left),
            ("newest run", left),
        ]);
        for listed in &self.packs {
            let pack = &listed.pack;
            table.row(vec![
                format!("{}/{}", pack.name, pack.version),
                listed.runs.len().to_string(),
                pack.contracts.types.len().to_string(),
                pack.predicates.len().to_string(),
                pack.digest().short(),
                listed.runs.last().map(RunName::to_string).unwrap_or_default(),
            ]);
        }
        let (rows, cut) = table.lines(page.width);
        let mut lines: Vec<Line> = rows.into_iter().map(Line::from).collect();
        let warn = |text: String| Line::styled(Style::Warn, "WARN").then(text);
        let title = |pack: &Pack| (Arc::clone(&pack.name), Arc::clone(&pack.version));
        let alike = self.packs.windows(2).filter(|pair| title(&pair[0].pack) == title(&pair[1].pack));
        lines.extend(alike.map(|pair| {
            let Pack { name, version, .. } = &pair[1].pack;
            warn(format!(
                "  {name}/{version} stands for packs that say different things; a run says which it means"
            ))
        }));
        let unreadable = self.unreadable.iter();
        lines.extend(unreadable.map(|(run, why)| warn(format!("  {run}: {}", quote::escape(why)))));
        let contracts = count(self.packs.len() as u64, "contract", "contracts");
        let without = count(self.without, "run", "runs");
        lines.push(format!("{contracts}, {without} without one").into());
        lines.extend(cut.then(|| Line::note(CUT)));
        lines
    }
}

/// A contract, or one type of it.
#[derive(Debug, Clone, Copy)]
pub struct ContractAnswer<'c> {
    /// The contract.
    pub found: &'c FoundContract,
    /// The only type that is shown; `None` for all.
    pub only: Option<&'c TypeName>,
}

impl Answer for ContractAnswer<'_> {
    fn document(&self) -> Value {
        let ContractInForce { pack, digest, extensions, marks } = &self.found.terms;
        let place = self.found.place.as_ref();
        let mut members = terms_json(&terms(pack, marks), self.only);
        members.push(("digest", Value::from(*digest)));
        members.push(("extensions", Value::array(extensions.iter().map(extension_json))));
        members.push(("run", Value::from(place.map(|place| place.run.as_str()))));
        members.push(("tick", Value::from(place.map(|place| place.tick))));
        members.push(("stage", Value::from(place.and_then(|place| place.stage))));
        document("contract", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let ContractInForce { pack, digest, extensions, marks } = &self.found.terms;
        let by = match pack.module() {
            Some(module) => format!("module {}", module.short()),
            None => count(pack.rules() as u64, "rule", "rules"),
        };
        let mut lines = vec![
            Line::styled(Style::Strong, self.found.terms.title()).then(super::words(pack.words.as_deref())),
            Line::from(format!("digest    {digest}")),
            Line::from(format!("reducer   {}, {by}", pack.engine.as_str())),
            Line::from(enforced_words(self.found.place.as_ref())),
        ];
        let extensions = extensions.iter().flat_map(extension_lines);
        let rest = extensions.chain(super::lines(&terms(pack, marks), self.only));
        lines.extend(rest.map(Line::from));
        lines
    }
}

fn enforced_words(place: Option<&ContractPlace>) -> String {
    let Some(ContractPlace { run, tick, stage }) = place else {
        return "enforced  from stage 2 on: what a type needs is looked at in the state before each commit"
            .to_owned();
    };
    match stage {
        Some(stage) if *stage >= 2 => format!(
            "enforced  in {run} at tick {tick}, recorded at stage {stage}: what follows was asked before each commit"
        ),
        Some(stage) => format!(
            "enforced  not in {run} (tick {tick}), recorded at stage {stage}: contracts are enforced from stage 2 on"
        ),
        None => format!("enforced  not known of {run} (tick {tick}): its stage cannot be read"),
    }
}

/// Two contracts compared.
#[derive(Debug, Clone, Copy)]
pub struct ContractDiffAnswer<'c> {
    /// The contract that is compared with.
    pub old: &'c FoundContract,
    /// The contract that is ranked.
    pub new: &'c FoundContract,
    /// The changes from the one to the other.
    pub changes: &'c [ContractChange],
    /// Whether a change makes the answer a no.
    pub fails: bool,
}

impl ContractDiffAnswer<'_> {
    fn ranked(&self) -> [u64; 3] {
        let ranked = |wanted| self.changes.iter().filter(|change| change.ranked == wanted).count() as u64;
        [ranked(Ranked::Stricter), ranked(Ranked::Looser), ranked(Ranked::Other)]
    }
}

impl Answer for ContractDiffAnswer<'_> {
    fn document(&self) -> Value {
        let side = |terms: &ContractInForce| {
            Value::record([
                ("name", Value::from(&*terms.pack.name)),
                ("version", Value::from(&*terms.pack.version)),
                ("digest", Value::from(terms.digest)),
                ("extensions", Value::array(terms.holding().map(|added| Value::from(&*added.id)))),
            ])
        };
        let [stricter, looser, other] = self.ranked();
        document(
            "contract-diff",
            [
                ("a", side(&self.old.terms)),
                ("b", side(&self.new.terms)),
                ("stricter", Value::from(stricter)),
                ("looser", Value::from(looser)),
                ("other", Value::from(other)),
                ("items", Value::array(self.changes.iter().map(change_json))),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let side = |terms: &ContractInForce| {
            let added = terms.holding().map(|added| format!(" + extension {}", quote::escape(&added.id)));
            format!("{} ({}){}", terms.title(), terms.digest.short(), added.collect::<String>())
        };
        let mut lines = vec![Line::from(format!("{} -> {}", side(&self.old.terms), side(&self.new.terms)))];
        lines.extend(self.changes.iter().map(|change| {
            let line = change_line(change);
            let (word, rest) = line.split_at(8);
            let style = match change.ranked {
                Ranked::Stricter => Style::Good,
                Ranked::Looser => Style::Warn,
                Ranked::Other => Style::Strong,
            };
            Line::styled(style, word).then(rest)
        }));
        let [stricter, looser, other] = self.ranked();
        lines.push(format!("{stricter} stricter, {looser} looser, {other} that cannot be ranked").into());
        lines.push(Line::note(match self.changes.is_empty() {
            true => "note: words and tests are not compared",
            false => "note: the second is ranked against the first; words and tests are not compared",
        }));
        lines
    }

    fn end(&self) -> End {
        if self.fails && !self.changes.is_empty() { End::No } else { End::Answered }
    }
}
