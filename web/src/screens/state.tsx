// The state at a tick: a tree of places with what changed, and the value of the chosen one.

import { useEffect, useMemo } from "preact/hooks";
import { useSignal, type Signal } from "@preact/signals";
import { askText, at, has, known, list, useAnswer } from "../api.ts";
import type { Failure, State, StateDifference } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { plain } from "../pure/invisible.ts";
import { names, pointer, shown, type Change } from "../pure/places.ts";
import { write } from "../pure/json.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { entries, head, kindOf, mark, oneLine } from "../pure/values.ts";
import { runs } from "../store.ts";
import { Buttons, CopyValue } from "../parts/copy.tsx";
import { Answered, Fault } from "../parts/fault.tsx";
import { Changes } from "../parts/changes.tsx";
import { Hash, T } from "../parts/text.tsx";
import { Places } from "../parts/tick.tsx";
import { counted, Line, MarkOf, Missing, Tree } from "../parts/value.tsx";

const SHOWN = 300;

export function StateScreen({ run, tick }: { run: string; tick: number }) {
  const typed = query.value.get("path") ?? "";
  const window = query.value.get("window") === "before" ? "before" : "after";
  const given = query.value.get("base");
  const base = given ?? (tick > 0 ? `${run}@${tick - 1}` : null);
  const mode = query.value.get("mode") ?? "tree";
  const max = useMax();
  const read = usePlace(run, tick, typed);
  const place = read.place;
  const whole = useAnswer<State>(max.value === undefined ? null : at(run, tick, "state", { window: window === "before" ? window : null, max: max.value }));
  const difference = useAnswer<StateDifference>(base ? at(run, tick, "state", { base }) : null);
  const changed = useMemo(() => {
    const map = new Map<string, Change>();
    for (const change of list(known(difference.value)?.items)) map.set(change.path, change);
    return map;
  }, [difference.value]);
  const words = ["dendrer", "state", `${run}@${tick}`, ...(typed ? ["--path", shown(typed)] : []), ...(given ? ["--base", given] : []), ...(window === "before" ? ["--window", "before"] : [])];
  const document = known(whole.value);
  return (
    <div class="state">
      <div class="top">
        <h1 tabIndex={-1}>State {window} tick {tick}</h1>
        <Buttons words={words} citation={document ? `${run}@${tick} state root ${document.state_root}` : null} />
      </div>
      <Controls tick={tick} given={given} base={base} mode={mode} window={window} />
      {read.failure && <Fault of={read.failure} />}
      {difference.value.state === "failed" && <Fault of={difference.value.failure} />}
      <Answered answer={whole.value}>
        {(state) => (
          <>
            <Places unknown={state.unknown} />
            {state.caveat && <p class="dim"><T of={state.caveat} /></p>}
            {mode === "diff" ? (
              <section><h2>{changed.size} places differ from {base ? <T of={base} limit={100} /> : "nothing"}</h2><Changes run={run} tick={tick} of={[...changed.values()]} /></section>
            ) : mode === "raw" ? (
              <Raw run={run} tick={tick} place={place} state={state} />
            ) : (
              <div class="state-split">
                <nav class="tree" aria-label="places of the state">
                  <ul><Branch value={state.value} path={[]} changed={changed} chosen={place ?? ""} /></ul>
                </nav>
                <section class="value" aria-live="polite">
                  <h2><T of={shown(place ?? typed)} limit={200} /></h2>
                  {place !== null ? <Chosen run={run} tick={tick} place={place} state={state} change={changed.get(place)} /> : !read.failure && <p class="wait" aria-busy="true">asking ..</p>}
                </section>
              </div>
            )}
            <p class="dim">state root <Hash of={state.state_root} /> certainty {state.certainty}</p>
          </>
        )}
      </Answered>
    </div>
  );
}

type ControlsProps = { tick: number; given: string | null; base: string | null; mode: string; window: string };

