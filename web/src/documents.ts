// Written by scripts/types.mjs from `dendrer schema NAME`. Do not edit: `npm run types` compares.

/** The document `dendrer.action-why/1`. */
export type ActionWhy = {
  /** The agent; null if the record names none */
  agent: string | null;
  /** The author of the transition */
  author: "agent" | "runtime" | "user" | "kernel" | "institution";
  /** The calls; empty for a transition without one */
  calls: {
    /** The id of the call */
    call_id: string | null;
    /** The commitments that decided */
    commitments: {
      /** The id */
      id: string;
      /** The party that it is kept for; null for what is no commitment of the run */
      owner: string | null;
      /** The verdict on the call */
      verdict: "ok" | "violation" | "uncertain";
    }[];
    /** The parameters; null if there are none */
    params: unknown;
    /** The tool */
    tool: string | null;
  }[];
  /** The decision about the transition; null if there is none */
  decision: {
    /** The author */
    author: "agent" | "runtime" | "user" | "kernel" | "institution";
    /** The decision */
    decision: string;
    /** The tick */
    tick: number;
  } | null;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  /** The places that rules read for the transition */
  reads: {
    /** The place */
    path: string;
    /** The tick that wrote it last; null if the run began with it */
    tick: number | null;
  }[];
  /** The ids that the intent states it relies on */
  relies_on: string[];
  /** The policy rules and violations in force, with what each says */
  rules: {
    /** The id */
    id: string;
    /** The verdict */
    verdict: "ok" | "violation" | "uncertain";
  }[];
  /** The run */
  run: string;
  schema: "dendrer.action-why/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The tick */
  tick: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
};

/** The document `dendrer.backtrack/1`. */
export type Backtrack = {
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** The certainty */
  certainty: "exact" | "unavailable";
  /** Whether no write was left out because of the limit */
  complete: boolean;
  /** The place whose writes are listed: the list, for an item of one */
  followed: string;
  /** The first tick that was looked at */
  from: number;
  /** The ticks whose change was erased or withheld */
  hidden: number[];
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** The value after; absent if it is missing or it was not asked for */
    after?: unknown;
    /** The agent; null if the record names none */
    agent: string | null;
    /** The value before; absent if there was none or it was not asked for */
    before?: unknown;
    /** The conflicts of agents at the place that the write, of a sync node, kept or decided */
    decided?: {
      /** The tick of the sync node */
      at: number;
      /** The place, as a JSON pointer */
      path: string;
      /** The strategy */
      rule: "manual" | "lww" | "confidence" | "policy";
      /** The value of each agent */
      values: {
        /** Whether its confidence is no number from 0 to 1, and counts as 0 */
        misread?: boolean;
        /** Whether the source removed it */
        removed: boolean;
        /** The agent; empty for the beginning of the run */
        source: string;
        /** The tick of the write */
        tick: number;
        /** The value; null if the source removed it */
        value: unknown;
      }[];
      /** The side that the strategy took; null if all were kept */
      winner: {
        /** Whether its confidence is no number from 0 to 1, and counts as 0 */
        misread?: boolean;
        /** Whether the source removed it */
        removed: boolean;
        /** The agent; empty for the beginning of the run */
        source: string;
        /** The tick of the write */
        tick: number;
        /** The value; null if the source removed it */
        value: unknown;
      } | null;
    }[];
    /** The id */
    id: string;
    /** The inputs, if they were asked for */
    inputs?: {
      /** The agent; null if the record names none */
      agent: string | null;
      /** The reason why it is an input; absent for the write that was asked about */
      because?: {
        /** The certainty that it is one */
        certainty: "exact" | "recorded" | "heuristic";
        /** The way in which it is an input */
        how: "stood there" | "caused_by" | "evidence" | "may read";
        /** The place that a rule may read */
        path?: string;
        /** The tick of the input, in a causal chain */
        tick?: number;
        /** Whether the rule may read the place as a whole */
        whole?: boolean;
      };
      /** The id */
      id: string;
      /** The inputs, each as this object */
      inputs: Record<string, unknown>[];
      /** The operations of the transition there */
      ops?: Record<string, unknown>[];
      /** The place that is followed; absent if a link led to the transition */
      path?: string;
      /** The reason why the inputs are not listed; null if they are */
      stops: "depth" | "above" | "other agent" | "size" | "unknown" | "nothing" | null;
      /** The record in one line */
      summary: string;
      /** The tick */
      tick: number;
      /** The type; null for a record without one */
      type: string | null;
    }[];
    /** The operations of the transition on the place */
    ops: Record<string, unknown>[];
    /** The run, if a merge took the value from it; absent for the one that was asked about */
    run?: string;
    /** The reason why the inputs are not listed; null if they are */
    stops?: "depth" | "above" | "other agent" | "size" | "unknown" | "nothing" | null;
    /** The record in one line */
    summary: string;
    /** The tick */
    tick: number;
    /** The type; null for a record without one */
    type: string | null;
  }[] | number;
  /** The ticks of writes whose agent was erased or withheld, if one agent was asked for */
  nameless: number[];
  /** The place that was asked about */
  path: string;
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The run */
  run: string;
  schema: "dendrer.backtrack/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The last tick that was looked at */
  to: number;
  /** The number of writes */
  total: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The unknown places that the answer reads; absent if every place is known */
  unknown?: {
    /** The word for the cause */
    code: string;
    /** The place, as a JSON pointer */
    place: string;
    /** The tick from which on it is unknown */
    tick: number;
  }[];
};

/** The document `dendrer.badge/1`. */
export type Badge = {
  /** The time at which that verification ended; null if none has */
  at: string | null;
  /** The number of records that the verification has read */
  done: number;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  /** The number of records of the log when that verification began; null if none has ended */
  log_size: number | null;
  /** The number of records of the log */
  of: number;
  /** The run */
  run: string;
  schema: "dendrer.badge/1";
  /** Whether the log grew since */
  stale: boolean;
  /** How far the server has verified it */
  state: "not_checked" | "checking" | "checked";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The last tick */
  tip: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The document of the last verification that ended; null if none has */
  verify: Record<string, unknown> | null;
};

