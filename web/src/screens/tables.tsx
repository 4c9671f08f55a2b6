// Commitments, the contract, conflicts, the history of a place, and why a value is as it is: each a table.

import type { ComponentChildren } from "preact";
import { at, list, of, useAnswer } from "../api.ts";
import type { ActionWhy, Backtrack, Commitments, Conflicts, ContractCheck, Why } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { shown, written } from "../pure/places.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { isRecord } from "../pure/values.ts";
import { last, tick, version } from "../store.ts";
import { Buttons } from "../parts/copy.tsx";
import { Answered } from "../parts/fault.tsx";
import { Agent, Name, T } from "../parts/text.tsx";
import { Places } from "../parts/tick.tsx";
import { Line, Missing } from "../parts/value.tsx";

function Moment({ run, tick: to }: { run: string; tick: number }) {
  return <a href={pathOf(run) + queryOf({ t: to })}>{to}</a>;
}

function Screen({ title, words, citation, children }: { title: ComponentChildren; words: string[]; citation?: string | null; children: ComponentChildren }) {
  return <div class="screen"><div class="top"><h1 tabIndex={-1}>{title}</h1><Buttons words={words} citation={citation} /></div>{children}</div>;
}

export function CommitmentsScreen({ run }: { run: string }) {
  const given = query.value.get("at");
  const here = given ?? (query.value.get("t") === null ? null : String(tick.value));
  const kind = query.value.get("kind");
  const status = query.value.get("status");
  const answer = useAnswer<Commitments>(of(run, "commitments", { at: here, kind, status }), version.value);
  return (
    <Screen title={<>Commitments {here !== null && `at tick ${here}`}</>} words={["dendrer", "commitments", run, ...(here ? ["--at", here] : []), ...(kind ? ["--kind", kind] : []), ...(status ? ["--status", status] : [])]}>
      <form class="filters">
        <label for="kind">type</label>
        <select id="kind" value={kind ?? ""} onChange={(event) => setQuery({ kind: event.currentTarget.value })}><option value="">all</option>{["obs", "hyp", "goal", "obl", "pref", "plan", "deleg"].map((one) => <option key={one} value={one}>{one}</option>)}</select>
        <label for="status">status</label>
        <select id="status" value={status ?? ""} onChange={(event) => setQuery({ status: event.currentTarget.value })}><option value="">all</option>{["active", "tentative", "blocked", "dormant", "stale", "discharged", "superseded", "retracted"].map((one) => <option key={one} value={one}>{one}</option>)}</select>
      </form>
      <Answered answer={answer.value}>
        {(document) => (
          <>
            {document.hidden !== null && document.hidden > 0 && <p><Missing kind="closed" /> {document.hidden} are not read</p>}
            {list(document.items).length === 0 ? <p>No commitments after tick {document.at}. Records of stage 2 and packs that compile a graph make them.</p> : (
              <div class="scroll"><table class="list"><thead><tr><th scope="col">status</th><th scope="col">type</th><th scope="col">what</th><th scope="col">owner</th><th scope="col" class="num">tick</th><th scope="col" class="num">changed</th><th scope="col">support</th><th scope="col">depends on</th><th scope="col">conflicts</th></tr></thead>
                <tbody>{list(document.items).map((one) => (
                  <tr key={one.id} id={`c-${one.id}`} class={one.binds ? "" : "later"}>
                    <td><a href={pathOf(run, "layout") + queryOf({ of: "commitments", focus: one.id, t: here })} title="what supports it, and what it rests on"><b>{one.status}</b></a>{one.hard ? " hard" : ""}</td><td>{one.type}</td><td><T of={one.gloss} limit={300} />{one.because.length > 0 && <span class="dim"> <T of={one.because.join("; ")} limit={200} /></span>}</td><td><Name of={one.owner} /></td>
                    <td class="num"><Moment run={run} tick={one.tick} /></td><td class="num">{one.changed !== null && <Moment run={run} tick={one.changed} />}</td>
                    <td>{one.support.length}{one.support.length > 0 && one.support.every((each) => each.mode === "self-authored") && <span class="mark mark-unknown"><b>self-authored, not externally confirmed</b></span>}</td>
                    <td>{one.depends_on.map((id) => <code key={id}><T of={id} limit={24} /> </code>)}</td><td>{one.conflicts.length > 0 && <Missing kind="conflict" code={one.conflicts.map((id) => id.slice(0, 12)).join(", ")} />}</td>
                  </tr>
                ))}</tbody></table></div>
            )}
            {document.without_effect.length > 0 && <><h2>Without effect</h2><ul>{document.without_effect.map((one) => <li key={one.id}>tick <Moment run={run} tick={one.tick} /> <T of={one.why} limit={300} /></li>)}</ul></>}
            <p class="dim">actors: {document.context.actors.map((one) => <span key={one}><Agent of={one} /> </span>)}</p>
          </>
        )}
      </Answered>
    </Screen>
  );
}