/** What the state is compared with, how it is shown, and on which side of the tick. */
function Controls({ tick, given, base, mode, window }: ControlsProps) {
  const text = useSignal("");
  return (
    <form class="filters" onSubmit={(event) => { event.preventDefault(); setQuery({ base: text.value.trim() }); }}>
      <label for="base">compared with</label>
      <input id="base" list="bases" value={given ?? ""} placeholder={base ?? "nothing"} onInput={(event) => (text.value = event.currentTarget.value)} autocomplete="off" />
      <datalist id="bases">{list(runs.value?.items).slice(0, 50).map((one) => <option key={one.name} value={`${one.name}@${Math.min(tick, one.ticks ?? tick)}`} />)}</datalist>
      <button type="submit" class="small">compare</button>
      {given && <button type="button" class="small" onClick={() => setQuery({ base: null })}>tick before</button>}
      <div class="views" role="group" aria-label="mode">
        {(["tree", "diff", "raw"] as const).map((one) => <button type="button" key={one} class="small" aria-pressed={mode === one} onClick={() => setQuery({ mode: one === "tree" ? null : one })}>{one}</button>)}
        {(["before", "after"] as const).map((one) => <button type="button" key={one} class="small" aria-pressed={window === one} onClick={() => setQuery({ window: one === "after" ? null : one })}>{one}</button>)}
      </div>
    </form>
  );
}

/** The pointer of a place that was typed: the server reads every documented form. Null until it is known. */
function usePlace(run: string, tick: number, typed: string): { place: string | null; failure: Failure | null } {
  const isPointer = typed === "" || typed.startsWith("/");
  const answer = useAnswer<State>(isPointer ? null : at(run, tick, "state", { path: typed, max: 64 }));
  if (isPointer) return { place: typed, failure: null };
  if (answer.value.state === "failed") return { place: null, failure: answer.value.failure };
  return { place: answer.value.state === "there" ? answer.value.document.path : null, failure: null };
}

/** The value as JSON. Of one that is cut the first part is here; the copy has all. */
function Raw({ run, tick, place, state }: { run: string; tick: number; place: string | null; state: State }) {
  if (place === null) return null;
  const found = valueAt(state.value, place);
  return (
    <>
      <p class="acts"><CopyValue key={place} ask={() => askText(addressOf(run, tick, place, state))} /></p>
      <pre class="raw" tabIndex={0}><T of={found.isThere ? write(found.value, 2) : "absent"} /></pre>
    </>
  );
}

/** The address of a value as it is. */
function addressOf(run: string, tick: number, place: string, state: State): string {
  return `${pathOf(run)}/t/${tick}/value${queryOf({ path: place, window: state.window === "before" ? "before" : null })}`;
}

/** The most bytes of a value that are asked for at once; null if the server sends values whole, undefined until that is known. */
function useMax(): Signal<number | null | undefined> {
  const max = useSignal<number | null | undefined>(undefined);
  useEffect(() => {
    void has("/run/{run}/t/{tick}/state.json", "max").then((hasMax) => (max.value = hasMax ? 4096 : null));
  }, []);
  return max;
}

/** Finds the value of a place: a name that is missing is absent, and not null. Beyond a cut the value is not here. */
function valueAt(value: unknown, place: string): { isThere: boolean; value: unknown; isCut?: boolean } {
  let here = value;
  for (const name of names(place)) {
    if (mark(here)?.kind === "cut") {
      const part = entries(head(here)).find((entry) => entry.name === name);
      if (!part) return { isThere: false, value: undefined, isCut: true };
      here = part.value;
      continue;
    }
    const found = entries(here).find((entry) => entry.name === name);
    if (!found) return { isThere: false, value: undefined };
    here = found.value;
  }
  return { isThere: true, value: here };
}

