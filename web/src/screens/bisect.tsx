// The search for the first tick at which something is violated: its probes, the origin, and what led there.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { known, list, of, useAnswer } from "../api.ts";
import type { Bisect } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { plain } from "../pure/invisible.ts";
import { written } from "../pure/places.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { command } from "../pure/sh.ts";
import { first, firstItems, last, version } from "../store.ts";
import { Changes } from "../parts/changes.tsx";
import { Buttons, Copy } from "../parts/copy.tsx";
import { Answered, Fault } from "../parts/fault.tsx";
import { Agent, Hash, Name, T } from "../parts/text.tsx";
import { Line } from "../parts/value.tsx";
import { questionOf, useFirst } from "./run.tsx";

const WORDS: Record<string, string> = { ok: "OK", violation: "FAIL", uncertain: "UNKNOWN" };

export function BisectScreen({ run }: { run: string }) {
  useFirst(run);
  const holds = query.value.get("holds");
  const given = query.value.get("predicate");
  const standard = firstItems.value.map(questionOf);
  const bad = firstItems.value.filter((one) => one.onset !== null).sort((a, b) => (a.onset ?? 0) - (b.onset ?? 0))[0] ?? firstItems.value[0];
  const chosen = bad ? questionOf(bad) : null;
  const asked = holds ? { holds } : given ? { predicate: given } : chosen?.holds !== undefined ? { holds: chosen.holds } : chosen?.predicate !== undefined ? { predicate: chosen.predicate } : null;
  const limits = { from: query.value.get("from"), to: query.value.get("to"), window: query.value.get("window") };
  const answer = useAnswer<Bisect>(asked ? of(run, "bisect", { ...asked, ...limits }) : null, version.value);
  const text = useSignal(holds ?? "");
  useEffect(() => {
    text.value = holds ?? "";
  }, [holds]);
  const words = ["dendrer", "bisect", run, ...(asked?.holds !== undefined ? ["--holds", asked.holds] : asked ? ["--predicate", asked.predicate ?? ""] : [])];
  const document = known(answer.value);
  return (
    <div class="bisect">
      <div class="top"><h1 tabIndex={-1}>Where it went wrong first</h1><Buttons words={words} citation={document?.origin ? `${run}@${document.onset} ${document.origin.id}` : null} /></div>
      <form class="filters" onSubmit={(event) => { event.preventDefault(); setQuery({ holds: text.value.trim(), predicate: null }); }}>
        <label for="question">question</label>
        <select id="question" value={holds ? "" : (given ?? chosen?.name ?? "")} onChange={(event) => {
          const one = standard.find((each) => each.name === event.currentTarget.value);
          if (one) setQuery({ holds: one.holds ?? null, predicate: one.predicate ?? null });
        }}>
          {holds && <option value="">the expression</option>}
          {given && !standard.some((one) => one.name === given) && <option value={given}>{plain(given)}</option>}
          {standard.map((one) => <option key={one.name} value={one.name}>{plain(one.name)}</option>)}
        </select>
        <label for="holds">or what must hold</label>
        <input id="holds" value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} placeholder="state.risk_score <= 0.75" autocomplete="off" spellcheck={false} />
        <button type="submit" class="small">ask</button>
      </form>
      {!asked && (first.value?.run === run && first.value.failure ? <Fault of={first.value.failure} /> : <p class="wait" aria-busy="true">asking the standard questions ..</p>)}
      {asked && <Answered answer={answer.value} expression={asked.holds}>{(bisect) => <Found run={run} of={bisect} />}</Answered>}
    </div>
  );
}