/** The document `dendrer.bisect/1`. */
export type Bisect = {
  /** The last tick at which the type was allowed, for a policy flip */
  allowed: number | null;
  /** The number of ticks at which a place was written that the predicate reads */
  candidates: number | null;
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** The certainty of the onset */
  certainty: "exact" | "heuristic" | "unavailable";
  /** The transitions that follow from the onset */
  chain?: {
    /** The certainty */
    certainty: "heuristic";
    /** The transitions, the onset first */
    items: {
      /** The agent; null if the record names none */
      agent: string | null;
      /** The members of the chain that it follows from */
      because: {
        /** The certainty that it is one */
        certainty: "exact" | "recorded" | "heuristic";
        /** The way in which it is an input */
        how: "stood there" | "caused_by" | "evidence" | "may read";
        /** The place that a rule may read */
        path?: string;
        /** The tick of the input, in a causal chain */
        tick?: number;
        /** Whether the rule may read the place as a whole */
        whole?: boolean;
      }[];
      /** The changes; null if a value was erased or withheld */
      changes: {
        /** The value after; absent if it is missing */
        after?: unknown;
        /** The value before; absent if there was none */
        before?: unknown;
        /** The place */
        path: string;
      }[] | null;
      /** The id */
      id: string;
      /** The record in one line */
      summary: string;
      /** Whether it only comes after the onset */
      temporal: boolean;
      /** The tick */
      tick: number;
      /** The type; null for a record without one */
      type: string | null;
    }[];
    /** The last tick that was looked at */
    looked_to: number;
    /** Whether more follow */
    more: boolean;
    /** The source of the places that a transition may read; unknown for recorded links alone */
    reads: "rules" | "unknown";
  } | null;
  /** The earlier transitions that the onset depends on, if they were searched */
  contributors?: {
    /** The number of earlier transitions that can matter */
    candidates: number;
    /** The certainty for the recorded intents */
    certainty: "exact";
    /** The certainty of what an agent would then have done */
    counterfactual: "heuristic";
    /** The number of earlier transitions */
    earlier: number;
    /** The transitions of the set */
    items: {
      /** The agent; null if the record names none */
      agent: string | null;
      /** The id */
      id: string;
      /** The record in one line */
      summary: string;
      /** The tick */
      tick: number;
      /** The type; null for a record without one */
      type: string | null;
    }[];
    /** The part of the record that the answer is exact for */
    of: "the recorded intents";
    /** The outcome of the search */
    outcome: "set" | "nothing" | "unknown";
    /** The number of times that the run was reduced again */
    rereductions: number;
    /** The claim about the size of the set */
    shown: "smallest" | "minimal" | "clears" | null;
    /** The largest size of which every set was tried */
    tried: number;
    /** The reason why there are none, if intents bring their changes themselves */
    why: string | null;
    /** The verdict with the set */
    with: {
      /** The root of the state */
      state_root: string;
      /** The transitions that do not fit any more */
      unapplied: {
        /** The tick */
        tick: number;
        /** The reason */
        why: string;
      }[];
      /** The verdict */
      verdict: "ok" | "violation" | "uncertain";
    };
    /** The verdict without the set */
    without: {
      /** The root of the state */
      state_root: string;
      /** The transitions that do not fit any more */
      unapplied: {
        /** The tick */
        tick: number;
        /** The reason */
        why: string;
      }[];
      /** The verdict */
      verdict: "ok" | "violation" | "uncertain";
    } | null;
  } | {
    /** The certainty for the recorded decisions */
    certainty: "exact";
    /** The certainty of what an agent would then have done */
    counterfactual: "heuristic";
    /** The number of earlier transitions */
    earlier: number;
    /** The first decisions */
    items: {
      /** The agent; null if the record names none */
      agent: string | null;
      /** The id */
      id: string;
      /** The record in one line */
      summary: string;
      /** The tick */
      tick: number;
      /** The type; null for a record without one */
      type: string | null;
    }[];
    /** The part of the record that the answer is exact for */
    of: "the recorded decisions";
    /** The outcome of the search */
    outcome: "set";
    /** The claim about the size of the set */
    shown: "smallest";
    /** The ticks of all decisions */
    ticks: number[];
  } | null;
  /** The class of failure that the onset looks like */
  diagnosis?: {
    /** The certainty of the offer */
    certainty: "heuristic";
    /** The class that a person decided on */
    decided: "contingent-state" | "contingent-policy" | "foundational" | null;
    /** The tick of the decision that let it pass */
    decision: number | null;
    /** The evidence */
    evidence: string;
    /** Whether a fork can help */
    may_fork: boolean;
    /** The class */
    offered: "contingent-state" | "contingent-policy" | "foundational";
    /** The other class that the evidence allows */
    or: {
      /** The evidence */
      evidence: string;
      /** The class */
      offered: "contingent-state" | "contingent-policy" | "foundational";
      /** The class in words */
      words: string;
    } | null;
    /** The use of the run */
    role: "fork seed" | "post-mortem artifact";
    /** The class in words */
    words: string;
  } | null;
  /** The first pair of transitions that differ, for a divergence */
  divergence?: {
    /** The transition of the left run */
    a: {
      /** The agent; null if the record names none */
      agent: string | null;
      /** The id */
      id: string;
      /** The record in one line */
      summary: string;
      /** The tick */
      tick: number;
      /** The type; null for a record without one */
      type: string | null;
    } | null;
    /** The step of the left thread; null if it is missing */
    a_step?: number | null;
    /** The tick of the left run */
    a_tick: number | null;
    /** The transition of the right run */
    b: {
      /** The agent; null if the record names none */
      agent: string | null;
      /** The id */
      id: string;
      /** The record in one line */
      summary: string;
      /** The tick */
      tick: number;
      /** The type; null for a record without one */
      type: string | null;
    } | null;
    /** The step of the right thread; null if it is missing */
    b_step?: number | null;
    /** The tick of the right run */
    b_tick: number | null;
    /** The places that differ */
    changes: {
      /** The left side; absent if there is none */
      a?: unknown;
      /** Whether the sides are values or operations */
      as: "value" | "ops";
      /** The right side; absent if there is none */
      b?: unknown;
      /** The kind of difference */
      kind: "structural" | "semantic" | "confidence" | "outcome";
      /** The place, as a JSON pointer */
      path: string;
    }[];
    /** The kinds of difference */
    kinds: ("structural" | "semantic" | "confidence" | "outcome")[];
    /** The namespace, without the ids of its tasks */
    namespace?: string;
    /** The nodes of the step */
    node?: string;
    /** The places that cannot be compared */
    not_comparable: {
      /** The runs in which it was erased, withheld or redacted */
      closed_in: ("a" | "b")[];
      /** The place, as a JSON pointer */
      path: string;
      /** Whether it is there, and redacted without tags that can be compared */
      redacted?: boolean;
    }[];
    /** The type, or both */
    type: string;
  } | null;
  /** The verdicts at both ends of the range */
  ends: {
    /** The tick */
    tick: number;
    /** The verdict */
    verdict: "ok" | "violation" | "uncertain";
    /** The reason why the tick cannot be judged */
    why?: string;
  }[];
  /** The verdicts of the score at the ends, and where it fell first */
  evaluations?: {
    /** The reason for a violation, as the contract computes it */
    reason: unknown;
    /** The verdict */
    result: "ok" | "violation" | "uncertain";
    /** The score */
    score: number | null;
    /** The tick */
    tick: number;
    /** The reason why the tick cannot be judged */
    why: string | null;
  }[];
  /** The values of these writes, or of the last write of a place without a number, each with the earliest transition that has an equal one */
  first_seen?: {
    /** The agent of the transition */
    agent?: string;
    /** The certainty */
    certainty: "heuristic";
    /** The number of further transitions up to the write that have the value */
    others?: number;
    /** The place in the content of its record, through texts that hold JSON; in the state below /state */
    path?: string;
    /** The place of the write */
    place: string;
    /** The tick of the transition; 0 is the state with which the run begins. Null if no transition up to the write has the value */
    tick: number | null;
    /** The tool of the call that the place is part of */
    tool?: string;
    /** The type of the transition */
    type?: string;
    /** The number of transitions before it, or up to the write, that have a value that was erased, withheld, redacted or not recorded */
    unread: number;
    /** The value */
    value: unknown;
    /** The object around the value if it has at most 140 characters of JSON, else the value */
    within?: unknown;
    /** The tick of the write */
    write: number;
  }[];
  /** The places that --ignore left out, for a divergence */
  ignored?: {
    /** Whether anything was left out there */
    met: boolean;
    /** The place, as a JSON pointer */
    path: string;
  }[];
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** The first and the last tick that may be the onset afterwards */
    left: number[];
    /** The tick */
    tick: number;
    /** The verdict */
    verdict: "ok" | "violation" | "uncertain";
    /** The reason why the tick cannot be judged */
    why?: string;
  }[] | number;
  /** The names, ids and times that no comparison looks at, for a divergence */
  left_out?: string[];
  /** The places and the ticks that moved and first_seen are about */
  looked?: {
    /** The first tick; 0 is the state with which the run begins */
    from: number;
    /** The number of ticks whose change was erased or withheld */
    hidden: number;
    /** The places */
    places: string[];
    /** The broken rule that reads the places, for kernel.policy_compliant */
    rule?: string;
    /** The last tick */
    to: number;
    /** Whether every transition up to the last tick was looked at */
    whole: boolean;
    /** The number of writes of the places */
    writes: number;
  };
  /** The writes with the largest change of a number to the places that were looked at, the largest first; three at most */
  moved?: {
    /** The value after */
    after: unknown;
    /** The agent; null if the record names none */
    agent: string | null;
    /** The value before; absent if there was none */
    before?: unknown;
    /** The change, in decimals as they are printed; null if the value before is no number, or not known */
    change: unknown;
    /** The place */
    place: string;
    /** The tick */
    tick: number;
    /** The tool of the call; absent if the record names none */
    tool?: string;
    /** The type of the transition */
    type: string | null;
  }[];
  /** The standing of an obligation at the last tick that was asked about; null for any other predicate */
  obligation: {
    /** The last tick at which an open obligation can be met */
    due: number | null;
    /** Whether the run was closed with that tick */
    ended: boolean;
    /** The standing */
    standing: "waiting" | "open" | "met" | "missed" | "unknown";
    /** The tick at which the obligation was met or missed, or from which on it is not known */
    tick: number | null;
    /** The reason why the standing is not known */
    why: string | null;
  } | null;
  /** The first tick that is violated */
  onset: number | null;
  /** The transition at the onset */
  origin: {
    /** The agent; null if the record names none */
    agent: string | null;
    /** The number of anomalies */
    anomalies: number;
    /** The kind of the author */
    author: "agent" | "runtime" | "user" | "kernel" | "institution";
    /** The changes of the transition */
    changes: {
      /** The value after; absent if it is missing */
      after?: unknown;
      /** The value before; absent if there was none */
      before?: unknown;
      /** The place */
      path: string;
    }[];
    /** The confidence of the intent; null if none was given */
    confidence: number | null;
    /** The id */
    id: string;
    /** The kind of the record */
    kind: "run" | "transition" | "refusal" | "register" | "erase" | "key" | "end" | "map";
    /** The time that the source of an imported transition states; absent if it states none */
    observed_at?: string;
    /** The record in one line */
    summary: string;
    /** The tick; null for a record off the chain */
    tick: number | null;
    /** The time */
    ts: string;
    /** The type; null for a record without one */
    type: string | null;
    /** The places that the transition left unknown; absent if it left none */
    unknown?: {
      /** The word for the cause */
      code: string;
      /** The place, as a JSON pointer */
      place: string;
      /** The tick from which on it is unknown */
      tick: number;
    }[];
  } | null;
  /** The digest of another predicate of this name in the pack of the run */
  other_in_pack?: string;
  /** The outcome of the search */
  outcome: "onset" | "never" | "initial" | "recovers" | "uncertain";
  /** The question */
  predicate: {
    /** The digest of the question */
    digest: string;
    /** The evidence that the predicate stays violated once it is */
    monotone: string;
    /** The name of the predicate, or of the kind of question */
    name: string;
    /** The version of the predicate */
    version: string;
    /** The question in words */
    words: string;
  };
  /** The largest number of probes that the search takes */
  probes_max: number;
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The reasons why ticks cannot be judged, for an answer that is not known */
  reasons?: {
    /** The first tick */
    tick: number;
    /** The last tick */
    to: number;
    /** The reason */
    why: string;
  }[];
  /** The records that the command added to the casebook */
  recorded?: {
    /** The id of the record */
    id: string;
    /** The casebook */
    run: string;
    /** The tick in the casebook */
    tick: number;
    /** The type */
    type: string;
  }[];
  /** The stretches of ticks with one verdict each, if the predicate was lifted */
  recoveries: (number | "ok" | "violation" | "uncertain")[][] | null;
  /** The score, and the verdict of each hard predicate */
  regression?: {
    /** Whether the score and the hard predicates name one tick */
    agree: boolean;
    /** The best score before it fell */
    best: number | null;
    /** The tick of the best score */
    best_tick: number | null;
    /** The predicates every store has, and those of the pack that are no scores; the first that is violated wins */
    hard: {
      /** The digest of the predicate */
      digest: string;
      /** The name */
      name: string;
      /** The first tick that is violated */
      onset: number | null;
      /** The outcome of the search */
      outcome: "onset" | "never" | "initial" | "uncertain";
      /** The version */
      version: string;
    }[];
    /** The score */
    metric: string;
    /** The certainty of the score */
    score_certainty: "heuristic";
    /** The tick at which the score fell first */
    score_onset: number | null;
    /** The predicate that decides */
    takes_precedence: string;
    /** The fall that does not count */
    tolerance: number;
  };
  /** The run */
  run: string;
  /** The first violation that judging every tick found, with --scan */
  scan_onset: number | null;
  schema: "dendrer.bisect/1";
  /** The tick from which on the question can be asked, if an extension or a fork brought the predicate in, or its places are written from there on */
  since?: number | null;
  /** The writes in the sources of a merge that a violated beginning comes from; absent if there are none */
  sources?: {
    /** The place that was written */
    path: string;
    /** The run */
    run: string;
    /** The tick */
    tick: number;
  }[];
  /** The number of results whose status was read from prose */
  status_from_text: number;
  /** The command that is worth trying first */
  suggestion?: {
    /** The words of the command; FILE is a file of the reader */
    argv: string[];
    /** A remark for the reader, which is no part of the command */
    remark?: string;
  };
  /** The commands that are worth trying: first what changes the run by itself, then words for the agent; absent if no command helps */
  suggestions?: {
    /** The words of the command; FILE is a file of the reader */
    argv: string[];
    /** A remark for the reader, which is no part of the command */
    remark?: string;
  }[];
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The ticks at which a predicate that recovers changes, or that cannot be judged */
  ticks: {
    /** The tick */
    tick: number;
    /** The verdict */
    verdict: "ok" | "violation" | "uncertain";
    /** The reason why the tick cannot be judged */
    why?: string;
  }[] | null;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The records that the links of the onset lead back to, the newest first */
  upstream?: {
    /** The agent; null if the record names none */
    agent: string | null;
    /** The id */
    id: string;
    /** The links that name it */
    named_by: {
      /** The relation */
      link: "caused_by" | "evidence" | "fork_of" | "merges" | "picked_from" | "predecessor";
      /** The tick of the record that has the link */
      tick: number;
    }[];
    /** The record in one line */
    summary: string;
    /** The tick */
    tick: number;
    /** The type; null for a record without one */
    type: string | null;
  }[];
};

