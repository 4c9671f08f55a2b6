//! The words of `verify`: the meaning of each, for `explain`.
//!
//! Rule: every word that a line can have is in the table; test `every_word_is_explained`.

/// A word of a line.
#[derive(Debug)]
pub struct WordEntry {
    /// The word.
    pub word: &'static str,
    /// The line that has it; empty for the verdict, and the word itself for a line.
    pub line: &'static str,
    /// Its meaning, and the next step.
    pub text: &'static str,
}

macro_rules! words {
    ($($line:literal $word:literal $text:literal)*) => {
        /// All words, in the order of the lines.
        pub const WORDS: &[WordEntry] = &[$(WordEntry { word: $word, line: $line, text: $text }),*];
    };
}

words! {
"" "VERIFIED"
"The record is INTACT, every record is here (COMPLETE), and something outside agrees up to the last tick that was asked about \
(WITNESSED). Exit code 0. It does not prove that inputs were true."
"" "INTACT"
"Every byte that is here is as it was sealed. Nothing is said of records that may be missing (line whole), nor of a rewrite by the \
holder of the key (line witness). Exit code 0; 6 with --require-complete or --require-witness if that does not hold."
"" "UNVERIFIABLE"
"Something that is needed is not here: a value that was erased or withheld, the beginning of a fork, a key, a module. Nothing that is \
here is wrong. Exit code 6."
"" "DIVERGED"
"Replay made another transition than the one on record. The message has both sides. Exit code 7."
"" "TAMPERED"
"A digest, a link, a delta, an author or a signature does not hold, or the log is not the one that a tip or this machine knows. What \
comes before the place is sound. Exit code 4."
"" "EQUIVOCATION"
"One key signed two histories: two logs show another record at one place, or a checkpoint that was given has another root. Which of \
the two was recorded cannot be known from them. Exit code 4."
"" "MALFORMED"
"The bytes are no bundle and no store: cut short, not canonical, or of another shape; or a record lacks a field of its kind, so that nothing \
behind it could be compared. It says nothing of who did it. Ask for the file again. Exit code 4."
"record" "record"
"The line says whether each byte, the chain, the tree, the maps, each delta against its state root and each author hold: INTACT, TAMPERED, \
MALFORMED or UNVERIFIABLE, with the place."
"whole" "whole"
"The line says whether every record is here: COMPLETE, or partial with the reason and the numbers."
"replay" "replay"
"The line says whether each transition was made again and came out the same: OK, NOT RUN, DIVERGED or UNVERIFIABLE."
"state" "state"
"The line says whether every place of the last state is known: KNOWN, or INCOMPLETE from a tick on, with the cause."
"signer" "signer"
"The line has the key that signs the log by its first digits, how much it signed, and whether this machine or --verifier knows it."
"witness" "witness"
"The line says whether something from outside agrees, and how far: a tip, a checkpoint or a key that was given."
"derived" "derived"
"The line says whether data that follows from the log fits it: the index. The verdict does not depend on it."
"compared" "compared"
"The line is there if a second log of the same key was given: same history, EQUIVOCATION or NOT COMPARED."
"notes" "notes"
"The lines have remarks on records that are no faults: stage_0, dated_back, untagged, adopted."
"record" "INTACT so far"
"Bytes, chain and tree hold. --quick left out whether each delta makes its state root, and whether each author may write what it wrote."
"whole" "COMPLETE"
"No record is missing up to the checkpoint: every entry of the signed log was read, or the map in the log counts as many records of \
the run as are here. It is complete by the signer's statement: a reader of all entries sees whether the map is true, and what was never \
committed is not in the log."
"whole" "partial"
"Records are or may be missing; the line says why, and how many are known to be. --require-complete makes this exit code 6."
"whole" "no_map"
"The reason for partial: entries are left out, or nothing is signed, and nothing that is signed counts the records of the run. An export \
where the key of the log is makes a map."
"whole" "after_map"
"The reason for partial: records of the run are, or may be, newer than what counts them: the map of a bundle, or the checkpoint of a \
store. Export again where the key of the log is; a store is signed by any commit or export with the key."
"whole" "missing"
"The reason for partial: fewer records are here than the map counts. The numbers say how many, by kind. Ask for the bundle again."
"whole" "apart"
"In --json, beside missing: the records of no run that are missing by the map, by kind: registrations, keys, erasures."
"whole" "parent_refusals"
"The reason for partial: the run branched off from another one, and the refusals of that one are not in the bundle. A bundle that is made \
of both runs has them."
"replay" "NOT RUN"
"The transitions were not made again. --replay does that."
"replay" "OK"
"Each transition was made again by the recorded reducer and is the same to the byte. On the line derived: the index says what the log \
says."
"state" "KNOWN"
"Every place of the last state is known."
"state" "INCOMPLETE"
"From the tick on, a place of the state is not known: a rule failed, a change is missing, erased or withheld, or the record does not hold."
"signer" "first"
"In --json, how the key came into force: the log was begun with it."
"signer" "unknown here"
"Neither this machine nor a key that was given knows the key that signed. Compare it with one that you have from elsewhere: --verifier KEY."
"signer" "changed without the old key"
"The key of the log was lost, and the record that is named puts another in its place without its signature. A reader who knows the old key asks \
the owner: a writer without that key can make the same record. docs/keys.md has an example."
"signer" "revoked from size"
"The key in force took back what this earlier key signed over larger logs: such a signature does not count."
"witness" "WITNESSED"
"A tip or a checkpoint that was given is on the chain, or a key that was given has signed as well. It holds up to the tick or the size \
that is named; RUN@TICK asks about that part alone."
"witness" "UNWITNESSED"
"Nothing from outside agrees, so a full rewrite by the holder of the key would not show. Keep a tip or a checkpoint on another machine \
and give it with --tip or --checkpoint. What this machine has signed is no witness: it lies with the key."
"derived" "damaged"
"The index says something else than the log, or cannot be read. It follows from the log, and the verdict does not depend on it. Rebuild \
it with `dendrer doctor --fix`."
"derived" "none"
"There is no data that follows from the log: a bundle has none, and a small store needs no index."
"compared" "same history"
"Two logs of one key are one history up to the size: every part of the log that both have is equal, up to the end of the shorter one."
"compared" "NOT COMPARED"
"Two logs of one key show no parts from which one of them could be seen to contain the other. --compare makes this exit code 6."
"notes" "stage_0"
"The run was recorded at stage 0: nothing was refused when it was made."
"notes" "dated_back"
"A record has an earlier time than one that stands before it in the log, by more than five minutes. The order of the log holds; the time \
is what the writer's clock said."
"notes" "untagged"
"A group after the newest checkpoint has no tag: its writer has neither the key of the log nor its writer's secret. The owner's next command is refused \
(E0814). `dendrer doctor --adopt -n` lists the records."
"notes" "adopted"
"Groups without a tag are signed: the holder of the key did that knowingly, with `dendrer doctor --adopt`. \
The record that is named has the reason."
"notes" "not_erased"
"A record says that this value was erased, and it is here: it was put back from a copy, or the erasure is under way. The verdict is \
INTACT at best. Erase the value again. In a bundle that is TAMPERED (E0317)."
"notes" "although"
"The exporter left values out of the bundle and these in, although they may follow from what was left out: what is here may tell what \
is not. The header of the bundle lists them, as `export --withhold --although` named them; no digest covers that list."
}

/// Returns the entry of a word, whatever its case.
pub fn word(text: &str) -> Option<&'static WordEntry> {
    WORDS.iter().find(|entry| entry.word.eq_ignore_ascii_case(text))
}
