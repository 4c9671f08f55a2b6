// The frame around each screen: header, rail of views, scrubber, live region.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ask, at, known, list, of, useAnswer } from "../api.ts";
import type { Badge as BadgeAnswer, ContractCheck, Show, Verify } from "../documents.ts";
import { useKeys } from "../keys.ts";
import { go, query, route, setQuery } from "../nav.ts";
import { speaker } from "../pure/names.ts";
import { utc } from "../pure/time.ts";
import { plain } from "../pure/invisible.ts";
import { shown } from "../pure/places.ts";
import { pathOf, queryOf, type View } from "../pure/route.ts";
import { command } from "../pure/sh.ts";
import { isNumber } from "../pure/json.ts";
import { isRecord } from "../pure/values.ts";
import { goTick, goWrite, item, last, run, runs, tick, version } from "../store.ts";
import { setTheme, theme, type Theme } from "../theme.ts";
import { copy, said } from "./copy.tsx";
import { Name } from "./text.tsx";

export function Header() {
  const name = run.value;
  const stage = item.value?.stage;
  return (
    <header class="header">
      <a class="brand" href="/runs"><svg width="16" height="16" viewBox="0 0 16 16" aria-hidden="true"><path d="M3 15V1M3 9h4l5-5M7 9l5 4" /></svg> dendrer</a>
      <span class="store dim" title="the server of this page">{location.host}</span>
      <label class="hidden" for="run-picker">run</label>
      <select id="run-picker" value={name ?? ""} onChange={(event) => { const to = event.currentTarget.value; go(to === "" ? "/runs" : pathOf(to)); }}>
        <option value="">all runs</option>
        {name !== null && !item.value && <option value={name}>{plain(name)}</option>}
        {list(runs.value?.items).map((one) => <option key={one.name} value={one.name}>{plain(one.name)}</option>)}
      </select>
      {name !== null && stage !== null && stage !== undefined && <span class="chip" title={STAGES[stage] ?? ""}>stage {stage}</span>}
      {name !== null && last.value !== null && <span class="dim ticks-count">{last.value.toLocaleString("en")} ticks</span>}
      {name !== null && <Badge run={name} />}
      {name !== null && tick.value !== null && <InForce run={name} tick={tick.value} />}
      <span class="grow" />
      <label class="hidden" for="theme">theme</label>
      <select id="theme" value={theme.value} onChange={(event) => setTheme(event.currentTarget.value as Theme)}>
        <option value="system">system theme</option><option value="light">light</option><option value="dark">dark</option>
      </select>
      <a class="help-link" href="/help/keys" aria-label="help and keys">?</a>
    </header>
  );
}

/** The contract in force at the moment, where the run has a pack. */
function InForce({ run: name, tick: moment }: { run: string; tick: number }) {
  const show = useAnswer<Show>(at(name, moment, "show", { provenance: true }));
  const hasPack = Boolean(known(show.value)?.provenance?.pack);
  const contract = useAnswer<ContractCheck>(hasPack && (last.value ?? 0) <= CONTRACT_TICKS ? of(name, "contract") : null, version.value);
  if (!hasPack) return null;
  const one = known(contract.value)?.in_force.find((each) => each.from <= moment && moment <= each.to);
  const extended = one?.extensions.filter((each) => each.from <= moment) ?? [];
  return <a class="chip in-force" href={pathOf(name, "contract") + queryOf({ t: moment })} title="the contract in force at this tick">{one ? plain(`${one.name} ${one.version}${extended.length > 0 ? ` + ${extended.map((each) => each.id).join(", ")}` : ""}`).slice(0, 60) : "contract"}</a>;
}

/** A contract check judges every tick, so it is asked for by itself in short runs alone. */
const CONTRACT_TICKS = 20_000;

const STAGES: Record<number, string> = { 0: "nothing was enforced when it was recorded", 1: "policy and authorship were enforced", 2: "a contract was enforced" };

/** The word of the last verification that ended. */
function wordOf(name: string, badge: BadgeAnswer): { word: string; kind: string } {
  const under = badge.state === "checking" ? `checking: ${badge.done.toLocaleString("en")} of ${badge.of.toLocaleString("en")}` : "not checked";
  const verify = badge.verify as Verify | null;
  if (!verify) return { word: under, kind: "none" };
  const one = list(verify.items).find((each) => each.run === name) ?? list(verify.items)[0];
  const isGood = verify.verdict === "INTACT" || verify.verdict === "VERIFIED";
  const broken = verify.findings.find((each) => each.tick !== null);
  const word = [
    isGood || broken === undefined ? verify.verdict : `${verify.verdict} at tick ${broken.tick}`,
    one?.state === "incomplete" ? "unknown places" : "", badge.stale ? (badge.state === "checking" ? under : "grew since") : "",
  ].filter(Boolean).join(", ");
  return { word, kind: isGood ? (badge.stale ? "none" : "good") : verify.verdict === "UNVERIFIABLE" ? "unknown" : "bad" };
}

