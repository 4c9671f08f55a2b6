//! Every code that dendrer prints: its meaning, the remedy, and the exit code of a command that ends with it.
//!
//! Rule: the table has every code of [`Code::ALL`], in that order; test `the_table_has_every_code_in_order`.

use dendrer_object::Code;

/// One code, explained.
#[derive(Debug)]
pub struct CodeEntry {
    /// The code.
    pub code: Code,
    /// The exit code of a command that ends with it.
    pub exit: u8,
    /// One sentence.
    pub title: &'static str,
    /// Its meaning, and the remedy.
    pub text: &'static str,
}

/// One exit code of the program.
pub struct Exit {
    /// The number.
    pub code: u8,
    /// Its meaning, in a few words.
    pub meaning: &'static str,
    /// Examples of commands that end with it.
    pub examples: &'static str,
}

/// All exit codes, in order.
pub const EXITS: &[Exit] = &[
    Exit { code: 0, meaning: "done, or the answer is yes", examples: "onset found; intact" },
    Exit {
        code: 1,
        meaning: "done, the answer is no",
        examples: "bisect found no violation; another onset than expected; diff --exit-code differs; a case of a suite failed",
    },
    Exit {
        code: 2,
        meaning: "usage",
        examples: "unknown flag, two that exclude each other, a text that is not JSON",
    },
    Exit { code: 3, meaning: "not found", examples: "store, run, tick, path, file, predicate" },
    Exit {
        code: 4,
        meaning: "integrity",
        examples: "content, chain, root, tip or signature is not what was committed",
    },
    Exit {
        code: 5,
        meaning: "refused for safety",
        examples: "an agent tried a type that is not its own; the run has ended or moved on",
    },
    Exit {
        code: 6,
        meaning: "unsound or unverifiable",
        examples: "bisect with a predicate that recovers; erased values, a missing prefix, an unknown key",
    },
    Exit { code: 7, meaning: "replay divergence", examples: "replay does not reproduce a recorded state" },
    Exit {
        code: 8,
        meaning: "environment",
        examples: "disk full, store locked, newer format, no key, a command of fork --exec that failed",
    },
    Exit { code: 130, meaning: "interrupted", examples: "safe at any time; nothing is left half-written" },
];

macro_rules! codes {
    ($($code:ident $exit:literal $title:literal $text:literal)*) => {
        /// All codes, in order.
        pub const CODES: &[CodeEntry] =
            &[$(CodeEntry { code: Code::$code, exit: $exit, title: $title, text: $text }),*];
    };
}

