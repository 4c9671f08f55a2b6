// One tick: its changes, what it was bound by, and the record.

import { Answered } from "./fault.tsx";
import { useEffect } from "preact/hooks";
import { askOnce, at, known, list, of, useAnswer } from "../api.ts";
import type { Commitments, Show } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { written } from "../pure/places.ts";
import { isNumber } from "../pure/json.ts";
import { isRecord } from "../pure/values.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { last } from "../store.ts";
import { Changes } from "./changes.tsx";
import { Copy } from "./copy.tsx";
import { command } from "../pure/sh.ts";
import type { Result } from "../pure/rule.ts";
import { Rule } from "./rule.tsx";
import { Agent, Hash, Name, T, When } from "./text.tsx";
import { Fold, Line, Missing, Text, Tree } from "./value.tsx";

const TABS = ["changes", "record", "bound", "rule"] as const;
type Tab = (typeof TABS)[number];

export function Tick({ run, tick }: { run: string; tick: number }) {
  const answer = useAnswer<Show>(at(run, tick, "show", { provenance: true }));
  const given = query.value.get("tab");
  const document = known(answer.value);
  const result = document && document.tick === tick ? resultOf(run, tick, document) : null;
  // A rule is made of an answer alone; while the tick is asked for, its tab stays.
  const tabs: readonly Tab[] = result || (given === "rule" && answer.value.state === "asking") ? TABS : TABS.filter((one) => one !== "rule");
  const tab: Tab = tabs.find((one) => one === given) ?? "changes";
  useEffect(() => {
    // The ticks beside this one are asked for, so that a step is drawn at once.
    if (answer.value.state !== "there") return;
    const timer = setTimeout(() => {
      for (const next of [tick + 1, tick - 1]) if (next >= 0 && next <= (last.peek() ?? 0)) askOnce(at(run, next, "show", { provenance: true })).catch(() => {});
    }, 80);
    return () => clearTimeout(timer);
  }, [run, tick, answer.value.state]);
  const key = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length];
    setQuery({ tab: next === "changes" ? null : next });
    requestAnimationFrame(() => window.document.getElementById(`tab-${next}`)?.focus());
  };
  return (
    <section class="tick" aria-label={`tick ${tick}`}>
      <h2>
        <span class="upper">TICK {tick}</span>{" "}
        {document && document.tick === tick && <><Name of={document.type ?? (document.kind === "run" ? "the run begins" : document.kind)} /> <Agent of={isRecord(document.content) && typeof document.content.agent_id === "string" ? document.content.agent_id : null} author={document.author} /> <Confidence of={document.content} /> <span class="when"><When of={document.ts} observed={document.content.observed_at} /></span></>}
      </h2>
      <div class="tabs">
      <div role="tablist" aria-label="parts of the tick" onKeyDown={key}>
        {tabs.map((one) => <button type="button" key={one} id={`tab-${one}`} role="tab" aria-selected={tab === one} aria-controls="tab-panel" tabIndex={tab === one ? 0 : -1} onClick={() => setQuery({ tab: one === "changes" ? null : one })}>{one === "rule" ? "make a rule of it" : one}</button>)}
      </div>
        <a href={pathOf(run, "state", tick) + queryOf({ window: "before" })}>before</a>
        <a href={pathOf(run, "state", tick)}>after</a>
      </div>
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0} class="panel">
        <Answered answer={answer.value}>
          {(show) => (tab === "record" ? <Record of={show} /> : tab === "bound" ? <Bound run={run} tick={tick} /> : tab === "rule" && result ? <Rule of={result} /> : <Body run={run} tick={tick} of={show} />)}
        </Answered>
      </div>
    </section>
  );
}

/** The answer of a tool at a tick, of which a rule can be made. */
function resultOf(run: string, tick: number, show: Show): Result | null {
  const action = isRecord(show.content.action) ? show.content.action : null;
  const result = isRecord(show.content.result) ? show.content.result : null;
  return action && result && typeof action.tool === "string" && result.output !== null && result.output !== undefined ? { run, tick, tool: action.tool, output: result.output } : null;
}

/** What a reader may do next at a tick. Each is a command to copy or a link: nothing is written. */
function Acts({ run, tick }: { run: string; tick: number }) {
  return (
    <p class="acts tick-acts">
      {tick > 0 && <Copy what="command of a fork" text={command(["dendrer", "fork", "--run", run, "--from", "tick", String(tick - 1)])} label={`what if: fork at ${tick - 1}`} />}
      <Copy what="command of a note" text={command(["dendrer", "note", `${run}@${tick}`, "NOTE"])} label="note" />
      <a href={pathOf(run, "state", tick) + queryOf({ mode: "diff" })}>diff to ..</a>
      <a href={pathOf(run, "why", tick)}>why this action</a>
    </p>
  );
}

function Confidence({ of }: { of: Record<string, unknown> }) {
  const intent = of.intent;
  return isRecord(intent) && isNumber(intent.confidence) ? <span class="sure" title="confidence">{intent.confidence.toFixed(2)}</span> : null;
}

/** Members of an intent that are drawn as text; the others are a tree. */
const SAID = new Set(["description", "content", "text", "uncertainty_notes", "role"]);

