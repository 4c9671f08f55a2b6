// The steps of a run as a witness chain, and counts of each action.

import { useSignal } from "@preact/signals";
import { known, list, of, useAnswer } from "../api.ts";
import type { Steps } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { isNumber } from "../pure/json.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { last, tick, version } from "../store.ts";
import { Buttons } from "../parts/copy.tsx";
import { Answered } from "../parts/fault.tsx";
import { Name, T, Time } from "../parts/text.tsx";
import { Line, Missing } from "../parts/value.tsx";

const PAGE = 200;
/** A longer run is counted, and its steps are listed when a reader asks. */
const TICKS_MAX = 20_000;
type Step = Exclude<NonNullable<Steps["items"]>, number>[number];

export function StepsScreen({ run }: { run: string }) {
  const trace = query.value.get("trace");
  const action = query.value.get("action");
  const isLong = (last.value ?? 0) > TICKS_MAX;
  const isListed = last.value !== null && (!isLong || query.value.get("all") === "true");
  const stats = useAnswer<Steps>(of(run, "steps", { stats: "true", trace }), version.value);
  const answer = useAnswer<Steps>(isListed ? of(run, "steps", { trace }) : null, version.value);
  const shown = useSignal(PAGE);
  const counts = known(stats.value)?.stats ?? [];
  return (
    <div class="screen">
      <div class="top"><h1 tabIndex={-1}>Steps</h1><Buttons words={["dendrer", "steps", run, ...(trace ? ["--trace", trace] : []), ...(action ? ["--by", action] : [])]} /></div>
      <Answered answer={stats.value}>
        {() => counts.length === 0 ? <p>No steps: nothing in this run is read as one.</p> : (
          <div class="chips" role="group" aria-label="actions">
            {counts.map((one) => <button type="button" key={one.action} class="chip" aria-pressed={action === one.action} onClick={() => setQuery({ action: action === one.action ? null : one.action })}>{one.action} {one.count.toLocaleString("en")}{one.failed > 0 && `, ${one.failed} failed`}{isNumber(one.p50_ms) && `, median ${one.p50_ms} ms`}</button>)}
            {trace && <button type="button" class="chip" onClick={() => setQuery({ trace: null })} aria-label="every trace">trace <T of={trace} limit={40} /> ×</button>}
          </div>
        )}
      </Answered>
      {!isListed && isLong && <p>{(last.value ?? 0).toLocaleString("en")} ticks: <button type="button" class="small" onClick={() => setQuery({ all: "true" })}>list every step</button></p>}
      {isListed && (
        <Answered answer={answer.value}>
          {(steps) => {
            const items = list(steps.items).filter((one) => action === null || one.action === action);
            return (
              <>
                <div class="scroll"><table class="list">
                  <thead><tr><th scope="col" class="num">tick</th><th scope="col">action</th><th scope="col">name</th><th scope="col">success</th><th scope="col">began</th><th scope="col" class="num">ms</th><th scope="col" class="num">phi</th><th scope="col" class="num">r</th><th scope="col">step</th><th scope="col">in</th><th scope="col">trace</th></tr></thead>
                  <tbody>{items.slice(0, shown.value).map((one) => <StepRow key={one.step_id} run={run} of={one} />)}</tbody>
                </table></div>
                {items.length > shown.value && <button type="button" class="more" onClick={() => (shown.value += PAGE)}>{(items.length - shown.value).toLocaleString("en")} more</button>}
              </>
            );
          }}
        </Answered>
      )}
    </div>
  );
}

function StepRow({ run, of: step }: { run: string; of: Step }) {
  const number = (value: number | Record<string, unknown> | null) => (value === null ? "" : isNumber(value) ? String(Math.round(Number(value) * 1000) / 1000) : <Line value={value} />);
  return (
    <tr class={step.tick === tick.value ? "chosen" : ""}>
      <td class="num"><a href={pathOf(run) + queryOf({ t: step.tick })}>{step.tick}</a></td>
      <td>{step.action ?? <Missing kind="closed" />}{step.derived && <span class="dim" title="read from the transition; no step was recorded"> derived</span>}</td>
      <td><Name of={step.name} /></td>
      <td>{step.success === null ? <Missing kind="unknown" /> : step.success ? <b class="ok-text">yes</b> : <b class="bad-text">no</b>}{step.not_known && step.not_known.length > 0 && <> <Missing kind="closed" code={step.not_known.join(", ")} /></>}</td>
      <td><Time of={step.started_at} /></td>
      <td class="num">{number(step.duration_ms)}</td><td class="num">{number(step.phi)}</td><td class="num">{number(step.kuramoto_r)}</td>
      <td><code><T of={step.step_id.slice(0, 24)} isOneLine /></code></td>
      <td>{step.parent_id !== null && <code><T of={step.parent_id.slice(0, 24)} isOneLine /></code>}</td>
      <td>{step.trace_id !== null && <button type="button" class="small" onClick={() => setQuery({ trace: step.trace_id })}><T of={step.trace_id.slice(0, 24)} isOneLine /></button>}</td>
    </tr>
  );
}