function Found({ run, of: bisect }: { run: string; of: Bisect }) {
  return (
    <>
      <p><b><T of={bisect.predicate.name} limit={100} /></b> <T of={bisect.predicate.version} limit={20} /> <span class="dim"><T of={bisect.predicate.words} limit={400} />; monotone: {bisect.predicate.monotone}; digest</span> <Hash of={bisect.predicate.digest} /></p>
      <Outcome run={run} of={bisect} />
      {bisect.caveat && <p class="dim"><T of={bisect.caveat} /></p>}
      <Probes run={run} of={bisect} />
      {bisect.moved && bisect.moved.length > 0 && (
        <section>
          <h2>Largest writes {bisect.looked && <span class="dim">{bisect.moved.length} of {bisect.looked.writes} to <T of={bisect.looked.places.map(written).join(", ")} limit={300} />{bisect.looked.rule && <>, which <T of={bisect.looked.rule} limit={100} /> reads</>}{bisect.looked.hidden > 0 && `; ${bisect.looked.hidden} not read`}</span>}</h2>
          <div class="scroll"><table class="list"><thead><tr><th scope="col" class="num">tick</th><th scope="col">place</th><th scope="col">before</th><th scope="col">after</th><th scope="col">change</th><th scope="col">type</th><th scope="col">agent</th><th scope="col">first seen (heuristic)</th></tr></thead>
            <tbody>{bisect.moved.map((one, at) => {
              const seen = bisect.first_seen?.find((each) => each.place === one.place && each.write === one.tick);
              return <tr key={at}><td class="num"><a href={pathOf(run) + queryOf({ t: one.tick })}>{one.tick}</a></td><td><a href={pathOf(run, "backtrack") + queryOf({ path: one.place, t: one.tick })}><T of={written(one.place)} limit={80} /></a></td><td>{"before" in one && <Line value={one.before} limit={40} />}</td><td><Line value={one.after} limit={40} /></td><td><Line value={one.change} limit={40} /></td><td><Name of={one.type} /></td><td><Agent of={one.agent} /></td>
                <td>{seen ? <><Line value={seen.value} limit={40} /> {seen.tick === null ? "not before this tick" : <><a href={pathOf(run) + queryOf({ t: seen.tick })}>tick {seen.tick}</a> {seen.agent ? <Agent of={seen.agent} /> : <Name of={seen.tool ?? ""} />}</>}{seen.unread > 0 && <span class="dim"> {seen.unread} not read</span>}</> : ""}</td></tr>;
            })}</tbody></table></div>
        </section>
      )}
      {bisect.chain && (
        <section>
          <h2>Causal chain <span class="certainty">({bisect.chain.certainty})</span> {bisect.chain.reads === "unknown" && <span class="dim">by recorded links alone: what a delta read is not known</span>}</h2>
          <ol class="chain">{bisect.chain.items.map((one) => (
            <li key={one.id}>
              <a href={pathOf(run) + queryOf({ t: one.tick })}>tick {one.tick}</a> <Name of={one.type} /> <Agent of={one.agent} /> <T of={one.summary} limit={300} />
              <span class="dim">{one.temporal ? " only comes after" : one.because.map((why) => ` <- ${why.tick ?? (why.path ? plain(written(why.path)) : "")} ${why.how} (${why.certainty})`).join(",")}</span>
              {one.changes && one.changes.length > 0 && <Changes run={run} tick={one.tick} of={one.changes} />}
            </li>
          ))}</ol>
          {bisect.chain.more && <p class="dim">more follow after tick {bisect.chain.looked_to}</p>}
        </section>
      )}
      {bisect.diagnosis && <section><h2>Diagnosis <span class="certainty">({bisect.diagnosis.certainty})</span></h2><p>looks <T of={bisect.diagnosis.words} limit={100} />: <T of={bisect.diagnosis.evidence} limit={300} /></p>{!bisect.diagnosis.may_fork && <p class="warn-text">A fork would not help: {bisect.diagnosis.role}</p>}</section>}
      {bisect.suggestions && bisect.suggestions.length > 0 && (
        <section><h2>What could be tried</h2><ul>{bisect.suggestions.map((one, at) => <li key={at}><code><T of={command(one.argv)} limit={400} /></code> <Copy what="command" text={command(one.argv)} label="copy" /> {one.remark && <span class="dim"><T of={one.remark} /></span>}</li>)}</ul></section>
      )}
    </>
  );
}