export function ContractScreen({ run }: { run: string }) {
  const answer = useAnswer<ContractCheck>(of(run, "contract"), version.value);
  return (
    <Screen title="Contract and violations" words={["dendrer", "contract", "check", run]}>
      <Answered answer={answer.value}>
        {(document) => (
          <>
            <h2>In force</h2>
            <ul>{document.in_force.map((one, at) => <li key={at}><b><T of={one.name} limit={100} /></b> <T of={one.version} limit={30} /> ticks {one.from}..{one.to}{one.extensions.map((each) => <span key={each.id}>; extended by <T of={each.id} limit={40} /> from tick <Moment run={run} tick={each.from} />, approved by <T of={each.approved_by} limit={60} /></span>)}</li>)}</ul>
            <h2>Violations</h2>
            <div class="scroll"><table class="list"><thead><tr><th scope="col">name</th><th scope="col">verdict</th><th scope="col" class="num">first tick</th><th scope="col">intervals</th><th scope="col">words</th></tr></thead>
              <tbody>{list(document.items).map((one) => (
                <tr key={one.name}><td><a href={pathOf(run, "bisect") + queryOf({ predicate: one.name })}><T of={one.name} limit={100} /></a></td>
                  <td>{one.uncertain ? <span class="mark mark-unknown"><b>unknown</b> <T of={one.uncertain.why} limit={200} /></span> : one.ok ? <b class="verdict verdict-ok">OK</b> : <b class="verdict verdict-violation">FAIL</b>}</td>
                  <td class="num">{one.onset !== null && <Moment run={run} tick={one.onset} />}</td><td><Strip of={one.intervals} end={document.to} /></td><td><T of={one.words} limit={300} /></td></tr>
              ))}</tbody></table></div>
            {document.lacking.length > 0 && <><h2>Missing fields</h2><ul>{document.lacking.map((one, at) => <li key={at}>tick <Moment run={run} tick={one.tick} /> <Name of={one.type} />: {one.fields.map((field) => <span key={field.name}><code><T of={field.name} limit={60} /></code> <T of={field.why} limit={100} /> </span>)}</li>)}</ul></>}
            {document.caveat && <p class="dim"><T of={document.caveat} /></p>}
          </>
        )}
      </Answered>
    </Screen>
  );
}

function Strip({ of: intervals, end }: { of: readonly (readonly unknown[])[]; end: number }) {
  return (
    <span class="strip" role="img" aria-label={intervals.map((one) => `ticks ${one[0]} to ${one[1]} ${one[2]}`).join(", ")}>
      {intervals.map((one, at) => <span key={at} class={`part part-${String(one[2])}`} style={{ left: `${(Number(one[0]) / Math.max(1, end + 1)) * 100}%`, width: `${((Number(one[1]) - Number(one[0]) + 1) / Math.max(1, end + 1)) * 100}%` }} />)}
    </span>
  );
}