/** How often a verification that is under way is looked at. */
const LOOK = 700;

/** The verification of the run by this server: it reads the bytes that it serves, and takes over no earlier claim. */
function Badge({ run: name }: { run: string }) {
  const state = useSignal<{ word: string; kind: string; when: string | null }>({ word: "not checked", kind: "none", when: null });
  const end = last.value;
  useEffect(() => {
    if (end === null) return;
    const control = new AbortController();
    let timer = 0;
    const look = async () => {
      const badge = await ask<BadgeAnswer>(of(name, "badge"), control.signal);
      state.value = { ...wordOf(name, badge), when: badge.at };
      if (badge.state !== "checked" || badge.stale) timer = window.setTimeout(() => void look().catch(() => {}), LOOK);
    };
    look().catch(() => {
      if (!control.signal.aborted) state.value = { word: "not checked", kind: "none", when: null };
    });
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [name, end]);
  const { word, kind, when } = state.value;
  return <a class={`badge badge-${kind}`} href={pathOf(name, "verify")} title={`the evidence, and the command that repeats it${when === null ? "" : `; checked by this server at ${utc(when)}`}`}>{word}</a>;
}

const VIEWS: { view: View | null; word: string; key: string }[] = [
  { view: null, word: "Run", key: "t" }, { view: "state", word: "State", key: "s" }, { view: "diff", word: "Diff", key: "d" }, { view: "bisect", word: "Bisect", key: "b" },
  { view: "backtrack", word: "History", key: "p" }, { view: "why", word: "Why", key: "c" }, { view: "commitments", word: "Commitments", key: "m" },
  { view: "conflicts", word: "Conflicts", key: "o" }, { view: "contract", word: "Contract", key: "k" }, { view: "layout", word: "Graph", key: "g" }, { view: "heatmap", word: "Heatmap", key: "h" },
  { view: "compare", word: "Agents", key: "a" }, { view: "steps", word: "Steps", key: "e" }, { view: "verify", word: "Verification", key: "v" },
];

/** Writes the address of a view. The moment survives a change of the view. */
function addressOf(name: string, view: View | null): string {
  const moment = tick.value;
  const place = query.value.get("path");
  const isGiven = query.value.get("t") !== null || (route.value.name === "view" && route.value.tick !== null);
  if (view === "state" || view === "why") return pathOf(name, view, moment ?? 0) + queryOf({ path: place });
  const asked = { holds: query.value.get("holds"), predicate: query.value.get("predicate") };
  return pathOf(name, view ?? undefined) + queryOf({ ...(view === null || view === "bisect" ? asked : {}), ...(view === null || view === "backtrack" ? { path: place } : {}), t: isGiven ? moment : null });
}

export function Rail() {
  const name = run.value;
  const here = route.value;
  const shown = here.name === "view" ? here.view : here.name === "run" ? null : undefined;
  useKeys({ gr: () => go("/runs"), ...Object.fromEntries(name === null ? [] : VIEWS.map((one) => [`g${one.key}`, () => go(addressOf(name, one.view))])) });
  return (
    <nav class="rail" aria-label="views">
      <a href="/runs" aria-current={here.name === "runs" ? "page" : undefined}>Runs</a>
      {name !== null && VIEWS.map((one) => <a key={one.word} href={addressOf(name, one.view)} aria-current={shown === one.view ? "page" : undefined}>{one.word}</a>)}
      <a href="/help/about" aria-current={here.name === "help" ? "page" : undefined}>About</a>
    </nav>
  );
}

/** Pins the place that is chosen, else the first one that the tick changed; a pinned one is let go. */
function pin(name: string): void {
  if (query.peek().get("path") !== null && route.peek().name === "run") return setQuery({ path: null });
  const place = query.peek().get("path");
  const moment = tick.peek() ?? 0;
  if (place !== null) return go(pathOf(name) + queryOf({ path: place, t: moment }));
  ask<Show>(at(name, moment, "show", { provenance: true })).then((show) => {
    const first = show.changes?.[0]?.path;
    if (first === undefined) said.value = "this tick changed no place";
    else setQuery({ path: first, t: moment });
  }, () => {});
}

/** The moment that is looked at, at the bottom of each screen of a run. */
export function Scrubber() {
  const name = run.value;
  const now = tick.value;
  const end = last.value;
  const place = query.value.get("path");
  const by = (step: number) => () => { if (tick.peek() !== null) goTick((tick.peek() ?? 0) + step); };
  useKeys(name === null || end === null ? {} : {
    j: by(1), k: by(-1), J: by(10), K: by(-10), Home: () => goTick(0), End: () => goTick(end),
    f: () => void copy(command(["dendrer", "fork", "--run", name, "--from", "tick", String(tick.peek() ?? end)]), "command of a fork"),
    ...(place ? { "[": () => void goWrite(-1), "]": () => void goWrite(1) } : {}), x: () => pin(name),
  });
  useEffect(() => {
    if (name === null || now === null) return;
    // A reader of the screen hears the moment once scrubbing rests.
    const timer = setTimeout(() => {
      ask<Show>(at(name, now, "show", { provenance: true })).then((show) => {
        const intent = isRecord(show.content.intent) ? show.content.intent : {};
        said.value = [end === null ? `tick ${now}` : `tick ${now} of ${end}`, show.type?.replaceAll(".", " "), plain(speaker(typeof show.content.agent_id === "string" ? show.content.agent_id : null, show.author)), isNumber(intent.confidence) ? `confidence ${intent.confidence}` : null].filter(Boolean).join(", ");
      }, () => {});
    }, 600);
    return () => clearTimeout(timer);
  }, [name, now]);
  if (name === null || now === null || end === null) return null;
  return (
    <section class="scrubber" aria-label="moment">
      <button type="button" onClick={() => goTick(0)} disabled={now === 0} aria-label="first tick">|&lt;</button>
      <button type="button" onClick={by(-1)} disabled={now === 0} aria-label="previous tick">&lt;</button>
      <input type="range" min={0} max={end} value={now} aria-label="tick" aria-valuetext={`tick ${now} of ${end}`} onInput={(event) => goTick(Number(event.currentTarget.value))} />
      <button type="button" onClick={by(1)} disabled={now === end} aria-label="next tick">&gt;</button>
      <button type="button" onClick={() => goTick(end)} disabled={now === end} aria-label="last tick">&gt;|</button>
      <form class="jump" onSubmit={(event) => { event.preventDefault(); const field = event.currentTarget.elements.namedItem("tick") as HTMLInputElement; const to = Number(field.value.replaceAll(",", "")); if (Number.isFinite(to)) goTick(to); }}>
        <label class="hidden" for="jump">go to tick</label>
        <input id="jump" name="tick" inputMode="numeric" value={String(now)} key={now} autocomplete="off" /> of {end.toLocaleString("en")}
      </form>
      <span class="dim hint">next: violation <kbd>v</kbd> anomaly <kbd>n</kbd></span>
      {place && <span class="pinned">change of <Name of={shown(place)} /> <button type="button" onClick={() => void goWrite(-1)} aria-label="previous change of the pinned place">[</button> <button type="button" onClick={() => void goWrite(1)} aria-label="next change of the pinned place">]</button>{route.value.name === "run" && <button type="button" onClick={() => pin(name)} aria-label="unpin the place">×</button>}</span>}
    </section>
  );
}

/** Keys of every screen, and the live region. */
export function Shared() {
  version.value;
  useKeys({
    "/": () => document.querySelector<HTMLElement>('[role="search"] input')?.focus(),
    "?": () => go("/help/keys"),
    y: () => void copy(location.href, "link"),
    Y: () => {
      const button = [...document.querySelectorAll<HTMLButtonElement>(".buttons button")].find((one) => one.textContent === "Copy command");
      button?.click();
    },
    b: () => { if (run.peek() !== null) document.querySelector<HTMLElement>("#ask, #holds")?.focus(); },
    Escape: () => {
      const from = document.activeElement as HTMLElement | null;
      const list_ = from?.closest(".right") ? document.querySelector<HTMLElement>('.left [tabindex="0"][role], .left [tabindex="0"]') : null;
      if (list_) list_.focus();
      else from?.blur();
    },
  });
  return <div class="hidden" role="status" aria-live="polite">{said.value}</div>;
}

/** Writes the title of the window: it changes with the moment. */
export function useTitle(): void {
  const here = route.value;
  const name = run.value === null ? null : plain(run.value);
  const moment = tick.value;
  const word = here.name === "view" ? VIEWS.find((one) => one.view === here.view)?.word : null;
  const title = [name !== null && moment !== null ? `tick ${moment}` : null, word, name, here.name === "runs" ? "runs" : here.name === "help" ? "help" : null, "dendrer"].filter(Boolean).join(" - ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}