/** The document `dendrer.bisect-all/1`. */
export type BisectAll = {
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** The worst exit code of all answers */
  exit: number;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** The last tick at which the type was allowed, for a policy flip */
    allowed: number | null;
    /** The number of ticks at which a place was written that the predicate reads */
    candidates: number | null;
    /** The certainty of the onset */
    certainty: "exact" | "heuristic" | "unavailable";
    /** The verdicts at both ends of the range */
    ends: {
      /** The tick */
      tick: number;
      /** The verdict */
      verdict: "ok" | "violation" | "uncertain";
      /** The reason why the tick cannot be judged */
      why?: string;
    }[];
    /** The places that --ignore left out, for a divergence */
    ignored?: {
      /** Whether anything was left out there */
      met: boolean;
      /** The place, as a JSON pointer */
      path: string;
    }[];
    /** The runs that were read of which records are or may be missing, each with the reason in words */
    incomplete?: string[];
    items: {
      /** The first and the last tick that may be the onset afterwards */
      left: number[];
      /** The tick */
      tick: number;
      /** The verdict */
      verdict: "ok" | "violation" | "uncertain";
      /** The reason why the tick cannot be judged */
      why?: string;
    }[] | number;
    /** The names, ids and times that no comparison looks at, for a divergence */
    left_out?: string[];
    /** The standing of an obligation at the last tick that was asked about; null for any other predicate */
    obligation: {
      /** The last tick at which an open obligation can be met */
      due: number | null;
      /** Whether the run was closed with that tick */
      ended: boolean;
      /** The standing */
      standing: "waiting" | "open" | "met" | "missed" | "unknown";
      /** The tick at which the obligation was met or missed, or from which on it is not known */
      tick: number | null;
      /** The reason why the standing is not known */
      why: string | null;
    } | null;
    /** The first tick that is violated */
    onset: number | null;
    /** The transition at the onset */
    origin: {
      /** The agent; null if the record names none */
      agent: string | null;
      /** The number of anomalies */
      anomalies: number;
      /** The kind of the author */
      author: "agent" | "runtime" | "user" | "kernel" | "institution";
      /** The changes of the transition */
      changes: {
        /** The value after; absent if it is missing */
        after?: unknown;
        /** The value before; absent if there was none */
        before?: unknown;
        /** The place */
        path: string;
      }[];
      /** The confidence of the intent; null if none was given */
      confidence: number | null;
      /** The id */
      id: string;
      /** The kind of the record */
      kind: "run" | "transition" | "refusal" | "register" | "erase" | "key" | "end" | "map";
      /** The time that the source of an imported transition states; absent if it states none */
      observed_at?: string;
      /** The record in one line */
      summary: string;
      /** The tick; null for a record off the chain */
      tick: number | null;
      /** The time */
      ts: string;
      /** The type; null for a record without one */
      type: string | null;
      /** The places that the transition left unknown; absent if it left none */
      unknown?: {
        /** The word for the cause */
        code: string;
        /** The place, as a JSON pointer */
        place: string;
        /** The tick from which on it is unknown */
        tick: number;
      }[];
    } | null;
    /** The outcome of the search */
    outcome: "onset" | "never" | "initial" | "recovers" | "uncertain";
    /** The question */
    predicate: {
      /** The digest of the question */
      digest: string;
      /** The evidence that the predicate stays violated once it is */
      monotone: string;
      /** The name of the predicate, or of the kind of question */
      name: string;
      /** The version of the predicate */
      version: string;
      /** The question in words */
      words: string;
    };
    /** The largest number of probes that the search takes */
    probes_max: number;
    /** The reasons why ticks cannot be judged, for an answer that is not known */
    reasons?: {
      /** The first tick */
      tick: number;
      /** The last tick */
      to: number;
      /** The reason */
      why: string;
    }[];
    /** The stretches of ticks with one verdict each, if the predicate was lifted */
    recoveries: (number | "ok" | "violation" | "uncertain")[][] | null;
    /** The run */
    run: string;
    /** The first violation that judging every tick found, with --scan */
    scan_onset: number | null;
    schema: "dendrer.bisect/1";
    /** The number of results whose status was read from prose */
    status_from_text: number;
    /** The fault of a record that is not what was signed */
    tampered?: {
      /** The code of the fault, as `dendrer explain` takes it */
      code: string;
      /** The fault in one sentence */
      message: string;
    };
    /** The ticks at which a predicate that recovers changes, or that cannot be judged */
    ticks: {
      /** The tick */
      tick: number;
      /** The verdict */
      verdict: "ok" | "violation" | "uncertain";
      /** The reason why the tick cannot be judged */
      why?: string;
    }[] | null;
    /** Whether an import of a run that was read was stopped before its end */
    unfinished?: boolean;
  }[] | number;
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The run */
  run: string;
  schema: "dendrer.bisect-all/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
};

/** The document `dendrer.commitments/1`. */
export type Commitments = {
  /** The tick */
  at: number;
  /** The agents, tools and contract that the commitments are made under */
  context: {
    /** The agents of the run */
    actors: string[];
    /** The contract of a delegated run */
    contract: Record<string, unknown> | null;
    /** How the contract ended: it permits no call */
    ended?: {
      /** The status, or over, missing or unreadable */
      as: string;
      /** The parent that says so */
      run: string;
      /** The tick of the parent; null if none decided it */
      tick: number | null;
    };
    /** The tools that the pack allows; null if it gates none */
    tools: string[] | null;
  };
  /** The first tick whose lists were erased or withheld; what they brought is not counted */
  hidden: number | null;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** The author, if a user or the institution adopted it */
    adopted_from?: string;
    /** The actions that a delegation allows */
    allowed: Record<string, unknown> | null;
    /** The ids that its status depends on */
    because: string[];
    /** Whether it binds */
    binds: boolean;
    /** The tick of its newest change of status */
    changed: number | null;
    /** The edges about it that have no effect, because their author has not the rank of the owner */
    claimed?: {
      /** The author */
      by: string;
      /** The kind */
      edge: "supports" | "depends-on" | "conflicts-with" | "refines" | "discharges" | "attests";
      /** The id at its beginning */
      from: string;
      /** The tick */
      tick: number;
      /** The id at its end */
      to: string;
    }[];
    /** The condition that an action must not meet */
    condition: string | null;
    /** The edges of its conflicts, whichever end states them */
    conflict_edges: {
      /** The author of the edge */
      author: "agent" | "runtime" | "user" | "kernel" | "institution";
      /** The id at the other end */
      id: string;
      /** The tick of the edge */
      tick: number;
    }[];
    /** The ids of commitments that it conflicts with */
    conflicts: string[];
    /** The ids of commitments that it depends on */
    depends_on: string[];
    /** The condition under which it is done */
    discharge: string | null;
    /** The actions that it forbids */
    forbidden: unknown[] | null;
    /** The words for people */
    gloss: string;
    /** Whether evidence from outside the agent grounds it */
    grounded: boolean;
    /** The condition under which it applies */
    guard: string | null;
    /** Whether an action that violates it is not admissible */
    hard: boolean;
    /** The condition that an action must meet */
    holds: string | null;
    /** The id */
    id: string;
    /** The party that it is kept for */
    owner: string;
    /** The priority; a higher one wins */
    priority: number;
    /** The ids of commitments that it refines */
    refines: string[];
    /** The scope */
    scope: string;
    /** The status at the tick */
    status: "retracted" | "superseded" | "discharged" | "stale" | "blocked" | "dormant" | "tentative" | "active";
    /** The commitment that it replaces */
    supersedes: string | null;
    /** The evidence and commitments that support it */
    support: {
      /** The party that attests it */
      attestation: string | null;
      /** The id of the evidence or the commitment */
      id: string;
      /** The mode of evidence; null for a commitment */
      mode: "user-authored" | "tool-attested" | "externally-observed" | "self-authored" | null;
    }[];
    /** The tick that brought it */
    tick: number;
    /** The type */
    type: "obs" | "hyp" | "goal" | "obl" | "pref" | "plan" | "deleg";
    /** The names and places whose change makes it stale */
    watch: string[];
  }[] | number;
  /** The run */
  run: string;
  schema: "dendrer.commitments/1";
  /** The stage at which the run is recorded */
  stage: number | null;
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The open conflicts between hard commitments that bind both */
  ties?: {
    /** The author of the edge */
    author: string;
    /** The ids at its ends */
    ids: string[];
    /** The tick of the edge */
    tick: number;
  }[];
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The lines that changed no commitment */
  without_effect: {
    /** The author of the line, who claims it without effect */
    claimed?: string;
    /** The id that the line names */
    id: string;
    /** The tick */
    tick: number;
    /** The reason, as a word */
    why: string;
  }[];
};