export function ConflictsScreen({ run }: { run: string }) {
  const answer = useAnswer<Conflicts>(of(run, "conflicts"), version.value);
  return (
    <Screen title="Conflicts" words={["dendrer", "conflicts", "list", run]}>
      <Answered answer={answer.value}>
        {(document) => {
          const items = Array.isArray(document.items) ? document.items : [];
          return items.length === 0 ? <p>No conflicts: no two agents wrote the same place at once.</p> : (
            <div class="scroll"><table class="list"><thead><tr><th scope="col">place</th><th scope="col">status</th><th scope="col">values</th><th scope="col" class="num">decided at</th><th scope="col">reason</th></tr></thead>
              <tbody>{items.map((one, row) => (
                <tr key={row}><td><a href={pathOf(run, "backtrack") + queryOf({ path: one.path })}><T of={written(one.path)} limit={100} /></a></td><td>{one.status === "open" ? <Missing kind="conflict" code="open" /> : one.status}</td>
                  <td>{one.values.map((value, each) => <div key={each}>{value.source === "" ? <Name of="" /> : <Agent of={value.source} />} <Moment run={run} tick={value.tick} />: {value.removed ? <Missing kind="absent" code="removed" /> : <Line value={value.value} />}</div>)}</td>
                  <td class="num">{one.tick !== null && <Moment run={run} tick={one.tick} />}</td><td>{one.reason && <T of={one.reason} limit={200} />}</td></tr>
              ))}</tbody></table></div>
          );
        }}
      </Answered>
    </Screen>
  );
}

/** Writes that are asked for at most, the newest first. */
const WRITES_MAX = 500;

export function BacktrackScreen({ run }: { run: string }) {
  const place = query.value.get("path") ?? "";
  const agent = query.value.get("agent");
  const answer = useAnswer<Backtrack>(place ? of(run, "backtrack", { path: place, agent, values: true, limit: WRITES_MAX }) : null, version.value);
  return (
    <Screen title={<>History of <T of={shown(place)} limit={200} /></>} words={["dendrer", "backtrack", run, place, "--values"]}>
      {!place ? <p>Choose a place: in <a href={pathOf(run, "state", tick.value ?? last.value ?? 0)}>the state</a> each has a history.</p> : (
        <Answered answer={answer.value}>
          {(document) => (
            <>
              <p class="dim">{list(document.items).length < document.total && `the newest ${list(document.items).length} of `}{document.total} writes in ticks {document.from}..{document.to}, newest first ({document.certainty}){document.followed !== document.path && <>; written at <code><T of={written(document.followed)} /></code></>}</p>
              <Places closed={document.hidden.map((one) => `/tick ${one}`)} unknown={document.unknown} />
              <div class="scroll"><table class="list"><thead><tr><th scope="col" class="num">tick</th><th scope="col">before</th><th scope="col">after</th><th scope="col">agent</th><th scope="col">type</th><th scope="col">record</th><th scope="col"><span class="hidden">links</span></th></tr></thead>
                <tbody>{list(document.items).map((one) => (
                  <tr key={one.id} class={one.tick === tick.value ? "chosen" : ""}><td class="num"><Moment run={one.run ?? run} tick={one.tick} /></td><td>{"before" in one ? <Line value={one.before} limit={60} /> : <Missing kind="absent" />}</td><td>{"after" in one ? <Line value={one.after} limit={60} /> : <Missing kind="absent" />}</td><td><Agent of={one.agent} /></td><td><Name of={one.type} /></td><td><T of={one.summary} limit={200} /></td><td><a href={pathOf(one.run ?? run, "why", one.tick) + queryOf({ path: place })}>why</a></td></tr>
                ))}</tbody></table></div>
            </>
          )}
        </Answered>
      )}
    </Screen>
  );
}

function ActionOf({ run, of: action }: { run: string; of: ActionWhy }) {
  return (
    <>
      <dl class="facts">
        <dt>agent</dt><dd><Agent of={action.agent} author={action.author} /></dd>
        <dt>author</dt><dd>{action.author}</dd>
        <dt>decision</dt><dd>{action.decision ? <><b>{action.decision.decision}</b> by {action.decision.author} at tick <Moment run={run} tick={action.decision.tick} /></> : "none"}</dd>
      </dl>
      <h2>Calls</h2>
      {action.calls.length === 0 ? <p>none</p> : <ul>{action.calls.map((one, row) => <li key={row}><Line value={one} limit={400} /></li>)}</ul>}
      <h2>Rules that were judged</h2>
      {action.rules.length === 0 ? <p>none</p> : <ul>{action.rules.map((one, row) => <li key={row}><Line value={one} limit={400} /></li>)}</ul>}
      <h2>Places that were read</h2>
      {action.reads.length === 0 ? <p>none is recorded</p> : <ul>{action.reads.map((one, row) => <li key={row}><Line value={one} limit={200} /></li>)}</ul>}
      <h2>Relies on</h2>
      {action.relies_on.length === 0 ? <p>nothing that is recorded</p> : <ul>{action.relies_on.map((one, row) => <li key={row}><Line value={one} limit={400} /></li>)}</ul>}
      <p class="dim">To ask why a value is as it is, choose its place in <a href={pathOf(run, "state", action.tick)}>the state</a>.</p>
    </>
  );
}