function Chosen({ run, tick, place, state, change }: { run: string; tick: number; place: string; state: State; change: Change | undefined }) {
  const local = valueAt(state.value, place);
  // A value behind a cut is asked for by its own place.
  const own = useAnswer<State>(local.isCut ? at(run, tick, "state", { path: place, max: 4096, window: state.window === "before" ? "before" : null }) : null);
  const found = local.isCut && own.value.state === "there" ? { isThere: true, value: own.value.document.value } : local;
  const unknown = state.unknown?.find((one) => place === one.place || place.startsWith(`${one.place}/`));
  return (
    <>
      {local.isCut && own.value.state !== "there" ? (own.value.state === "failed" ? <Fault of={own.value.failure} /> : <p class="wait" aria-busy="true">asking ..</p>) : unknown ? <p><Missing kind="unknown" code={unknown.code} /> from tick {unknown.tick} on</p> : !found.isThere ? <p><Missing kind="absent" /> nothing is at this place now</p> : <Tree value={found.value} />}
      {change && <p><span class="dim">changed:</span> {"before" in change ? <Line value={change.before} /> : <Missing kind="absent" />} <span aria-label="to">-&gt;</span> {"after" in change ? <Line value={change.after} /> : <Missing kind="absent" />}</p>}
      <p class="acts">
        {place !== "" && <a href={pathOf(run, "backtrack") + queryOf({ path: place, t: tick })}>history of this place</a>}
        {place !== "" && <a href={pathOf(run, "why", tick) + queryOf({ path: place })}>why</a>}
        {found.isThere && <CopyValue key={place} ask={() => askText(addressOf(run, tick, place, state))} />}
        {found.isThere && <a href={addressOf(run, tick, place, state)} download="value.txt">download</a>}
      </p>
      {found.isThere && <p class="dim">{mark(found.value)?.word ?? kindOf(found.value)}{typeof found.value === "string" ? `, ${found.value.length.toLocaleString("en")} characters` : ""}</p>}
    </>
  );
}

function Branch({ value, path, changed, chosen }: { value: unknown; path: string[]; changed: ReadonlyMap<string, Change>; chosen: string }) {
  const shown = useSignal(SHOWN);
  const here = pointer(path);
  const isCut = mark(value)?.kind === "cut";
  const all = entries(isCut ? head(value) : value);
  const gone = [...changed.values()].filter((change) => !("after" in change) && pointer(names(change.path).slice(0, -1)) === here);
  return (
    <>
      {all.slice(0, shown.value).map((entry) => <Leaf key={entry.name} name={entry.name} value={entry.value} path={[...path, entry.name]} changed={changed} chosen={chosen} />)}
      {all.length > shown.value && <li><button type="button" class="more" onClick={() => (shown.value += SHOWN)}>{all.length - shown.value} more</button></li>}
      {isCut && <li><MarkOf value={value} /></li>}
      {gone.map((change) => <li key={change.path} class="cut"><span class="sign">-</span><span class="leaf-space" /><a href={queryOf({ ...Object.fromEntries(query.value), path: change.path })}><T of={names(change.path).at(-1) ?? ""} limit={80} /></a> <Missing kind="absent" /></li>)}
    </>
  );
}

function Leaf({ name, value, path, changed, chosen }: { name: string; value: unknown; path: string[]; changed: ReadonlyMap<string, Change>; chosen: string }) {
  const here = pointer(path);
  const kind = kindOf(value);
  const isBranch = (kind === "list" || kind === "object") && entries(value).length > 0;
  const change = changed.get(here);
  const inside = [...changed.keys()].filter((one) => one.startsWith(`${here}/`)).length;
  // Open where something changed or is chosen, until a reader opens or closes it.
  const wish = useSignal<boolean | null>(null);
  const isOpen = isBranch && (wish.value ?? ((inside > 0 || chosen.startsWith(`${here}/`)) && path.length < 40));
  const sign = change ? (!("before" in change) ? "+" : !("after" in change) ? "-" : "~") : inside > 0 ? "·" : "";
  return (
    <li class={sign === "+" ? "add" : sign === "~" ? "alter" : ""}>
      <span class="sign" title={sign === "·" ? `${inside} changes inside` : sign ? "changed" : ""}>{sign}</span>
      {!isBranch && <span class="leaf-space" />}
      {isBranch && <button type="button" class="twist" aria-expanded={isOpen} aria-label={`${isOpen ? "close" : "open"} ${plain(name.slice(0, 60))}`} onClick={() => (wish.value = !isOpen)}><span aria-hidden="true">{isOpen ? "▾" : "▸"}</span></button>}
      <a href={queryOf({ ...Object.fromEntries(query.value), path: here })} aria-current={chosen === here ? "true" : undefined} class={chosen === here ? "chosen" : ""}><T of={name === "" ? '""' : name} limit={80} isOneLine /></a>
      {kind === "mark" ? <> <MarkOf value={value} /></> : !isOpen && <span class="dim"> <T of={isBranch ? counted(kind, entries(value).length) : oneLine(value, 40)} limit={60} /></span>}
      {isOpen && <ul><Branch value={value} path={path} changed={changed} chosen={chosen} /></ul>}
    </li>
  );
}