/** The document `dendrer.compare/1`. */
export type Compare = {
  /** The first agent */
  a: string;
  /** The nodes of the first agent since then */
  a_extension: {
    /** The name of the node */
    node: string;
    /** The tick */
    tick: number;
  }[];
  /** The last node of the first agent */
  a_head: {
    /** The name of the node */
    node: string;
    /** The tick */
    tick: number;
  };
  /** The lowest common ancestor that counts */
  ancestor: {
    /** The name of the node */
    node: string;
    /** The tick */
    tick: number;
  };
  /** The lowest common ancestors */
  ancestors: {
    /** The name of the node */
    node: string;
    /** The tick */
    tick: number;
  }[];
  /** The second agent */
  b: string;
  /** The nodes of the second agent since then */
  b_extension: {
    /** The name of the node */
    node: string;
    /** The tick */
    tick: number;
  }[];
  /** The last node of the second agent */
  b_head: {
    /** The name of the node */
    node: string;
    /** The tick */
    tick: number;
  };
  /** The certainty of the answer */
  certainty: "exact" | "unavailable";
  /** The percentage of nodes that verify and whose state, made again, is the same; null if none was made again */
  congruent: number | null;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  /** The nodes that were made again */
  made_again: {
    /** The number of nodes */
    nodes: number;
    /** The number of nodes with the same state */
    same: number;
  } | null;
  /** The run */
  run: string;
  schema: "dendrer.compare/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The unknown places of the states; absent if every place is known */
  unknown?: {
    /** The word for the cause */
    code: string;
    /** The place, as a JSON pointer */
    place: string;
    /** The tick from which on it is unknown */
    tick: number;
  }[];
  /** The places in which the states differ */
  variance: {
    /** The value of the first agent; absent if it is missing */
    a?: unknown;
    /** The value of the second agent; absent if it is missing */
    b?: unknown;
    /** The place, as a JSON pointer */
    path: string;
  }[];
};

/** The document `dendrer.conflicts/1`. */
export type Conflicts = {
  /** The number of places that a strategy decided; --decided lists them */
  decided: number;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: ({
    /** The value at the last common record; null if it is missing */
    base: unknown;
    /** The place, as a JSON pointer */
    path: string;
    /** The reason that was given */
    reason: string | null;
    /** The standing */
    status: "open" | "taken" | "resolved" | "written";
    /** The source whose value was taken */
    taken: string | null;
    /** The tick of the decision */
    tick: number | null;
    /** The value of each source */
    values: {
      /** The id of the record */
      record: string;
      /** Whether the source removed it */
      removed: boolean;
      /** The name of the source */
      source: string;
      /** The tick of the write */
      tick: number;
      /** The value; null if the source removed it */
      value: unknown;
    }[];
  } | {
    /** The tick of the sync node */
    at: number;
    /** The place, as a JSON pointer */
    path: string;
    /** The reason that was given */
    reason: string | null;
    /** The strategy */
    rule: "manual" | "lww" | "confidence" | "policy";
    /** The standing */
    status: "open" | "taken" | "resolved" | "written";
    /** The source whose value was taken */
    taken: string | null;
    /** The tick of the decision */
    tick: number | null;
    /** The value of each agent */
    values: {
      /** Whether its confidence is no number from 0 to 1, and counts as 0 */
      misread?: boolean;
      /** Whether the source removed it */
      removed: boolean;
      /** The agent; empty for the beginning of the run */
      source: string;
      /** The tick of the write */
      tick: number;
      /** The value; null if the source removed it */
      value: unknown;
    }[];
    /** The side that the strategy took; null if all were kept */
    winner: {
      /** Whether its confidence is no number from 0 to 1, and counts as 0 */
      misread?: boolean;
      /** Whether the source removed it */
      removed: boolean;
      /** The agent; empty for the beginning of the run */
      source: string;
      /** The tick of the write */
      tick: number;
      /** The value; null if the source removed it */
      value: unknown;
    } | null;
  })[] | number;
  /** The number of conflicts that are open */
  open: number;
  /** The run */
  run: string;
  schema: "dendrer.conflicts/1";
  /** The runs that the run was seeded from */
  sources: {
    /** The name of the source */
    name: string;
    /** The id of the record there */
    record: string;
    /** The run */
    run: string;
    /** The root of the state there */
    state_root: string;
    /** The tick up to which it is read */
    tick: number;
  }[];
  /** The strategy of the merge */
  strategy: string | null;
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The tick that the answer is about */
  tick: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
};

/** The document `dendrer.contract-check/1`. */
export type ContractCheck = {
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** The certainty of the answer */
  certainty: "exact" | "heuristic" | "unavailable";
  /** The first tick */
  from: number;
  /** The number of transitions that a contract governs */
  governed: number;
  /** The contracts, each with its ticks */
  in_force: {
    /** The extensions that hold */
    extensions: {
      /** The approver */
      approved_by: string;
      /** The first tick that it governs */
      from: number;
      /** The id */
      id: string;
    }[];
    /** The first tick */
    from: number;
    /** The name */
    name: string;
    /** The last tick */
    to: number;
    /** The version */
    version: string;
  }[];
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** The first tick that was judged */
    from: number | null;
    /** The stretches of ticks with one verdict */
    intervals: (number | "ok" | "violation" | "uncertain")[][];
    /** The name of the predicate */
    name: string;
    /** The state of an obligation at the last tick; null for a predicate */
    obligation: {
      /** The last tick at which an open obligation can be met */
      due: number | null;
      /** Whether the run was closed with that tick */
      ended: boolean;
      /** The standing */
      standing: "waiting" | "open" | "met" | "missed" | "unknown";
      /** The tick at which the obligation was met or missed, or from which on it is not known */
      tick: number | null;
      /** The reason why the standing is not known */
      why: string | null;
    } | null;
    /** Whether no tick is in violation and each could be judged */
    ok: boolean;
    /** The first tick in violation; null if an earlier tick cannot be judged */
    onset: number | null;
    /** The reasons why ticks cannot be judged, each with its first and last tick */
    reasons: {
      /** The first tick */
      tick: number;
      /** The last tick */
      to: number;
      /** The reason */
      why: string;
    }[];
    /** The last tick that was judged */
    to: number | null;
    /** The first tick that cannot be judged */
    uncertain: {
      /** The tick */
      tick: number;
      /** The reason */
      why: string;
    } | null;
    /** The question in words */
    words: string;
  }[] | number;
  /** The transitions that lack required fields */
  lacking: {
    /** The fields */
    fields: {
      /** The name */
      name: string;
      /** The fault in words */
      why: string;
    }[];
    /** The tick */
    tick: number;
    /** The type */
    type: string;
  }[];
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The run */
  run: string;
  schema: "dendrer.contract-check/1";
  /** The stage at which the run is recorded */
  stage: number | null;
  /** The number of results that the answer depends on whose status was read from prose */
  status_from_text: number;
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The last tick */
  to: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
};