/** The probes of the search, each with the interval that was left. */
function Probes({ run, of: bisect }: { run: string; of: Bisect }) {
  const end = last.value ?? 1;
  const probes = list(bisect.items);
  const probe = Number(query.value.get("probe") ?? probes.length);
  const begin = bisect.ends[0]?.tick ?? 0;
  const lastTick = bisect.ends[1]?.tick ?? end;
  const part = (tick: number): string => `${((tick - begin) / Math.max(1, lastTick - begin)) * 100}%`;
  return (
    <section>
      <h2>Probes <span class="dim">{probes.length} of at most {bisect.probes_max}, in ticks {begin}..{lastTick}</span></h2>
      <div class="scroll">
        <table class="list probes">
          <thead><tr><th scope="col">probe</th><th scope="col" class="num">tick</th><th scope="col">verdict</th><th scope="col" class="num">left</th><th scope="col" class="axis-head">interval</th></tr></thead>
          <tbody>
            {bisect.ends.map((one, at) => <tr key={`end${at}`}><td>{at === 0 ? "begin" : "end"}</td><td class="num"><a href={pathOf(run) + queryOf({ t: one.tick })}>{one.tick}</a></td><td><Verdict of={one.verdict} why={one.why} /></td><td /><td /></tr>)}
            {probes.map((one, at) => (
              <tr key={at} class={at + 1 === probe ? "chosen" : at + 1 > probe ? "later" : ""}>
                <td><button type="button" class="small" aria-pressed={at + 1 === probe} onClick={() => setQuery({ probe: at + 1 })}>{at + 1}/{probes.length}</button></td>
                <td class="num"><a href={pathOf(run) + queryOf({ t: one.tick })}>{one.tick}</a></td>
                <td><Verdict of={one.verdict} why={one.why} /></td>
                <td class="num">{one.left[0]}..{one.left[1]}</td>
                <td class="axis"><span class="interval" style={{ left: part(one.left[0] ?? begin), right: `calc(100% - ${part(one.left[1] ?? lastTick)})` }} /><span class={`dot dot-${one.verdict}`} style={{ left: part(one.tick) }} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Verdict({ of, why }: { of: "ok" | "violation" | "uncertain"; why?: string | undefined }) {
  return <><b class={`verdict verdict-${of}`}>{WORDS[of]}</b>{why && <span class="dim"> <T of={why} limit={200} /></span>}</>;
}

function Outcome({ run, of: bisect }: { run: string; of: Bisect }) {
  const origin = bisect.origin;
  if (bisect.onset !== null) {
    return (
      <section class="card">
        <h2>{bisect.outcome === "recovers" ? "VIOLATED, AND RECOVERS" : "ORIGIN"} <a href={pathOf(run) + queryOf({ t: bisect.onset })}>tick {bisect.onset}</a> <span class="certainty">({bisect.certainty})</span></h2>
        {origin && <><p><Name of={origin.type} /> by <Agent of={origin.agent} author={origin.author} />{origin.confidence !== null && <span class="sure"> confidence {String(origin.confidence)}</span>} <Hash of={origin.id} /></p><p class="said"><T of={origin.summary} limit={500} /></p><Changes run={run} tick={bisect.onset} of={origin.changes} /></>}
      </section>
    );
  }
  return (
    <section class="card">
      <h2>{bisect.outcome === "never" ? "NEVER VIOLATED" : bisect.outcome === "initial" ? "VIOLATED FROM THE BEGINNING" : bisect.outcome === "recovers" ? "IT RECOVERS: no first tick" : "UNKNOWN"} <span class="certainty">({bisect.certainty})</span></h2>
      {bisect.reasons?.map((one) => <p key={one.tick}>ticks {one.tick}..{one.to}: <T of={one.why} limit={300} /></p>)}
      {Array.isArray(bisect.recoveries) && <ul>{bisect.recoveries.map((one, at) => <li key={at}>ticks {one[0]}..{one[1]} <Verdict of={one[2] as "ok"} /></li>)}</ul>}
    </section>
  );
}