type Node = { tick: number; type: string | null; agent: string | null; summary: string; path?: string; run?: string; ops?: Record<string, unknown>[]; inputs: unknown[]; stops: string | null; because?: { how: string; certainty: string; path?: string } };

export function WhyScreen({ run, tick: here }: { run: string; tick: number }) {
  const place = query.value.get("path");
  const answer = useAnswer<Why | ActionWhy>(at(run, here, "why", { path: place }));
  return (
    <Screen title={<>Why {place === null ? "this action" : <T of={shown(place)} limit={200} />} at tick {here}</>} words={["dendrer", "why", `${run}@${here}`, ...(place ? [place] : [])]}>
      <Answered answer={answer.value}>
        {(document) => document.schema === "dendrer.action-why/1" ? <ActionOf run={run} of={document} /> : (
          <>
            <p>value {document.unknown?.length ? <Missing kind="unknown" code={document.unknown[0]?.code ?? ""} /> : document.there ? <Line value={document.value} limit={400} /> : <Missing kind="absent" />} <span class="certainty">({document.certainty})</span>{document.reads === "unknown" && <span class="dim"> what a delta read is not known: recorded links alone</span>}</p>
            <Places unknown={document.unknown} closed={document.hidden.map((one) => `/tick ${one}`)} />
            {document.root ? <ul class="why-tree"><WhyNode run={run} of={document.root as Node} depth={0} /></ul> : <p>Nothing was written here.</p>}
            {document.moved && document.moved.length > 0 && (
              <><h2>Largest writes</h2><ul>{document.moved.map((one, row) => <li key={row}>tick <Moment run={run} tick={one.tick} /> <code><T of={written(one.place)} limit={80} /></code> {"before" in one && <><Line value={one.before} limit={40} /> -&gt; </>}<Line value={one.after} limit={40} /> <span class="dim">by <Agent of={one.agent} /></span></li>)}</ul></>
            )}
            {document.first_seen && document.first_seen.length > 0 && (
              <><h2>First seen <span class="certainty">(heuristic)</span></h2><ul>{document.first_seen.map((one, row) => <li key={row}><Line value={one.value} limit={60} /> {one.tick === null ? `not before tick ${one.write}` : <>at tick <Moment run={run} tick={one.tick} /> by {one.agent ? <Agent of={one.agent} /> : <Name of={one.tool ?? ""} />}</>}{one.unread > 0 && <> <Missing kind="closed" code={`${one.unread} records not read`} /></>}</li>)}</ul></>
            )}
          </>
        )}
      </Answered>
    </Screen>
  );
}

function WhyNode({ run, of: node, depth }: { run: string; of: Node; depth: number }) {
  const stops: Record<string, string> = { depth: "deeper inputs are not shown", above: "shown above", "other agent": "another agent's", size: "too many inputs", unknown: "its inputs are not known", nothing: "it has no inputs" };
  return (
    <li>
      tick <Moment run={node.run ?? run} tick={node.tick} /> <Name of={node.type} /> <Agent of={node.agent} /> {node.path && <code><T of={written(node.path)} limit={100} /></code>} <T of={node.summary} limit={300} />
      {node.because && <span class="dim"> {node.because.how} ({node.because.certainty})</span>}
      {node.ops?.map((op, row) => <div key={row}><Line value={op} limit={200} /></div>)}
      {node.stops && <div class="dim">{stops[node.stops] ?? node.stops}</div>}
      {node.inputs.length > 0 && depth < 30 && <ul>{node.inputs.filter(isRecord).map((one, row) => <WhyNode key={row} run={run} of={one as unknown as Node} depth={depth + 1} />)}</ul>}
    </li>
  );
}