/** The document `dendrer.diff/1`. */
export type Diff = {
  /** The left run */
  a: string;
  /** The first and the last tick of the left run that were compared */
  a_range: number[] | null;
  /** The way in which transitions were paired */
  align: "tick" | "content" | "step";
  /** The right run */
  b: string;
  /** The first and the last tick of the right run that were compared */
  b_range: number[] | null;
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** Whether every place is known */
  certainty: "exact" | "unavailable";
  /** Whether every pair is listed */
  complete: boolean;
  /** The constants of the packs in force at the ends that differ; absent if there are none */
  constants?: {
    /** The value in the left run; absent if its pack has no such constant */
    a?: unknown;
    /** The value in the right run; absent if its pack has no such constant */
    b?: unknown;
    /** The name */
    name: string;
  }[];
  /** The number of pairs of each kind that was asked for */
  counts: {
    /** Pairs that differ in their confidence */
    confidence?: number;
    /** Differences of the last states */
    outcome?: number;
    /** Pairs of one type that differ */
    semantic?: number;
    /** Pairs with other types, or without one side */
    structural?: number;
  };
  /** The number of pairs that differ */
  differ: number;
  /** The first pair that differs */
  first: {
    /** The tick of the left run */
    a: number | null;
    /** The tick of the right run */
    b: number | null;
    /** The cause in words */
    cause: string | null;
  } | null;
  /** The last tick that both runs share; null if they share none */
  fork_point: number | null;
  /** The places that were left out, and whether anything was left out there */
  ignored: {
    /** Whether anything was left out there */
    met: boolean;
    /** The place, as a JSON pointer */
    path: string;
  }[];
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** The transition of the left run */
    a: {
      /** The agent; null if the record names none */
      agent: string | null;
      /** The id */
      id: string;
      /** The record in one line */
      summary: string;
      /** The tick */
      tick: number;
      /** The type; null for a record without one */
      type: string | null;
    } | null;
    /** The step of the left thread; null if it is missing */
    a_step?: number | null;
    /** The tick of the left run */
    a_tick: number | null;
    /** The transition of the right run */
    b: {
      /** The agent; null if the record names none */
      agent: string | null;
      /** The id */
      id: string;
      /** The record in one line */
      summary: string;
      /** The tick */
      tick: number;
      /** The type; null for a record without one */
      type: string | null;
    } | null;
    /** The step of the right thread; null if it is missing */
    b_step?: number | null;
    /** The tick of the right run */
    b_tick: number | null;
    /** The places that differ */
    changes: {
      /** The left side; absent if there is none */
      a?: unknown;
      /** Whether the sides are values or operations */
      as: "value" | "ops";
      /** The right side; absent if there is none */
      b?: unknown;
      /** The kind of difference */
      kind: "structural" | "semantic" | "confidence" | "outcome";
      /** The place, as a JSON pointer */
      path: string;
    }[];
    /** The kinds of difference */
    kinds: ("structural" | "semantic" | "confidence" | "outcome")[];
    /** The namespace, without the ids of its tasks */
    namespace?: string;
    /** The nodes of the step */
    node?: string;
    /** The places that cannot be compared */
    not_comparable: {
      /** The runs in which it was erased, withheld or redacted */
      closed_in: ("a" | "b")[];
      /** The place, as a JSON pointer */
      path: string;
      /** Whether it is there, and redacted without tags that can be compared */
      redacted?: boolean;
    }[];
    /** The type, or both */
    type: string;
  }[] | number;
  /** Places that no comparison reads: names, ids, times and costs of each run */
  left_out: string[];
  /** The markers of both runs in the ranges */
  markers: {
    /** Whether the marker changes the state by itself */
    changes_state: boolean;
    /** The id */
    id: string;
    /** The marker in words */
    says: string | null;
    /** The run */
    side: "a" | "b";
    /** The tick */
    tick: number;
    /** The type */
    type: string;
  }[];
  /** The number of places that were erased or withheld */
  not_comparable: number;
  /** The reason why no pairs are listed */
  note?: string;
  /** The number of transitions that the left run alone has */
  only_a: number;
  /** The number of transitions that the right run alone has */
  only_b: number;
  /** The difference of the last states */
  outcome: {
    /** The last tick of the left run */
    a_tick: number;
    /** The last tick of the right run */
    b_tick: number;
    /** The places that differ */
    changes: {
      /** The left side; absent if there is none */
      a?: unknown;
      /** Whether the sides are values or operations */
      as: "value" | "ops";
      /** The right side; absent if there is none */
      b?: unknown;
      /** The kind of difference */
      kind: "structural" | "semantic" | "confidence" | "outcome";
      /** The place, as a JSON pointer */
      path: string;
    }[];
    /** The answer */
    state: "equal" | "differs" | "not known";
    /** The reason why the states cannot be compared */
    why: string | null;
  } | null;
  /** The number of pairs that were compared */
  pairs: number;
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The records that the command added to the casebook */
  recorded?: {
    /** The id of the record */
    id: string;
    /** The casebook */
    run: string;
    /** The tick in the casebook */
    tick: number;
    /** The type */
    type: string;
  }[];
  schema: "dendrer.diff/1";
  /** Steps that one run has and the other lacks, so that the rest is shifted */
  shift: {
    /** The tick of the left run at which they begin */
    a: number;
    /** The tick of the right run at which they begin */
    b: number;
    /** The run that has them */
    in: "a" | "b";
    /** The number of steps */
    steps: number;
  } | null;
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** Counts by type of transition */
  types?: {
    /** Pairs that differ in their confidence */
    confidence: number;
    /** Pairs that are equal */
    equal: number;
    /** The number of pairs */
    pairs: number;
    /** Pairs of one type that differ */
    semantic: number;
    /** Pairs with other types, or without one side */
    structural: number;
    /** The type */
    type: string;
  }[];
  /** The number of pairs of which it is not known */
  unclear: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** Unknown places of the states that were compared; absent if every place is known */
  unknown?: {
    /** Those of the left run */
    a: {
      /** The word for the cause */
      code: string;
      /** The place, as a JSON pointer */
      place: string;
      /** The tick from which on it is unknown */
      tick: number;
    }[];
    /** Those of the right run */
    b: {
      /** The word for the cause */
      code: string;
      /** The place, as a JSON pointer */
      place: string;
      /** The tick from which on it is unknown */
      tick: number;
    }[];
  };
  /** The verdicts of the predicate on both runs */
  verdicts?: {
    /** Those of the left run */
    a: {
      /** Whether the onset is known */
      certainty: "exact" | "unavailable";
      /** Stretches of ticks with one verdict */
      intervals: (number | "ok" | "violation" | "uncertain")[][];
      /** The first tick in violation; null if there is none, or if it is not known */
      onset: number | null;
      /** The predicate */
      predicate: {
        /** The digest of the question */
        digest: string;
        /** The evidence that the predicate stays violated once it is */
        monotone: string;
        /** The name of the predicate, or of the kind of question */
        name: string;
        /** The version of the predicate */
        version: string;
        /** The question in words */
        words: string;
      };
      /** The reasons why ticks cannot be judged */
      reasons: {
        /** The first tick */
        tick: number;
        /** The last tick */
        to: number;
        /** The reason */
        why: string;
      }[];
    };
    /** Those of the right run */
    b: {
      /** Whether the onset is known */
      certainty: "exact" | "unavailable";
      /** Stretches of ticks with one verdict */
      intervals: (number | "ok" | "violation" | "uncertain")[][];
      /** The first tick in violation; null if there is none, or if it is not known */
      onset: number | null;
      /** The predicate */
      predicate: {
        /** The digest of the question */
        digest: string;
        /** The evidence that the predicate stays violated once it is */
        monotone: string;
        /** The name of the predicate, or of the kind of question */
        name: string;
        /** The version of the predicate */
        version: string;
        /** The question in words */
        words: string;
      };
      /** The reasons why ticks cannot be judged */
      reasons: {
        /** The first tick */
        tick: number;
        /** The last tick */
        to: number;
        /** The reason */
        why: string;
      }[];
    };
  };
};

/** The document `dendrer.error/1`. */
export type Failure = {
  /** Whether the command changed anything before it failed */
  changed: boolean;
  /** The code */
  code: string;
  /** The commands that help */
  help: {
    /** The arguments */
    argv: string[];
  }[];
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items?: Record<string, unknown>[] | number;
  /** The kind of the fault */
  kind: string;
  /** The object and the fact in one sentence */
  message: string;
  /** Notes, such as a part that was not changed */
  notes: string[];
  schema: "dendrer.error/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The rules that the state of a run that was not begun breaks, each with the values that decide */
  violations?: unknown[];
  /** The place, as names and values */
  where: Record<string, string>;
};

/** The document `dendrer.frontier/1`. */
export type Frontier = {
  /** The number of edges; 0 for a run of no graph */
  edges: number;
  /** The name of the graph; null for a run of no graph, whose calls are listed */
  graph: string | null;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: ({
    /** The arguments */
    args: unknown[];
    /** The digest of effect and arguments */
    asked: string;
    /** The name of the effect */
    call: string;
    /** The digest of the value */
    digest: string;
    /** The class of the effect */
    effect: string;
    /** The place in the frontier */
    index: string;
    /** The path of the edge */
    path: string;
    /** The value */
    value: unknown;
  } | {
    /** The tick of the answer; null without one */
    answered: number | null;
    /** The parameters */
    args: unknown;
    /** The tool; empty if none is on record */
    call: string;
    /** The digest of the value; null without one */
    digest: string | null;
    /** The id of the call, the tick of its request if it has none, or the path of the edge */
    path: string;
    /** The status of the answer; `no_answer` without one */
    status: string;
    /** The tick of the request, or that of an answer to no request */
    tick: number;
    /** The output of the answer; null without one */
    value: unknown;
  })[] | number;
  /** The path of the repeat that came to its limit and ended the run; null if none did */
  limit: string | null;
  /** The number of pure nodes; 0 for a run of no graph */
  nodes: number;
  /** Whether the run of a graph did not end */
  open: boolean;
  /** The run */
  run: string;
  schema: "dendrer.frontier/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The number of results of host functions, which are tested and not pure by construction */
  tested: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
};

/** The document `dendrer.heatmap/1`. */
export type Heatmap = {
  /** Whether no node was left out because of the limit */
  complete: boolean;
  /** The formula of the value */
  formula: string;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** The agent */
    agent: string | null;
    /** The name of the node */
    node: string;
    /** The run */
    run: string;
    /** The tick */
    tick: number;
    /** The value */
    value: number;
  }[] | number;
  /** The metric */
  metric: "branching" | "divergence" | "anomaly" | "confidence";
  schema: "dendrer.heatmap/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The number of nodes */
  total: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
};

/** The document `dendrer.layout/1`. */
export type Layout = {
  /** The last tick that is drawn; null if the picture has no ticks */
  at: number | null;
  /** The edges */
  edges: {
    /** The id of the node that it begins at */
    from: string;
    /** The points that it passes, each with its distance from the left and from above */
    points: number[][];
    /** The relation */
    rel: string;
    /** The id of the node that it leads to */
    to: string;
  }[];
  /** The height */
  height: number;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  /** The nodes */
  nodes: {
    /** The height */
    h: number;
    /** The id, which no other node has */
    id: string;
    /** The kind, like `transition`, `edge` or that of a commitment */
    kind: string;
    /** The text in the box */
    label: string;
    /** The run; null if the node is of no run */
    run: string | null;
    /** A word for its end or its state; null if nothing is of note */
    status: string | null;
    /** The tick; null if the node has no tick */
    tick: number | null;
    /** The width */
    w: number;
    /** The left side */
    x: number;
    /** The upper side */
    y: number;
  }[];
  /** The kind of the picture */
  of: "causal" | "compiled" | "commitments" | "steps" | "forks";
  /** The run */
  run: string;
  schema: "dendrer.layout/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The width */
  width: number;
};