function Body({ run, tick, of: show }: { run: string; tick: number; of: Show }) {
  const intent = isRecord(show.content.intent) ? show.content.intent : {};
  const policy = isRecord(show.content.policy) ? show.content.policy : null;
  const action = isRecord(show.content.action) ? show.content.action : null;
  const result = isRecord(show.content.result) ? show.content.result : null;
  const text = (name: string): string | null => (typeof intent[name] === "string" ? (intent[name] as string) : null);
  const others = Object.entries(intent).filter(([name, value]) => !(SAID.has(name) && typeof value === "string") && !(name === "confidence" && isNumber(value)) && value !== null);
  const messages = Array.isArray(show.content.messages) ? show.content.messages.filter(isRecord) : [];
  const links = show.provenance?.links ?? show.links.map((link) => ({ ...link, run: null, tick: null, type: null, agent: null }));
  return (
    <>
      {["description", "content", "text"].map((name) => text(name) && <div class="said" key={name}><Text of={text(name) ?? ""} limit={2000} /></div>)}
      {messages.map((one, row) => <div class="message" key={row}><b><Name of={typeof one.role === "string" ? one.role : "message"} /></b> {typeof one.content === "string" ? <Text of={one.content} limit={2000} /> : <Tree value={one.content} />}</div>)}
      {others.length > 0 && <div class="intent">{others.map(([name, value]) => <Tree key={name} name={name} value={value} depth={1} />)}</div>}
      {text("uncertainty_notes") !== null && <p><span class="dim">uncertainty</span> <T of={text("uncertainty_notes") ?? ""} /></p>}
      {show.kind === "run" && typeof show.content.goal === "string" && <p><span class="dim">goal</span> <T of={show.content.goal} /></p>}
      {action && <div class="call"><span class="dim">call</span> <b><T of={String(action.tool ?? "")} /></b> <Fold value={action.params} limit={200} /></div>}
      {result && <div><span class="dim">answer</span> <b class={result.status === "ok" ? "" : "bad-text"}><T of={String(result.status ?? "")} /></b> {typeof result.output === "string" ? <Text of={result.output} limit={1000} /> : <Fold value={result.output} limit={300} />}</div>}
      {policy && <div class="call"><span class="dim">policy</span> <b class={policy.decision === "deny" ? "bad-text" : ""}><T of={String(policy.decision ?? "")} /></b> {policy.notes !== null && policy.notes !== undefined && <Fold value={policy.notes} limit={200} />}</div>}
      {show.changes === null ? <p><Missing kind="closed" /> the changes are not read</p> : <Changes run={run} tick={tick} of={show.changes} />}
      <Places closed={show.closed} unknown={show.unknown} />
      <Acts run={run} tick={tick} />
      {links.some((link) => link.rel !== "predecessor") && (
        <p class="links"><span class="dim">follows from</span>{" "}
          {links.filter((link) => link.rel !== "predecessor").map((link) => (
            <span key={link.rel + link.hash}>{link.rel} {link.run !== null && link.tick !== null ? <a href={pathOf(link.run) + queryOf({ t: link.tick })}>{link.run === run ? "" : <Name of={link.run} />} tick {link.tick}</a> : <Hash of={link.hash} />} </span>
          ))}
        </p>
      )}
    </>
  );
}

/** Lists the places of a document that were not read: they are not absent. */
export function Places({ closed, unknown }: { closed?: readonly string[] | undefined; unknown?: readonly { place: string; tick: number; code: string }[] | undefined }) {
  if (!closed?.length && !unknown?.length) return null;
  return (
    <ul class="places">
      {(closed ?? []).map((place) => <li key={`c${place}`}><Missing kind="closed" /> <code><T of={written(place)} limit={200} /></code></li>)}
      {(unknown ?? []).map((one) => <li key={`u${one.place}`}><Missing kind="unknown" code={one.code} /> <code><T of={written(one.place)} limit={200} /></code> from tick {one.tick} on</li>)}
    </ul>
  );
}

function Record({ of: show }: { of: Show }) {
  const taken = isRecord(show.content.redaction) ? show.content.redaction : null;
  return (
    <>
      <dl class="facts">
        <dt>author</dt><dd>{show.author}</dd>
        <dt>time</dt><dd><When of={show.ts} observed={show.content.observed_at} /></dd>
        <dt>id</dt><dd><Hash of={show.id} /> <Copy what="id" text={show.id} label="copy" /></dd>
        <dt>after</dt><dd><Hash of={show.prev} /></dd>
        {show.provenance?.stage !== undefined && <><dt>stage</dt><dd>{show.provenance.stage ?? "none"}</dd></>}
        {show.provenance && <><dt>signed</dt><dd>{show.provenance.signed ? "yes" : "no"}</dd></>}
        {show.provenance?.reducer && <><dt>reducer</dt><dd><T of={show.provenance.reducer} limit={80} /></dd></>}
        {taken && <><dt>taken out</dt><dd><Line value={taken.taken} limit={200} /></dd></>}
      </dl>
      <Tree value={show.content} />
    </>
  );
}

function Bound({ run, tick }: { run: string; tick: number }) {
  const answer = useAnswer<Commitments>(of(run, "commitments", { at: tick }));
  return (
    <Answered answer={answer.value}>
      {(document) => (
        <>
          <p class="dim">commitments after tick {document.at}</p>
          {list(document.items).length === 0 ? <p>No commitments at this tick.</p> : (
            <ul class="bound">{list(document.items).filter((one) => one.binds).map((one) => <li key={one.id}><b>{one.status}{one.hard ? ", hard" : ""}</b> {one.type} <T of={one.gloss} limit={300} /></li>)}</ul>
          )}
          <a href={pathOf(run, "commitments") + queryOf({ at: tick, t: tick })}>all commitments</a>
        </>
      )}
    </Answered>
  );
}