codes! {
E0101 3 "There is no run of this name."
"Runs are named by their id, by `@` for the latest, by a bundle file, or by the first hex digits of a record's id. \
`dendrer runs` lists them."
E0102 3 "The run has no such tick."
"Ticks count from 1; tick 0 is the initial state. `RUN@tip` is the last one, `RUN@-1` the one before it."
E0103 3 "No store was found."
"A store is a `.dendrer` directory, found by walking up from the current one. `dendrer init` makes one here, \
`dendrer demo` makes one full of examples, `--store DIR` or DENDRER_STORE names one elsewhere. Where a restore was cut off, \
run it again, or move .dendrer.replaced back to .dendrer."
E0104 3 "Nothing stands at this path of the state."
"Paths are written `a.b[2]` or as a JSON pointer `/a/b/2`. `dendrer state RUN@TICK` shows the whole state."
E0105 2 "This is not an address."
"An address is RUN, RUN@TICK, RUN@-N, RUN@tip, RUN@fork, RUN@onset, @ (the latest run), or a file.dnd with #RUN and @TICK behind it."
E0106 2 "The command line is not one that dendrer knows."
"`dendrer help` and `dendrer VERB --help` show what there is."
E0107 3 "More than one thing begins like this."
"Give more characters."
E0108 3 "A file cannot be read."
"Check the name and the permissions."
E0109 3 "There is no such code or schema."
"`dendrer explain` and `dendrer schema` without an argument list all of them."
E0110 2 "There is a store already."
"dendrer never writes over one. Choose another directory."
E0111 2 "There is a run of this name already."
"A run's name is part of its history and is used once. Choose another, or leave out --new to go on with the run."
E0112 2 "There is a file already where the key was to be written."
"A key is never written over: what it signed could not be told from what another signed. Name another file."
E0113 5 "What is there is not an earlier backup of this store."
"A backup goes on from one that is the beginning of the same log, and whole. Nothing was changed. Make a new one in another \
directory; if the store was rolled back, the backup has more than it and is what to keep."
E0114 5 "The store there has records that the backup does not have."
"Nothing was changed. Back that store up first, or restore into another directory. With --replace --discard-newer it is moved \
aside and the older log takes its place; where the newer one was signed, the older one is read and never written to."
E0115 2 "The directory has something else in it."
"A backup or a store is made in a directory that is new or empty."
E0116 2 "Nothing in the run enforces this value."
"KEY=VALUE changes a constant of the run's pack, or a place of the state that one of its policy rules reads. The message names \
what there is. Words for the agent are written without \"name =\"; a place of the state that no rule reads is changed by --set."
E0117 2 "There is no answer of a tool that could be replaced."
"What is replaced is an action.result or an observation.add behind the fork. In a run whose agents bring the change of state, the \
file holds \"output\" and \"delta\"; in one with rules, the output alone."
E0118 2 "Two engines do not take the same intents."
"What recorded intents bring and what rules make of them mean something else to another engine. Reduce the run again under that \
pack with `dendrer reduce`, and fork what comes of it."
E0119 2 "The run has no intents that could be proposed again."
"A rebase takes what a run owns: of a fork what follows its marker, of another run all of it. Name the run that went on."
E0120 3 "There is no label of this name, or nothing was written down about it."
"`dendrer label` lists the labels of the casebook; `dendrer label NAME RUN@TICK` makes one. RUN@onset is the onset of the last \
bisect of the run with --record."
E0121 3 "No type, agent or kind of anomaly has this name."
"A name is declared by the kernel, by the pack in force, or by a record of the run that is asked. A name that none of them has \
would match nothing, and an empty answer would read like a result. The message names what was probably meant."
E0122 2 "The run is dropped already, or is not dropped."
"A dropped run is left out of `dendrer runs`, and nothing else: every verb reads it by its name, and `verify` checks it. `dendrer runs --all` shows which runs are dropped; `dendrer runs drop RUN --undo` takes one back."
E0123 2 "The server does not take this request."
"`dendrer serve` answers requests that have its token, come from its own page or from a program on this machine, and are of the \
routes in /openapi.json. It writes with --allow-write alone. The message names what the request lacks."
E0201 2 "A text is not JSON."
"The message names the byte. One intent stands on each line. NaN, Infinity and lone surrogates are accepted and kept."
E0202 2 "A name stands twice in one object."
"Readers would disagree on which of the two counts, so neither is taken."
E0203 2 "It cannot be told what kind of trace this is."
"A chat is a list of messages, each an object with a `role` and a `content` or calls: the file itself, one of its \
members, or one message a line. For anything else say --kind jsonl and give a --map; docs/import.md shows both."
E0204 2 "A value is nested too deep."
"At most 128 levels of arrays and objects are accepted, in one document and in a state."
E0205 2 "A value is too large."
"One value may have 64 MiB in canonical form. Keep the data in a file and record its digest."
E0206 2 "Bytes are not UTF-8."
"Bytes are recorded as {\"$bytes\":\"<base64url>\"} with `commit --tagged`."
E0207 2 "A number is beyond the range of a double."
"Integers of any size are kept digit for digit; a fraction or exponent makes a double, which ends at about 1.8e308."
E0208 2 "A tagged value is not one of the format's."
"With `--tagged`, a name with one `$` in front is a tag: $float, $bytes, $wtf8, $object, $gap, $redacted, $vault. \
A name of your own that begins with `$` is written with two."
E0209 2 "A value is not an intent, a delta or a state."
"An intent is an object with a `type` and any of agent, goal, intent, action, result, policy, metrics, anomalies, \
delta, effect, links. `dendrer schema intent` prints its schema."
E0210 2 "A name is not one of its kind."
"Run ids are letters, digits, `.`, `_` and `-`; transition types are lower-case words joined by dots."
E0211 2 "A record would have too many fields."
"At most 1,024 fields are committed one by one. Put the data one level deeper."
E0212 2 "A trace holds several lists or runs, or not the one that was asked for."
"Nothing is guessed. Choose with --index N among several runs, and with --messages POINTER among several lists."
E0213 2 "Something is missing in a trace, and that was to stop the import."
"A call without a result, a result without a call, a message that cannot be read. With --on-gap mark, which is the \
default, it is marked in the transition it concerns and everything else is imported."
E0214 2 "The same trace is in the store already."
"A run remembers the SHA-256 of what it was imported from, and which part of it. --again with another --run imports it \
once more."
E0215 2 "A mapping is not one."
"A mapping has the shape of an intent; where that has a value, it has a pointer into the line, {\"const\": VALUE} or \
{\"from\": POINTER, \"words\": {WORD: VALUE}}. docs/import.md has examples."
E0216 8 "The source changed while it was imported."
"It was read once to be checked and once to be recorded, and the bytes were not the same. What was recorded is not the \
whole; import a copy that nobody writes to."
E0301 4 "Content does not match the hash that was recorded for it."
"Somebody or something changed the record after it was sealed. What comes before it is sound; what comes after \
rests on it. Compare with another copy."
E0302 4 "The chain of a run has a gap, a repeat, or a wrong predecessor."
"Every transition names the one before it and ticks have no gaps, so something was removed, moved or put in."
E0303 4 "The log is not the one its root or its signed checkpoint speaks of."
"An entry of the log was changed, removed or put in, or the checkpoint belongs to another history."
E0304 4 "The record is consistent with itself, but it is not the one you know."
"This is what a run looks like that was rewritten as a whole, with every hash computed anew."
E0305 4 "Bytes of the store are not what was written."
"A file was damaged or edited. The store opens for reading only; nothing is repaired quietly. What still verifies \
can be exported."
E0306 4 "A text is not in the one form that the format has for it."
"Bundles, and what is remembered here of a log, are read to the byte: whatever writing would not give is refused. The message \
names the line or the file."
E0307 4 "Something remembers more than the log holds, or something else."
"A checkpoint, an index or a pinned head knows of records that are not there: the log was cut, rolled back or \
replaced. This is evidence, so nothing is rebuilt over it."
E0308 4 "A signature or a key does not fit."
"The checkpoint was not signed by the key that the log names, or another key was expected."
E0309 4 "The index says something else than the log."
"The index is derived. Delete index.sqlite and it is made anew from the log."
E0310 6 "The beginning of a fork is not here."
"A fork shares its first ticks with its parent. A bundle of the fork made in the original store contains them."
E0311 6 "A value that is needed was erased or withheld."
"Its commitment is still there and verifies; what it committed to cannot be shown or computed with."
E0312 6 "Records are or may be missing, and all of them are asked for."
"Fewer records are here than the map counts, or no map counts them, or records are newer than the map or the checkpoint. The line \
whole of verify names the runs and the numbers. A gate over such a run is open, since what is missing may break it; what only shows \
warns. What an import lacks stays on record in the run. Verify the store itself, or ask for a new bundle, made where the key of the log is."
E0313 6 "No witness agrees up to the last tick that was asked about, and --require-witness asks for one."
"A witness is a tip (--tip) or a checkpoint (--checkpoint) that was kept elsewhere. What this machine has signed is none: it lies \
with the key. An older tip is good up to its tick: ask about that with RUN@TICK."
E0314 6 "Two logs cannot be compared, and --compare asks for it."
"They have no key in common, or show no part of the log from which one of them could be seen to contain the other. A bundle of \
the whole store, or a checkpoint of the same size, can be compared."
E0315 6 "There is no bundle in the page."
"A page that was exported with --no-bundle, or another page of HTML, has no records, so nothing in it can be checked. Ask the \
sender for the bundle, and compare its tip with the one that the page shows."
E0316 4 "A map does not count what the log has."
"A map counts the records of each run, and a bundle has the path to the runs that it is of. One of them was changed, is that of another \
log, or counts more or fewer records than there are."
E0317 4 "A value is here that the log says was erased."
"An `erase` record names the field, and a value that fits its digest stands in the file: it was put back from an older copy, or the erasure \
was only said. Nothing else is wrong with it. Destroy the file, and ask for one that was made after the erasure."
E0401 5 "A type was proposed that only the kernel or the institution writes."
"The intent is kept as a refusal, and a kernel.anomaly that names it is the next transition of the run."
E0402 5 "There is no such transition type."
"The types are observation.add, plan.update, action.request, action.result, memory.write, policy.decision, anomaly.flag \
and goal.complete, and those that the pack of the run registers (`dendrer contract show RUN`). A message or a remark is an \
observation.add, a call of a tool an action.request, its answer an action.result. `dendrer schema intent` lists all types, \
with an example each. The intent is kept as a refusal."
E0403 5 "An agent proposed what its runtime must write."
"Tool results and policy decisions come from the program that runs the agent: write \"author\":\"runtime\" in the \
line, or commit with --as runtime. An agent that wrote its own policy decisions would defeat them."
E0404 5 "The change of state does not fit the state."
"From stage 2 on such an intent is refused. Below, it is committed without a change and the anomaly is noted."
E0405 5 "Only the kernel writes there."
"`kernel_anomalies`, `policy` and `progress` in the state, and some kinds of anomaly, are the kernel's. So is the name \
`counters`: state.counters in an expression reads what is counted beside the state."
E0406 5 "The run has ended."
"Nothing is added to a run that was closed. Fork it to go on."
E0407 5 "Someone else moved the run on."
"What was proposed was decided on an older head. Read the run again, then decide; nothing retries by itself."
E0408 5 "That author is not yours to be."
"`commit` writes for agents and for the runtime. System transitions are made by the kernel alone. An intent that claims to \
be the kernel's or the institution's is kept as a refusal, with the claim in its reason."
E0409 5 "Nothing is added to an imported run."
"Each of its ticks is one message of its source. Go on in a run of your own: `dendrer reduce RUN --pack FILE --as NEW` makes \
one with the same transitions."
E0411 5 "The state does not have what a contract requires."
"From stage 2 on, a type with a contract is committed only where every field in its required_state is there, of its kind, and not \
null unless it is nullable. Nothing that the model says is looked at. The message names the fields."
E0412 5 "The target does not have what the transition was decided on."
"Each required field is compared by its rule: what seeds the hash must be equal, what else is required must be there, unless the \
contract says otherwise. There is no way around it: decide again under the target's state, or bring what is missing in first."
E0413 5 "The context hash of the source does not hold."
"HASH_UNDERSPECIFIED: it must be the one that the state before the transition gives, with every field that the contract requires, \
values included. One that was made of another state justifies nothing."
E0414 5 "Source and target are under different contracts."
"Name and version are checked before any field, then what the contract says. Import from a run under the same one, or fork the \
target with --contract."
E0415 5 "There is no contract for this type."
"What no contract names cannot be checked, and what cannot be checked is not imported. Add the type to `contracts` of the pack."
E0416 6 "The transition has no context hash."
"Contracts are enforced, and context hashes made, from stage 2 on. A run of an earlier stage can be forked and diffed, and nothing \
is imported from it. Record at stage 2: dendrer commit --stage 2 --pack FILE."
E0418 5 "This tick is none that can be imported."
"The beginning of a run, and what the kernel wrote about it, belong to that run alone."
E0419 5 "The import would bring about what its contract says must never happen."
"A violation predicate of the pack would be violated, or could not be judged any more, in the target. Nothing was committed."
E0420 5 "This is not an extension of the contract."
"An extension names target_contract and effective_from_tick, and adds something: adds_required, adds_hash_seeds or adds_violations, \
for the `types` it names or for every type with a contract. What comes out is checked like any pack."
E0421 5 "An extension cannot take effect in the past."
"What was committed was judged by the contract of its time, and stays so. An extension holds from the transition behind its own on, or from a later one."
E0422 5 "An extension needs an approver."
"Somebody answers for a change of the contract: --approved-by NAME, or approved_by in the file. The model cannot."
E0423 5 "The approval is not one that the contract accepts."
"A pack that names `approvers` takes extensions that one of them signed with their key: sign the text under `to sign` as a signed \
note, and give it with --signature FILE; or sign here with --approver-key FILE."
E0424 5 "The casebook takes findings, labels and notes, and nothing else."
"The run `casebook` of a store is for what people and analyses found: bisect --record, diff --record, label, note. Nothing else is \
added to it, no other run is made of it, and none has its name."
E0425 5 "The pack says nothing about this type."
"At stage 3 the pack gates all transitions: a type has a rule, a contract, or an entry under `types`. The intent is kept as a refusal."
E0426 5 "The pack declares no such tool."
"At stage 3 each tool is declared under `tools` with its effect: read, idempotent_write or effectful. The intent is kept as a refusal."
E0427 5 "The author of a line may not write one of its members."
"What is on record as judged was judged: `policy` and `anomalies` are written by kernel and runtime, `result` belongs to an \
action.result, metrics are numbers of 0 or more, a policy.decision has a decision, and the class of a tool is the one that the pack declares. The line is kept as a refusal, and a \
kernel.anomaly names what an agent tried. The types are listed by `dendrer schema intent`, the members in docs/recording.md."
E0428 5 "A rule of the contract cannot be judged after this proposal."
"At stage 3 a proposal is refused if it changes what a violation or policy rule reads, and the rule can then not be judged: a place is \
missing, of another kind, or unknown. What happened already is committed with the anomaly cannot_be_judged. Write the missing place \
first, or guard it in the rule with has(...) or `in`; `dendrer contract lint` finds such places."
E0429 5 "The proposal would violate what the contract enforces."
"A violation or policy rule with `enforce: true` is judged on the state that would follow, at stages 2 and 3. The refusal names the \
rule and the values that it reads. What happened already is never refused: it is committed, and the violation is put on record."
E0430 5 "The pack gives the place to other writers."
"A field with `writers` is written by transitions of those types or authors alone, at stages 2 and 3. The intent is kept as a refusal."
E0431 3 "No run of the store is under a contract of that name and version."
"`dendrer contract list` lists those that are there. A pack in a file is named by its path, the contract in force at a tick of a \
run by RUN@TICK."
E0432 2 "A name and version stand for several contracts."
"Two packs that say different things carry one name and version. Name a run instead: RUN or RUN@TICK means the one in force there. \
Whoever changes a pack gives it another version."
E0433 5 "The key of the line is the key of another transition of the run."
"A key stands for one line, so that a line can be sent again after a lost answer: the same line is answered with the tick of the first one, and a line \
that says something else is not taken. Nothing of it is on record. Give it a key of its own."
E0434 5 "The new run would begin with a state that breaks a rule."
"A policy rule or a violation predicate is violated in the state that the run begins with, and in no source of it. At stages 2 and 3 \
nothing is begun; below, the answer names the rules. A fork is refused as well if a rule with `enforce: true`, at stage 3 any rule, cannot be \
judged because of what it sets. Decide the values first, or begin it all the same with --although REASON, which is \
put on record."
E0435 5 "A request repeats a call that was denied, or whose escalation is open."
"A decision on record binds: the same tool with equal parameters is refused from stage 2 on, until a decision `allow` of the same rank or a \
higher one names the denied request (`links` with `caused_by`). A merged run and a child know the denials of the runs that they continue \
(tick 0; `denied` in the record of the run). `dendrer show RUN@TICK` shows the decision."
E0436 5 "A number is finer than the field to which it is added."
"The pack declares decimals for the field, and a sum that is rounded at each step would lose it. Declare more decimals, or add an amount \
that has these decimals."
E0437 5 "An action names a tool beside a list of calls."
"One call is `{{\"tool\":..,\"params\":..}}`, several are `{{\"calls\":[..]}}`: with both, readers would not agree on what was asked for."
E0438 5 "A name looks like another one."
"The name of a tool, an agent or a commitment mixes scripts, or is one that the pack declares but for case, blanks, invisible characters \
or letters that look alike. At stage 3 it is refused, below it is noted. Names are shown with their escapes."
E0441 2 "These runs, or this place, cannot be merged."
"A merge takes 2 to 16 runs, none of them twice at one tick, and seeds at most 10,000 places. What the kernel writes, and what stands in a list, is not seeded by itself."
E0442 5 "The runs are under different packs or policy rules."
"One run has one pack and one set of rules. --seed-only takes the values alone, into a run without either."
E0443 5 "A conflict cannot stay open where only rules change the state."
"Nobody could put a value in later. Choose a --strategy, other places with --artifact, or --seed-only."
E0444 3 "The run was not made by a merge, so it has no conflicts."
"`dendrer merge` says in the `meta` of the run it makes what that was seeded from. Forks of such a run have it, too."
E0445 3 "There is no such conflict, or no such side of it."
"`dendrer conflicts list RUN` shows them all. Sides are a, b, ... in the order in which the runs were named, or the names of the runs."
E0446 5 "The conflict is settled."
"It was resolved, or the strategy of the merge decided it, or something wrote its place since. What follows is a change like any other."
E0447 5 "A run that is to be merged has an open conflict of its own."
"What nobody decided would be taken for absent. Decide it first: dendrer conflicts resolve RUN PLACE --take a --reason TEXT."
E0451 5 "An action violates a commitment that binds."
"`dendrer commitments why RUN ID` says who is behind it. Propose another action; or let an author with the rank close the commitment. At stages 0 and 1 the action is committed and noted."
E0452 5 "An action is outside of the scope that was delegated."
"The contract in the `run` record names the tools, files and budget that are allowed; it permits nothing once it was retracted or discharged in the parent, or its time has passed. A call that shows no file where files are limited is refused too: say where the tool names its files (`tools: {T: {files: [/params/path]}}` in the pack or the scope, `[]` for none). Let the parent do it, or delegate a wider scope."
E0453 5 "An action relies on what no longer stands."
"A commitment in `intent.relies_on` is stale, retracted or superseded. Support it again by an edge with newer evidence, or leave it out."
E0454 5 "A line brings what the kernel derives."
"Who says a piece of evidence, when, and who attests it follows from author and type of the transition. Leave the member out; the line was refused, and the refusal is kept."
E0455 5 "A commitment is closed by an author without the rank of its owner."
"A run by version 1 of the kernel's rules refuses the line: user and policy come before a parent, a parent before an agent. A newer run takes \
the line, and the closing has no effect: `dendrer commitments RUN` lists it as claimed. Let the owner close it."
E0456 5 "The result of a delegation was not accepted."
"An action of the child violates a commitment that was handed over, or something that was to be delivered is missing. `dendrer commitments accept CHILD -n` names each reason, with run and tick, without a record."
E0457 1 "The hard commitments that are active do not fit into the budget."
"None of them is left out silently. Raise --budget, or narrow the scope."
E0461 2 "No chain can have this id."
"An id of a chain names a file: it is not empty, and has no `/`, `\\\\`, `..` or zero byte. A path to a file is taken as well, if the file is there."
E0462 4 "A row of a chain says another hash than it has."
"The row was changed after it was written, or written by a program with another form. Its values are kept where gaps are marked \
(`--on-gap mark`). `dendrer verify FILE --profile carl` lists all such rows."
E0463 5 "A step recorded here is of an extension."
"Sixteen types of steps are closed; readers of that form know no others. `--with carl-core/0.2` names the extension and exports the step."
E0464 6 "No step is of the type that the expression asks for."
"A gate never passes on nothing. `dendrer steps RUN --stats` lists the types of steps that there are; `--allow-empty` lets a gate over none pass."
E0465 6 "The exact value is in the vault, and its key is not here."
"UNAVAILABLE: the record has a commitment to the value, and its bytes are encrypted in the store. The key of the vault is a file beside the \
signing key. Without it, or once it was destroyed, the bytes cannot be read; all else of the record can."
E0466 5 "The value was erased before."
"Nothing of it is left to erase. `dendrer show RUN@TICK` lists the fields of the transition that are not known."
E0467 5 "Places may contain the value or follow from it, and were not named."
"Whether a text that was written after the value follows from it is not on record. Nothing was erased, and no file written. Read the \
places, then name each of them: with --also PLACE it goes as well, with --although PLACE it stays, and the erase record or the header of \
the bundle lists it."
E0468 6 "A file begins behind a row that is in none of the files."
"Its rows are sound among themselves; the rows before it, or the header that they followed, are missing, so the chain is neither whole \
nor known to be changed. `dendrer verify OLDER.jsonl NEWER.jsonl --profile carl` joins the files of a chain that was rotated."
E0469 5 "Tools inside the program would act again."
"The record has results of tools that the program itself brought: a replay serves what models said, and the program calls its tools again. Look at \
what they do, and then allow it with `--tools run`. The program was not started."
E0501 2 "An expression does not parse."
"Expressions are a subset of CEL: state.a.b, literals, comparisons, && || ! (or and, or, not), has(), in, size(), \
arithmetic."
E0502 2 "An expression has a part of the wrong type."
"What the text alone decides is checked when it is read: types of literals, numbers of arguments, and that a predicate \
is true or false."
E0503 1 "The predicate is not prefix-monotone."
"Once violated it was ok again on a sample run, so binary search could return a wrong tick. It is kept under its name, \
for monitoring and diff, and bisect refuses it on the runs where it recovers. `--lift monotone` asks for the first violation."
E0504 6 "The predicate recovers on this run, so it has no onset to bisect for."
"Halving would return some tick, and a wrong one would look like a right one. The turning ticks are listed. Ask for \
the first violation with --lift, or with a predicate that cannot recover; `dendrer predicate test` shows every stretch."
E0505 2 "An expression uses a name that nobody declared."
"Expressions know `state`. A bare word is a constant of a pack, or a slip."
E0506 2 "The language does not have this."
"What CEL has and dendrer leaves out, and names that do not exist, are refused when an expression is read."
E0507 2 "Division of values from the state is refused."
"`/` means two things in CEL. Write div(a, b), or double(a) / double(b)."
E0508 2 "An expression is too long, too deep or has too many parts."
"The limits are 64 KiB of text, 64 levels and 10,000 nodes, so that a verdict is the same on every machine."
E0509 6 "The predicate cannot be judged at a tick."
"A field is missing or of another type there, or the step budget ran out. Uncertain is never taken for ok; \
`has(state.x) && ...` says what should count."
E0510 1 "The onset is not the one that was expected."
"`--expect-onset` is for checks in CI."
E0511 3 "There is no such predicate."
"`kernel.anomaly_free` and `kernel.policy_compliant` are always there; `dendrer predicate list` shows what is registered, \
`dendrer pack show` what a pack declares. Anything else is an expression over `state`."
E0512 2 "A file or a value does not describe predicates."
"A predicate has a name and exactly one of `holds` (what must be true) and `condition` (the violation), and may have \
words, version, window (`after` or `before`) and lift (`monotone`). A file of several is {\"predicates\":[...]}, or a pack."
E0513 2 "This is not a name for a predicate."
"Words of letters, digits, `_`, `-` and `/`, joined by at least one dot, at most 128 bytes, like `acme.tax_compliance_v2`. \
`kernel.` and `state.` are taken."
E0514 2 "There is another predicate of this name and version."
"A version is used once; what was registered stays as it was. Choose another, or leave --version out."
E0515 3 "The pack of the run declares no such score."
"`progress`, `constraint_satisfaction` and `skeptic_survival_rate` are made of what a pack declares under `progress`, and any other score \
is one of its `progress_contracts`. Hard predicates need none of them: dendrer bisect RUN --predicate kernel.anomaly_free."
E0520 2 "A file is not a WebAssembly module that is run here."
"A core module without imports, start function, shared memory or vectors; it exports `memory`, `alloc` and `evaluate` (a predicate) \
or `reduce` (a reducer), and keeps to limits in bytes, instructions and items that are looked at before anything of it is compiled. docs/wasm.md has all of them."
E0521 6 "A module was stopped by a limit, so it gave no verdict and changed nothing."
"It ran out of fuel, of stack or of memory, or its input is too long. Engines count differently, so this is neither ok nor a \
violation, neither a transition nor a refusal, and nothing of it is kept; what was committed or imported before it stays. Make the \
module do less, or ask of fewer ticks; where it reduces, give it less: a smaller intent, or a state that does not grow without end."
E0540 6 "More stands before an onset than is searched for its contributors."
"At most 100,000 transitions are reduced again. Leave --contributors out; `dendrer why` and `dendrer backtrack` follow one value."
E0541 6 "Contributors are looked for of predicates that one state decides."
"An obligation, or a predicate that is looked for at some types of transitions alone, is judged over the run. Leave --contributors out."
E0601 6 "This store cannot do that."
"A bundle is for reading. Import it into a store to go on from it."
E0602 6 "The run was recorded by rules that this program does not have."
"Another version of the kernel, a reducer of a host program, or a fork. Its bytes can be verified and its states read; \
only replay and going on need those rules. Use the program that recorded it."
E0603 6 "Two runs cannot be lined up by content: they are too long, or differ by too much."
"At most 1,000,000 transitions behind the shared ones are lined up, as long as no more than about 15,000 of them differ. \
`--align tick` has no limit; RUN@TICK ends a run earlier."
E0604 2 "The stage asks for more than the run begins with."
"Stage 3 needs a pack, and each of its predicates known not to recover or with `bisect_predicate: monotone_lift`. Stages 0 to 2 need less: \
dendrer commit --stage 2."
E0701 7 "Replay does not reproduce the record."
"The message says where and shows both sides. The usual causes are a clock, chance, an unordered set, or a reducer \
that changed."
E0702 7 "A recorded answer that replay needs is not there."
"In replay no tool is called. The call is keyed by tick, place, tool and parameters."
E0703 7 "A recorded change does not fit the state before it."
"The record cannot have been made by the kernel of its version."
E0704 2 "Only a tool that reads is executed again."
"A tool that writes or acts would change the world a second time. The pack of the run says which tools read; every other one counts \
as effectful. The recorded answer is used."
E0801 8 "The system refused to read or write."
"Disk full, permissions, a device that is gone. Nothing acknowledged is lost; what was not acknowledged was not \
recorded."
E0802 8 "Another process is writing, longer than we waited."
"Writers take turns. Try again."
E0803 8 "A newer version of dendrer wrote this."
"Nothing was touched. Update dendrer."
E0804 8 "The key of the log is not here."
"It is kept outside the store: in the user's configuration folder, or where --key or DENDRER_KEY says. Without it, and without a writer's \
secret, records are read and nothing is written. On the machine with the key, `dendrer key writer --out FILE` makes such a secret: a file \
for --key that appends and signs nothing."
E0805 8 "This handle does not write any more."
"The disk did not confirm a write, the log is damaged, or the handle was opened for reading."
E0806 5 "A backup is not written to."
"It is to be the log as it was. `dendrer restore BACKUP DIR` makes a store of it."
E0807 2 "There is no place for the key."
"Without a home directory, say where the key of the log is to be kept: `dendrer init --key FILE`."
E0808 8 "The command that was to go on with a fork ended with a failure."
"Its exit code or the signal is in the message, and what it had to say of it on stderr. The fork stays, and so does everything that was \
acknowledged. Go on from there with `dendrer commit --run FORK`, or fork it again: `dendrer fork --run FORK --from tip --exec CMD`."
E0809 8 "The index is damaged."
"It is derived from the log, of which nothing is lost. Commands that only read do without it; dendrer doctor --fix makes it \
again."
E0810 8 "The caller stopped the work."
"A program that uses dendrer as a library asked it to stop. Nothing was changed; ask again."
E0811 8 "This was made before the format was frozen."
"It says nothing about the record: another version of dendrer, before the first release, wrote it, and this one does not read it. Nothing \
was touched. Read it with the version that made it, and record or import again."
E0812 5 "The key of the log was changed without the old one, or is to be."
"A record in the log says that the key was lost and puts another in its place. This machine has, or knows, the old key, which did not sign \
that: the owner recovered on another machine, or another person claims the log. Nothing is written here. `dendrer verify` names the record. \
If the owner did it, bring the new key: `--key FILE`, or its file in the place of the old one. `key recover` is for a lost key, and is refused \
where the key is; `dendrer key rotate` changes that. docs/keys.md has an example."
E0813 2 "What this key signed cannot be taken back."
"`dendrer key revoke KEY --at SIZE` takes back what an earlier key of the log signed beyond a size. The key in force is first changed: `dendrer \
key rotate`. `dendrer key show` lists the keys."
E0814 5 "A group of this log has no tag of its writers."
"Each group of records has a tag that only the key of the log, or a writer's secret made from it, can make. Behind a group without it \
nothing is written, exported or signed, so that the owner never signs what another program wrote. `dendrer doctor --adopt -n` lists the groups; \
`doctor --adopt --to SIZE --reason TEXT` signs them knowingly, `doctor --set-aside DIR` moves them out of the log. docs/keys.md has an example."
E0815 5 "Groups without a tag cannot be set aside."
"They are cut only at the end of the log, and only where nothing of the key's holder follows: no tag, no checkpoint, no head that was \
signed here. Where an erasure was carried out for them they stay as well. `dendrer doctor --adopt -n` lists them."
E0816 2 "The address of a store on a server is not taken."
"`postgres://[USER@]HOST[:PORT]/DB/NAME`, NAME of a-z, 0-9 and _, with `?sslmode=`, `?sslrootcert=` or the directory of a socket as `?host=`. A password is never in it, since addresses are printed and kept: it comes from PGPASSWORD, or from PGPASSFILE or ~/.pgpass, readable by you alone."
E0817 8 "The server is not one that records are entrusted to."
"PostgreSQL 15 or later, with fsync and full_page_writes on, and no replica: anything else may lose what it acknowledged, or takes nothing. The message names the setting."
E0818 8 "This program was built without a part that the command needs."
"Stores on a server are the feature `postgres`, exports as Parquet and `fleet` are the feature `fleet`: `cargo install --features postgres,fleet` builds both in, and the program of the Python package has them. `--engine spark` needs the Python package with `pyspark`."
E0819 8 "No connection to the server of the store."
"The message has the server's reason. What was acknowledged is there; of a call that was cut off nothing was written, or the error would be E0805. Try again."
E0820 2 "This is not done with a store on a server."
"The verb works on the files of a store, and a server has none. The message names what does it there."
E0821 8 "The export is not finished."
"Its manifest is written last, so a directory without one is an export that was killed, or none. Run the same export again: it goes on, and gives the same bytes."
E0822 2 "The question reads what the export does not have."
"An export has states, and the counters that are columns of it. It has no transition (`t`), no commitments, no module and no registered names. The message names the export that would have it, or the verb to ask instead."
E0823 5 "The server has another epoch of this store than this handle began with."
"After a failover or a restore that lost records the owner begins a new epoch; a server that was left behind still has the old one. Nothing was written. Open the store again at the server that has the new one."
E0824 6 "The export is not whole, so there is no answer."
"A file is missing, cut, altered or not the one that the manifest names, or its rows do not fit the runs. The message names the file. `dendrer export --check DIR` lists all of them."
E0900 2 "A pack does not check."
"`dendrer pack check FILE` lists everything that is wrong with it, each with line, column and what to write instead."
E0901 2 "A text is not YAML 1.2 or JSON as packs are written."
"Words are read by the core schema: `no` is text, `0o17` is 15. A word that looks like a number and is none (`1_000`, `12:30`, `017`) is to \
stand in quotes, or as the number that is meant. Anchors, aliases, tags and merge keys are not taken, so \
that a pack says what a reader sees."
E0902 2 "A member of a pack is missing, unknown, or not of its kind."
"What is not known is refused, because a rule that is spelled wrong would otherwise be a rule that is not there. \
docs/packs.md has every member."
E0903 2 "A name in a pack is not declared, has a meaning already, or is not a name."
"Fields are declared under `state`, types under `types`. A name that expressions use has letters, digits and `_`."
E0904 2 "A pack is larger than the format allows."
"At most 4 MiB of text, 4 MiB of modules, 1,000 of each kind of declaration, 10,000 steps, and `each` two deep."
E0905 2 "A pack names an engine that this program does not run."
"Rules (`fold/1`), proposed changes (`delta/1`) and modules (`wasm/1`) are run here, and predicates are expressions or modules. A pack \
that binds another engine is refused and never half-run."
E0906 2 "The initial state of a pack cannot be computed."
"The `init` of a field met something that is not there. Give the state it needs with --state FILE, or say in the pack what \
counts where it is missing: `has(s0.x) ? s0.x : 0`."
E0907 2 "A pack with contracts says nowhere what must never happen."
"It has at least one violation predicate that cannot recover: by construction, or with bisect_predicate: monotone_lift."
E0908 4 "The pack that a run carries is not the one it names, or is none."
"The header of each record names the pack by its digest, and the record of the run carries it."
E0909 3 "The run has no pack."
"It was begun without one. `dendrer reduce RUN --pack FILE --as NEW` makes a run with the same transitions and the pack's \
states."
E0920 2 "The text is no graph."
"A graph has one statement a line: `n0 NAME(ARGUMENTS) pure`, `e1 NAME(ARGUMENTS) -> rec frontier[1]`, `r1 repeat(n0) max 5 until n9` up to `end r1`. The message names the line; `docs/graphs.md` has all forms."
E0921 2 "A graph has no contract."
"Its last line is `replay(graph, frontier) == output required`: a run is good only if its replay gives the same output."
E0922 2 "The value of an edge is not recorded."
"A replay would have to ask the world again. Write `-> rec frontier[N]` behind the edge."
E0923 2 "The place of an edge in the frontier is missing or another one."
"Edges and repeats are counted from 1 in the order of lines, within a repeat as `[2.*.1]`. The message names the place that is due."
E0924 2 "A statement is named that is not there."
"The value would come from nowhere. An argument is the id of an earlier statement, a member of its value, JSON, or the name of an input."
E0925 2 "A statement is named that comes later."
"It has no value yet where it is needed. Move it up."
E0926 2 "A function is called that the pack does not define."
"`define` of the pack names the pure functions, with as many parameters as the graph gives. `select` and `switch` are built in. A function of the \
host is declared under `tools`, with `effect: host`."
E0927 2 "A pure statement calls an effect."
"The effect would be called again at each replay. Make it an edge: `-> rec frontier[N]`."
E0928 2 "An effect has no class."
"`tools` of the pack says what each effect does to the world: `read`, `idempotent_write` or `effectful`."
E0929 2 "A repeat has no ceiling."
"Write `max N`: how often it runs must be bounded by what is on record."
E0930 2 "A graph reads a clock beside the record."
"A replay reads another time. Make it an edge, such as `e1 clock.now() -> rec frontier[1]`."
E0931 2 "A graph reads its environment beside the record."
"Another machine has another one. Give it as an input."
E0932 2 "A graph asks chance beside the record."
"Each replay gets another value. Make it an edge, such as `e1 chance.uuid() -> rec frontier[1]`."
E0933 2 "A graph reads a file beside the record."
"The file may have changed. Give its text as an input, or make it an edge, such as `e1 file.read(\"a\") -> rec frontier[1]`."
E0934 2 "An input or an executor is missing."
"Every input of the graph has a value (`--input NAME=FILE`), and every effect a command that answers it (`--exec CALL=CMD`). Nothing was called, and nothing recorded."
E0935 8 "A node cannot be computed."
"A function of the pack met a value that it cannot take. The message names the path and the reason; the run stays open with what was recorded. \
`graph run .. --resume RUN` with `--ask-again PATH` or `--set PATH=FILE` replaces the answer of an edge that it reads."
E0936 8 "An edge failed."
"The command of its effect ended with an error or gave no value. It is on record with status `error`, its exit code and the end of its \
stderr, and the run stays open. `graph run .. --resume RUN` goes on with it: what is on record is not asked again."
E0937 7 "A graph and its frontier part."
"Replay evaluates the graph over the recorded values, and something came out otherwise. The answer names the first place with what was recorded and what was made."
E0938 2 "The run is not that of a graph."
"Only `graph run` records a graph and its frontier. `dendrer replay RUN` makes any run again from its ticks."
E0939 5 "A run of this name exists, so the graph was not run."
"Nothing was called, and nothing was recorded. `graph run .. --resume RUN` goes on with the run that is there; `dendrer replay RUN` makes it \
again from its record."
E0940 5 "It is not known whether an effectful edge has acted, so the run did not go on."
"Its request is on record and no answer that can be read: the program was ended, the call was killed or cut, or it took longer than its timeout; \
or it has acted, and with a replaced answer it is asked something else, or not reached. Nothing was \
asked. Look whether it has acted: `--set PATH=FILE` gives the value that it had, `--ask-again PATH` asks it once more."
E0941 5 "The run is that of a graph, and its lines are written by `graph run` alone."
"What another process writes into it would change what the graph has computed. `dendrer fork RUN` makes a run that takes lines."
E0942 2 "A run goes on only with the graph, the pack and the inputs that it was begun with."
"Nothing was called, and nothing was recorded. The message names the part that differs; what was asked already would not fit another one. \
`dendrer graph show RUN` prints the graph on record. A new run is begun without `--resume`, with `--as NAME`."
E0943 5 "Another process runs this graph under the same name."
"Two would ask the same effects twice. Nothing was called, and nothing was recorded. When the other one has ended, `--resume RUN` goes on \
with what it left."
E0944 7 "The run is hypothetical, so it is no test."
"It is a fork with values of edges that no effect gave (`replay RUN --set .. --as NEW`, `fork --set`), or with lines of its own: what it holds did not happen. `graph test` takes runs that did; \
`--runs 'graph == \"NAME\" && !hypothetical'` leaves the others out."
E0945 8 "A host function gave two results for the same arguments."
"It is called twice, each time in a fresh process, and its result counts only if both are equal. It reads a clock, chance, a file or what it \
left behind: make it an edge, or give it that as an argument. Its call is on record with status `error`; `graph run .. --resume RUN` calls it again."
E0946 2 "A host function is for stages 0 and 1."
"It is tested and not pure by construction, so that a run which enforces cannot depend on it. Define the function in the pack, as an expression or \
as a module, or run the graph with `--stage 1`. Nothing was called, and nothing was recorded."
W0441 1 "Something is compared more finely than its field is kept."
"A field is rounded to its decimals whenever it is written, and a contract counts a number to its precision. What is finer than that is \
no place where a value can be. Write both with the same number of decimals."
W0442 1 "A threshold lies where rounding alone can put a value."
"A number that was rounded may lie on a threshold that is as fine as the rounding, so that what differs in nothing that matters is judged \
differently. Put the threshold a step further than what is meant (0.86 and not 0.850), or keep the field to one decimal more."
W0443 1 "A predicate reads a field that no contract requires."
"A transition is then committed where the field is missing, and imported where it is another: no import compares it. Add it to \
required_state of the types that the predicate judges. A field that follows from what is required alone needs not be named."
W0444 1 "A predicate is said to be monotone and can recover."
"What is said of a predicate is not believed. It is known not to recover by its text, or where no rule of the pack can take it back. Write \
`bisect_predicate: monotone_lift`, and its first violation counts whatever comes after."
W0445 1 "A condition is never true, or a rule is never asked."
"What it guards never happens. A rule is asked about transitions that agents and the runtime propose, not about what the kernel writes."
W0446 1 "A contract requires what no state of a run can have."
"The field begins the same in every run, no rule writes it, and that value is not what is required. Every transition of the type would \
be refused."
W0447 1 "A condition compares with a word that nothing is called."
"Tools are called as `tools` of the pack declares them, types as the ontology and `types` name them. A slip makes a rule that never \
applies."
W0448 1 "Any agent may write a field that the contract reads."
"Under delta/1 an intent brings the change of state itself: an agent can write the very field that its contract requires or its violation \
reads. Say who may write it with `writers`, a list of transition types and authors; another writer is refused at stages 2 and 3 (E0430)."
W0449 1 "A required field begins with a value that nothing gave."
"A field without `init` begins with what the run is given under its name and is absent otherwise, so that a contract can find it missing."
W0450 1 "A rule cannot be judged where something is missing."
"A field without `init` is absent until it is written, and an index by a computed name may lead nowhere. Guard it with has(...) or `in`, \
or say in the rule what a missing one means."
W0451 1 "A rule compares the text of a moment."
"A `datetime` is ordered and calculated with as a moment, and equal as a text: one moment has many texts, each with its offset and number of \
fraction digits. timestamp(a) == timestamp(b) says that two are one moment."
W0468 1 "A program was run, and no call of it was captured."
"It asks an API whose address it does not read from OPENAI_BASE_URL, ANTHROPIC_BASE_URL or GOOGLE_GEMINI_BASE_URL, or it asked none. Name the \
variable that it reads with `--base VARIABLE=URL`. The exit code is that of the program."
}

/// Returns the entry of a code.
pub fn entry(code: Code) -> &'static CodeEntry {
    &CODES[code as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_of_a_code_is_in_the_table() {
        assert!(EXITS.windows(2).all(|pair| pair[0].code < pair[1].code));
        for code in CODES {
            assert!(EXITS.iter().any(|exit| exit.code == code.exit), "{}", code.code);
        }
    }

    #[test]
    fn the_table_has_every_code_in_order() {
        let explained: Vec<Code> = CODES.iter().map(|entry| entry.code).collect();
        assert_eq!(explained, Code::ALL);
    }
}