/** The document `dendrer.log/1`. */
export type Log = {
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** The certainty */
  certainty?: "recorded";
  /** The fields that were erased or withheld, as far as they decide what is listed */
  closed?: {
    /** The field */
    path: string;
    /** The number of records in which it is not known */
    records: number;
  }[];
  /** Whether no record was left out because of the limit */
  complete?: boolean;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** The agent; null if the record names none */
    agent: string | null;
    /** The number of anomalies */
    anomalies: number;
    /** The kind of the author */
    author: "agent" | "runtime" | "user" | "kernel" | "institution";
    /** The confidence of the intent; null if none was given */
    confidence: number | null;
    /** The content, if whole records were asked for */
    content?: Record<string, unknown>;
    /** The id */
    id: string;
    /** The kind of the record */
    kind: "run" | "transition" | "refusal" | "register" | "erase" | "key" | "end" | "map";
    /** The links to other records, if they were asked for */
    links?: {
      /** The relation */
      rel: "caused_by" | "evidence" | "fork_of" | "merges" | "picked_from" | "predecessor";
      /** The run; null if the record is in no run of this source */
      run: string | null;
      /** The tick; null if the record is in no run of this source */
      tick: number | null;
    }[];
    /** The namespace, with the ids of its tasks */
    namespace?: string;
    /** The nodes that follow a checkpoint; null for a write */
    next?: string[] | null;
    /** The nodes of the step, or the node that writes */
    node?: string;
    /** The time that the source of an imported transition states; absent if it states none */
    observed_at?: string;
    /** The number of a refusal, from 1, as RUN@refused:N names it; absent for a transition */
    refused?: number;
    /** The source of a checkpoint, as its metadata states it; null for a write */
    source?: string | null;
    /** The step that a checkpoint ends, or that a write is of; null if its checkpoint is missing */
    step?: number | null;
    /** The record in one line */
    summary: string;
    /** The tick; null for a record off the chain */
    tick: number | null;
    /** The time */
    ts: string;
    /** The type; null for a record without one */
    type: string | null;
    /** The places that the transition left unknown; absent if it left none */
    unknown?: {
      /** The word for the cause */
      code: string;
      /** The place, as a JSON pointer */
      place: string;
      /** The tick from which on it is unknown */
      tick: number;
    }[];
  }[] | number;
  /** The tick to go on from; null if no later record was left out because of the limit */
  next?: number | null;
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The number of refusals */
  refusals?: number;
  /** The run */
  run: string;
  schema: "dendrer.log/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The id of the newest transition; null if it is missing */
  tip?: string | null;
  /** The number of transitions in the range; of records that were printed, for a log that was followed */
  total: number;
  /** How much of the log is signed and verified here; absent for a bundle */
  trust?: {
    /** Those that are signed */
    signed: number;
    /** The records of the log */
    size: number;
    /** Those that are signed, or in groups with the tag of a writer who may; null where neither key nor writer's secret is */
    tagged: number | null;
    /** Those that a verification of the whole log on this machine found intact */
    verified: number;
  };
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
};

/** The document `dendrer.progress/1`. */
export type Progress = {
  /** The number of units so far */
  done: number;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  /** The number of units a second */
  rate: number;
  /** The seconds that are left at that rate; null if they are not known */
  remaining_s: number | null;
  schema: "dendrer.progress/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The number of all units; null if it is not known */
  total: number | null;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The unit that is counted */
  unit: string;
  /** The work */
  what: string;
};

/** The document `dendrer.runs/1`. */
export type Runs = {
  /** Whether no run was left out because of the limit */
  complete: boolean;
  /** The number of runs that are left out because they are dropped */
  hidden: number;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** Whether the run is the casebook */
    casebook: boolean;
    /** Whether the run is left out of lists */
    dropped: boolean;
    /** Whether the run was closed */
    ended: boolean;
    /** The place in the parent, for a fork */
    forked_from: {
      /** The parent */
      run: string;
      /** The last tick that is shared */
      tick: number;
    } | null;
    /** The goal, or the tag of a goal that was erased */
    goal: string | null;
    /** Whether it is a fork of a graph's run with substituted values of edges */
    hypothetical: boolean;
    /** The name */
    name: string;
    /** The rules by which secrets are taken out */
    redaction: string | null;
    /** The number of refusals */
    refusals: number;
    /** The stage at which the run is recorded */
    stage: number | null;
    /** Whether the last state was read to see if it has unknown places */
    state_read: boolean;
    /** Whether the run was generated and not recorded */
    synthetic: boolean;
    /** The thread that it is of, if the name is made of a digest; absent otherwise */
    thread?: string;
    /** The last tick; null if it is not known */
    ticks: number | null;
    /** The id of the newest record of the chain */
    tip: string;
    /** Whether the import of the run was stopped before its end; absent if it was not */
    unfinished?: boolean;
    /** The unknown places of the last state; absent if every place is known */
    unknown?: {
      /** The word for the cause */
      code: string;
      /** The place, as a JSON pointer */
      place: string;
      /** The tick from which on it is unknown */
      tick: number;
    }[];
    /** The time of the newest record */
    updated: string;
    /** Whether a verification on this machine found the run intact as it is now */
    verified_here: boolean;
  }[] | number;
  /** The number of runs that fit the conditions */
  matching: number;
  /** The last run of the list, to go on after; null if none was left out because of the limit */
  next: string | null;
  schema: "dendrer.runs/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The number of runs in the store */
  total: number;
  /** How much of the log is signed and verified here; absent for a bundle */
  trust?: {
    /** Those that are signed */
    signed: number;
    /** The records of the log */
    size: number;
    /** Those that are signed, or in groups with the tag of a writer who may; null where neither key nor writer's secret is */
    tagged: number | null;
    /** Those that a verification of the whole log on this machine found intact */
    verified: number;
  };
  /** The runs for which the condition could not be judged */
  unclear: {
    /** The run */
    run: string;
    /** The reason */
    why: string;
  }[];
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
};

/** The document `dendrer.show/1`. */
export type Show = {
  /** The kind of the author */
  author: "agent" | "runtime" | "user" | "kernel" | "institution";
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** The certainty */
  certainty: "recorded";
  /** The changes of the state; null if a value was erased or withheld */
  changes: {
    /** The value after; absent if it is missing */
    after?: unknown;
    /** The value before; absent if there was none */
    before?: unknown;
    /** The place */
    path: string;
  }[] | null;
  /** The fields that were erased or withheld */
  closed: string[];
  /** The content */
  content: Record<string, unknown>;
  /** The conflicts of agents that it kept or decided; absent if there were none */
  decided?: {
    /** The tick of the sync node */
    at: number;
    /** The place, as a JSON pointer */
    path: string;
    /** The strategy */
    rule: "manual" | "lww" | "confidence" | "policy";
    /** The value of each agent */
    values: {
      /** Whether its confidence is no number from 0 to 1, and counts as 0 */
      misread?: boolean;
      /** Whether the source removed it */
      removed: boolean;
      /** The agent; empty for the beginning of the run */
      source: string;
      /** The tick of the write */
      tick: number;
      /** The value; null if the source removed it */
      value: unknown;
    }[];
    /** The side that the strategy took; null if all were kept */
    winner: {
      /** Whether its confidence is no number from 0 to 1, and counts as 0 */
      misread?: boolean;
      /** Whether the source removed it */
      removed: boolean;
      /** The agent; empty for the beginning of the run */
      source: string;
      /** The tick of the write */
      tick: number;
      /** The value; null if the source removed it */
      value: unknown;
    } | null;
  }[];
  /** The id */
  id: string;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  /** The kind of the record */
  kind: "run" | "transition" | "refusal" | "register" | "erase" | "key" | "end" | "map";
  /** The links to other records */
  links: {
    /** The id of the record */
    hash: string;
    /** The relation */
    rel: "caused_by" | "evidence" | "fork_of" | "merges" | "picked_from" | "predecessor";
  }[];
  /** The units that it put together from the states of its parents; absent if it did not have to */
  merged?: string[];
  /** The id of the record before it in the chain */
  prev: string | null;
  /** The origin, if it was asked for */
  provenance?: {
    /** The agent, as recorded */
    agent: string | null;
    /** The kind of the author */
    author: string;
    /** The contract that the kernel held the transition to */
    contract: string | null;
    /** The decision about the transition; null if none is found */
    decided: {
      /** The decision */
      decision: string;
      /** The run of the decision */
      run: string;
      /** The tick of the decision */
      tick: number;
      /** The version of the policy; null if none was recorded */
      version: string | null;
    } | null;
    /** The links of the record */
    links: {
      /** The agent of the record */
      agent: string | null;
      /** The id of the record */
      hash: string;
      /** The relation */
      rel: "caused_by" | "evidence" | "fork_of" | "merges" | "picked_from" | "predecessor";
      /** The run of the record; null if it is not on a chain here */
      run: string | null;
      /** The tick of the record */
      tick: number | null;
      /** The type of the record */
      type: string | null;
    }[];
    /** The number of records in the log */
    log: number;
    /** The digest of the pack */
    pack: string | null;
    /** The position in the log, from zero; null if the log does not contain the record */
    position: number | null;
    /** The reducer of the run */
    reducer: string | null;
    /** The policy rules of the run, which the kernel judges */
    rules: string[];
    /** The run */
    run: string;
    /** The number in the branch of the agent */
    seq: number | null;
    /** Whether the newest checkpoint covers the record */
    signed: boolean;
    /** The stage at which the run was recorded */
    stage: number | null;
  };
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The run; null for a record of no run */
  run: string | null;
  schema: "dendrer.show/1";
  /** The state before or after, or its value at the path, if it was asked for */
  state?: unknown;
  /** The unknown places of the state that was asked for; absent if every place is known */
  state_unknown?: {
    /** The word for the cause */
    code: string;
    /** The place, as a JSON pointer */
    place: string;
    /** The tick from which on it is unknown */
    tick: number;
  }[];
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The tick; null for a record off the chain */
  tick: number | null;
  /** The time */
  ts: string;
  /** The type; null for a record without one */
  type: string | null;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The places that the transition left unknown; absent if it left none */
  unknown?: {
    /** The word for the cause */
    code: string;
    /** The place, as a JSON pointer */
    place: string;
    /** The tick from which on it is unknown */
    tick: number;
  }[];
};

/** The document `dendrer.state/1`. */
export type State = {
  /** The agent, if the state is that along its causal ancestors */
  agent: string | null;
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** The certainty */
  certainty: "recorded" | "derived" | "unavailable";
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  /** The place; empty for the whole state */
  path: string;
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The run */
  run: string;
  schema: "dendrer.state/1";
  /** The root of the whole state */
  state_root: string;
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The tick */
  tick: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The unknown places that the value meets; absent if every place is known */
  unknown?: {
    /** The word for the cause */
    code: string;
    /** The place, as a JSON pointer */
    place: string;
    /** The tick from which on it is unknown */
    tick: number;
  }[];
  /** The value; null if the place is unknown and nothing is there */
  value: unknown;
  /** The side of the tick */
  window: "before" | "after";
};

/** The document `dendrer.state-difference/1`. */
export type StateDifference = {
  /** The state that it is compared with */
  base: {
    /** The run */
    run: string;
    /** The tick */
    tick: number;
  };
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** The certainty */
  certainty: "recorded" | "unavailable";
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** The value after; absent if it is missing */
    after?: unknown;
    /** The value before; absent if there was none */
    before?: unknown;
    /** The place */
    path: string;
  }[] | number;
  /** The only place that is compared; empty for the whole state */
  path: string;
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The run */
  run: string;
  schema: "dendrer.state-difference/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The tick */
  tick: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The unknown places that the comparison meets; absent if every place is known */
  unknown?: {
    /** The word for the cause */
    code: string;
    /** The place, as a JSON pointer */
    place: string;
    /** The tick from which on it is unknown */
    tick: number;
  }[];
  /** The side of the ticks */
  window: "before" | "after";
};

/** The document `dendrer.steps/1`. */
export type Steps = {
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items?: {
    /** The action; null if it is erased or withheld, or the row cannot be read */
    action: "user_input" | "tool_call" | "llm_reply" | "cli_cmd" | "gate" | "gate_check" | "external" | "payment" | "training_step" | "eval_phase" | "reward" | "checkpoint" | "memory_read" | "memory_write" | "heartbeat_cycle" | "sticky_note" | "secret_mint" | "secret_resolve" | "secret_revoke" | "clipboard_write" | "data_open" | "data_read" | "data_transform" | "data_publish" | "resource_open" | "resource_act" | "resource_close" | null;
    /** The coherence of each channel */
    channel_coherence: Record<string, unknown> | null;
    /** Whether the transition is read as a step and none was recorded */
    derived: boolean;
    /** The duration in milliseconds */
    duration_ms: number | Record<string, unknown> | null;
    /** The tree of an expression */
    eml_tree?: unknown;
    /** The text of that time in its line, if it is another */
    given_at?: string;
    /** The input */
    input?: unknown;
    /** The phase lock */
    kuramoto_r: number | Record<string, unknown> | null;
    /** The name */
    name: string;
    /** The members that are erased or withheld, or of a row that cannot be read */
    not_known?: string[];
    /** The other members of the row */
    others?: Record<string, unknown>;
    /** The output */
    output?: unknown;
    /** The id of the step in which it is nested */
    parent_id: string | null;
    /** The coherence */
    phi: number | Record<string, unknown> | null;
    /** The call of a probe */
    probe_call?: unknown;
    /** The run */
    run: string;
    /** The session */
    session_id: string | null;
    /** The time at which it began */
    started_at: string;
    /** The id of the step */
    step_id: string;
    /** Whether it succeeded; null if it is not known */
    success: boolean | null;
    /** The tick */
    tick: number;
    /** The trace, which may span several runs */
    trace_id: string | null;
  }[] | number;
  schema: "dendrer.steps/1";
  /** The number of steps */
  shown: number;
  /** The counts of each action, with --stats */
  stats?: {
    /** The action */
    action: "user_input" | "tool_call" | "llm_reply" | "cli_cmd" | "gate" | "gate_check" | "external" | "payment" | "training_step" | "eval_phase" | "reward" | "checkpoint" | "memory_read" | "memory_write" | "heartbeat_cycle" | "sticky_note" | "secret_mint" | "secret_resolve" | "secret_revoke" | "clipboard_write" | "data_open" | "data_read" | "data_transform" | "data_publish" | "resource_open" | "resource_act" | "resource_close";
    /** The number of steps */
    count: number;
    /** The number of steps that are known to have failed */
    failed: number;
    /** The median duration in milliseconds */
    p50_ms: number | Record<string, unknown> | null;
    /** The duration in milliseconds that 95 % of the steps do not exceed */
    p95_ms: number | Record<string, unknown> | null;
    /** The share that succeeded, of the steps of which it is known */
    success_rate: number | Record<string, unknown> | null;
  }[];
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
};

/** The document `dendrer.timeline/1`. */
export type Timeline = {
  /** The number of bins */
  bins: number;
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** The first tick */
  from: number;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** The number of anomalies */
    anomalies: number;
    /** The number of places that were written */
    changes: number;
    /** The number of fields that were erased or withheld */
    closed: number;
    /** The lowest confidence; null if none was given */
    confidence: number | null;
    /** The number of transitions that are denied */
    denied: number;
    /** The number of results of calls that failed */
    failed: number;
    /** The number of forks of a transition of the bin */
    forks: number;
    /** The first tick */
    from: number;
    /** The number of gaps: transitions in place of a part of the source that is missing */
    gaps: number;
    /** The number of transitions of each lane */
    lanes: number[];
    /** The number of transitions with several predecessors */
    merges: number;
    /** The number of transitions */
    n: number;
    /** The number of refusals that were judged against a transition of the bin */
    refusals: number;
    /** The last tick */
    to: number;
    /** The number of transitions of each type */
    types: Record<string, number>;
    /** The number of places that were left unknown */
    unknown: number;
  }[] | number;
  /** The lanes, the one with the most transitions first */
  lanes: {
    /** The agent; null for the agents that share the last lane, and for transitions without one */
    agent: string | null;
    /** The number of agents that share the lane */
    agents: number;
    /** The number of transitions of the range */
    total: number;
  }[];
  /** The number of marks of each kind that are left out */
  left_out: Record<string, number>;
  /** Ticks of note, the worst first; at most 200 */
  marks: {
    /** The kind */
    kind: string;
    /** The transition, the refusal or the predicate in one line */
    text: string;
    /** The tick */
    tick: number;
  }[];
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The run */
  run: string;
  schema: "dendrer.timeline/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The last tick */
  to: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The verdicts of each predicate that was asked for */
  verdicts: {
    /** The certainty of the onset */
    certainty: "exact" | "heuristic" | "unavailable";
    /** For each bin its verdicts, in order */
    items: string[][];
    /** The first tick of the range that is violated; null if none is */
    onset: number | null;
    /** The name or the expression */
    predicate: string;
  }[];
  /** The number of ticks of a bin, a power of two; a bin begins at a multiple of it */
  width: number;
};

/** The document `dendrer.transcript/1`. */
export type Transcript = {
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** The agent; null if none is named */
    agent: string | null;
    /** The number of anomalies of the transition */
    anomalies: number;
    /** The id of the call */
    call_id: string | null;
    /** The number of places that the transition wrote */
    changes: number;
    /** The number of agents or graphs around the one that speaks */
    depth: number;
    /** The words as a value, where they are an object or a list in JSON; else null */
    json: unknown;
    /** The kind */
    kind: "message" | "call" | "result" | "decision" | "step" | "note" | "gap" | "marker" | "refusal";
    /** The tool, the node or the type */
    name: string | null;
    /** The tick of the call that an answer is of */
    of: number | null;
    /** The answer to a call; null for anything else */
    output: unknown;
    /** The parameters of a call; null for anything else */
    params: unknown;
    /** The speaker */
    role: "user" | "agent" | "tool" | "system" | "kernel" | "runtime";
    /** The status of an answer, or a decision */
    status: string | null;
    /** The step of a graph */
    step: number | null;
    /** The words; any value but a text as JSON */
    text: string | null;
    /** The tick; of a refusal the one that it was judged against */
    tick: number;
  }[] | number;
  /** The tick at which the next part begins; null if this is the last one */
  next: number | null;
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The run */
  run: string;
  schema: "dendrer.transcript/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** The number of transitions of the range */
  total: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
};

/** The document `dendrer.verify/1`. */
export type Verify = {
  /** The findings, in the order of the log */
  findings: {
    /** The code */
    code: string;
    /** The value that was computed from the record */
    computed?: string | null;
    /** The value on record in place of the one that was given */
    found?: string | null;
    /** The value that was given with the question */
    given?: string | null;
    /** The finding in one sentence */
    message: string;
    /** The position in the log; null if it is not known */
    position: number | null;
    /** The run; null if it concerns none */
    run: string | null;
    /** The value on record */
    stored?: string | null;
    /** The tick; null if it concerns none */
    tick: number | null;
  }[];
  /** The number of findings that are left out */
  findings_left_out: number;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  items: {
    /** Whether the run was closed */
    ended: boolean;
    /** The id of the first record */
    genesis: string | null;
    /** The part of an import that is on record; absent if it was not stopped before its end */
    import_unfinished?: {
      /** The number of ticks that are on record */
      items: number;
      /** The number of ticks that the source makes */
      of: number;
    };
    /** The first tick from which on a place is unknown; null if every place is known */
    incomplete_from: number | null;
    /** The last tick before the first finding; null if it is missing */
    last_good: number | null;
    /** The ticks whose records were opened; null for all */
    part: {
      /** The first tick */
      from: number;
      /** The last tick */
      to: number;
    } | null;
    /** The number of refusals */
    refusals: number;
    /** The replay; null if it was not asked for */
    replay: {
      /** The code of the fault */
      code?: string;
      /** The fault in words */
      message?: string;
      /** Whether each state was reproduced */
      ok: boolean;
      /** The number of ticks that were replayed */
      ticks?: number;
    } | null;
    /** The run */
    run: string;
    /** Whether every place of the last state is known; unavailable if a change is missing, erased or withheld */
    state: "known" | "incomplete" | "unavailable";
    /** The last tick */
    ticks: number;
    /** The id of the newest record of the chain */
    tip: string | null;
    /** The number of transitions */
    transitions: number;
    /** The unknown places of the last state; absent if every place is known */
    unknown?: {
      /** The word for the cause */
      code: string;
      /** The place, as a JSON pointer */
      place: string;
      /** The tick from which on it is unknown */
      tick: number;
    }[];
  }[] | number;
  /** The facts, one for each line of the text */
  lines: {
    /** The comparison with another log of the same key; absent without one */
    compared?: {
      /** The size up to which it holds; null if they were not compared */
      at: number | null;
      /** In words, that the log ends before the other one, or was rewritten; absent if it is not known to */
      older?: string;
      /** The other log, as it was named */
      with: string;
      /** The result */
      word: "same history" | "NOT COMPARED" | "EQUIVOCATION";
    };
    /** Data that follows from the log */
    derived: {
      /** The data */
      what: string | null;
      /** The result */
      word: "OK" | "damaged" | "none";
    };
    /** Remarks that are no faults */
    notes: {
      /** The later time of an earlier record */
      after?: string;
      /** Its kind */
      code: "stage_0" | "dated_back" | "untagged" | "adopted" | "although" | "not_erased";
      /** The place of a value that stays in a bundle, as its header has it, or that was to be erased */
      place?: string;
      /** The position in the log; null if the remark is on no record */
      position: number | null;
      /** The number of records of a group without a tag, or of those that were adopted */
      records?: number;
      /** The run; null if it concerns none */
      run: string | null;
      /** The time of a record that is dated back */
      ts?: string;
    }[];
    /** Whether every byte is as it was sealed */
    record: {
      /** The places that do not hold */
      faults: {
        /** The code */
        code: string;
        /** The position in the log; null if it is not known */
        position: number | null;
        /** The run; null if it concerns none */
        run: string | null;
        /** The tick; null if it concerns none */
        tick: number | null;
      }[];
      /** The checks that were left out */
      left_out: string[];
      /** The number of records of the runs that were opened */
      records: number;
      /** The result */
      word: "INTACT" | "INTACT so far" | "TAMPERED" | "MALFORMED" | "UNVERIFIABLE";
    };
    /** Whether every transition was made again */
    replay: {
      /** The tick at which it ended; null if it did not, or has none */
      at: number | null;
      /** The missing part, in words; null if replay was not stopped by one */
      missing: string | null;
      /** The result */
      word: "OK" | "NOT RUN" | "DIVERGED" | "UNVERIFIABLE";
    };
    /** The keys that signed the log */
    signer: {
      /** The keys, with the sizes that each signed */
      keys: {
        /** The size of the log from which on it signs */
        from: number;
        /** How it came into force, or whether it was revoked */
        how: "first" | "rotated" | "recovered" | "revoked";
        /** The verifier key, which checks checkpoints */
        key: string;
        /** The last size over which its signature counts; of the key in force the size that it has signed, null if none */
        to: number | null;
      }[];
      /** Whether this machine, or a key that was given, knows the newest of them */
      known: boolean;
    };
    /** Whether every place of the last state is known */
    state: {
      /** The cause in words; null if every place is known */
      cause: string | null;
      /** The first tick from which on a place is unknown; null if every place is known, or the tick is not */
      from: number | null;
      /** The result */
      word: "KNOWN" | "INCOMPLETE";
    };
    /** Whether every record is here */
    whole: {
      /** The records of no run that are missing; absent if none is */
      apart?: {
        /** Their number */
        count: number;
        /** Their kind */
        kind: "erase" | "key" | "register";
      }[];
      /** The size of the signed log; null if nothing is signed */
      checkpoint: number | null;
      /** The time of the map that counts the records; null if every entry was read, or there is no map */
      map_ts: string | null;
      /** The runs of which records may be missing */
      partial: {
        /** The number of ends that are missing; null if it is not known */
        ends: number | null;
        /** The number of erasures that are missing; null if it is not known */
        erasures: number | null;
        /** The number of refusals that are missing; null if it is not known */
        refusals: number | null;
        /** The run */
        run: string;
        /** The number of transitions that are missing; null if it is not known */
        transitions: number | null;
        /** The reason */
        why: "no_map" | "after_map" | "missing" | "parent_refusals";
      }[];
      /** The result */
      word: "COMPLETE" | "partial";
    };
    /** The witnesses that agree */
    witness: {
      /** The witnesses */
      by: {
        /** The number of ticks or records that follow */
        after: number;
        /** The kind */
        kind: "tip" | "checkpoint" | "key";
        /** The run, of a tip */
        run?: string;
        /** The tick of a tip, or the size of the log */
        to: number;
        /** Of a tip: the number of refusals and erasures of the run that it does not cover; absent if it covers all */
        uncovered?: number;
      }[];
      /** The result */
      word: "WITNESSED" | "UNWITNESSED";
    };
  };
  /** The log as a whole */
  log: {
    /** The root; null if it cannot be computed */
    root: string | null;
    /** The number of records that the newest checkpoint covers; null if nothing is signed */
    signed: number | null;
    /** The number of records */
    size: number;
  };
  /** The log, as it was named */
  name: string;
  /** The parts that were not checked, each in words */
  not_checked: string[];
  /** The number of records that were opened and compared */
  records: number;
  schema: "dendrer.verify/1";
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The worst of the findings in one word */
  verdict: "VERIFIED" | "INTACT" | "UNVERIFIABLE" | "DIVERGED" | "TAMPERED" | "EQUIVOCATION" | "MALFORMED";
  /** The witnesses that agree */
  witnesses: string[];
};

/** The document `dendrer.version/1`. */
export type Version = {
  /** The version of bundles that are written */
  bundle: number;
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  /** The version of the rules of the kernel */
  kernel: number;
  /** The version of records that are written */
  record: number;
  schema: "dendrer.version/1";
  /** The version of the files of a store */
  store: number;
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The version of the program */
  version: string;
};

/** The document `dendrer.why/1`. */
export type Why = {
  /** For a run of stage 0: what the answer does not claim */
  caveat?: string;
  /** The certainty */
  certainty: "recorded" | "heuristic" | "unavailable";
  /** The values of these writes, or of the last write of a place without a number, each with the earliest transition that has an equal one */
  first_seen?: {
    /** The agent of the transition */
    agent?: string;
    /** The certainty */
    certainty: "heuristic";
    /** The number of further transitions up to the write that have the value */
    others?: number;
    /** The place in the content of its record, through texts that hold JSON; in the state below /state */
    path?: string;
    /** The place of the write */
    place: string;
    /** The tick of the transition; 0 is the state with which the run begins. Null if no transition up to the write has the value */
    tick: number | null;
    /** The tool of the call that the place is part of */
    tool?: string;
    /** The type of the transition */
    type?: string;
    /** The number of transitions before it, or up to the write, that have a value that was erased, withheld, redacted or not recorded */
    unread: number;
    /** The value */
    value: unknown;
    /** The object around the value if it has at most 140 characters of JSON, else the value */
    within?: unknown;
    /** The tick of the write */
    write: number;
  }[];
  /** The place whose writes are followed: the list, for an item of one */
  followed: string;
  /** The ticks whose change was erased or withheld */
  hidden: number[];
  /** The runs that were read of which records are or may be missing, each with the reason in words */
  incomplete?: string[];
  /** The places and the ticks that moved and first_seen are about */
  looked?: {
    /** The first tick; 0 is the state with which the run begins */
    from: number;
    /** The number of ticks whose change was erased or withheld */
    hidden: number;
    /** The places */
    places: string[];
    /** The broken rule that reads the places, for kernel.policy_compliant */
    rule?: string;
    /** The last tick */
    to: number;
    /** Whether every transition up to the last tick was looked at */
    whole: boolean;
    /** The number of writes of the places */
    writes: number;
  };
  /** The writes with the largest change of a number to the places that were looked at, the largest first; three at most */
  moved?: {
    /** The value after */
    after: unknown;
    /** The agent; null if the record names none */
    agent: string | null;
    /** The value before; absent if there was none */
    before?: unknown;
    /** The change, in decimals as they are printed; null if the value before is no number, or not known */
    change: unknown;
    /** The place */
    place: string;
    /** The tick */
    tick: number;
    /** The tool of the call; absent if the record names none */
    tool?: string;
    /** The type of the transition */
    type: string | null;
  }[];
  /** The place that was asked about */
  path: string;
  /** The store and the bundles that were read, as paths */
  read_from?: string[];
  /** The source of the places that a transition read; unknown for recorded links alone */
  reads: "rules" | "unknown";
  /** The last write of the place; null if the run began with it and no merge took it from another */
  root: {
    /** The agent; null if the record names none */
    agent: string | null;
    /** The reason why it is an input; absent for the write that was asked about */
    because?: {
      /** The certainty that it is one */
      certainty: "exact" | "recorded" | "heuristic";
      /** The way in which it is an input */
      how: "stood there" | "caused_by" | "evidence" | "may read";
      /** The place that a rule may read */
      path?: string;
      /** The tick of the input, in a causal chain */
      tick?: number;
      /** Whether the rule may read the place as a whole */
      whole?: boolean;
    };
    /** The id */
    id: string;
    /** The inputs, each as this object */
    inputs: Record<string, unknown>[];
    /** The operations of the transition there */
    ops?: Record<string, unknown>[];
    /** The place that is followed; absent if a link led to the transition */
    path?: string;
    /** The run that the transition is of; absent for the one that was asked about */
    run?: string;
    /** The reason why the inputs are not listed; null if they are */
    stops: "depth" | "above" | "other agent" | "size" | "unknown" | "nothing" | null;
    /** The record in one line */
    summary: string;
    /** The tick */
    tick: number;
    /** The type; null for a record without one */
    type: string | null;
  } | null;
  /** The run */
  run: string;
  schema: "dendrer.why/1";
  /** The last write of the place in each run from which a merge took it; absent if a transition of the run wrote it */
  sources?: {
    /** The place that was written */
    path: string;
    /** The run */
    run: string;
    /** The tick */
    tick: number;
  }[];
  /** The fault of a record that is not what was signed */
  tampered?: {
    /** The code of the fault, as `dendrer explain` takes it */
    code: string;
    /** The fault in one sentence */
    message: string;
  };
  /** Whether there is a value at the place */
  there: boolean;
  /** The tick at which the value is looked at */
  tick: number;
  /** Whether an import of a run that was read was stopped before its end */
  unfinished?: boolean;
  /** The unknown places that the answer reads; absent if every place is known */
  unknown?: {
    /** The word for the cause */
    code: string;
    /** The place, as a JSON pointer */
    place: string;
    /** The tick from which on it is unknown */
    tick: number;
  }[];
  /** The value; null if it is missing */
  value: unknown;
};
