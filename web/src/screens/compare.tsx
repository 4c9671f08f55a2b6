// How two agents of a run parted: the last node that both share, what each did since, where their states differ.

import { known, of, useAnswer } from "../api.ts";
import type { Compare, Timeline } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { agentName } from "../pure/names.ts";
import { plain } from "../pure/invisible.ts";
import { written } from "../pure/places.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { version } from "../store.ts";
import { Buttons } from "../parts/copy.tsx";
import { Answered } from "../parts/fault.tsx";
import { Agent, T } from "../parts/text.tsx";
import { Places } from "../parts/tick.tsx";
import { Line, Missing } from "../parts/value.tsx";

export function CompareScreen({ run }: { run: string }) {
  const a = query.value.get("a") ?? "";
  const b = query.value.get("b") ?? "";
  const timeline = useAnswer<Timeline>(of(run, "timeline", { bins: 1 }), version.value);
  const agents = (known(timeline.value)?.lanes ?? []).flatMap((one) => one.agent ?? []);
  const answer = useAnswer<Compare>(a && b ? of(run, "compare", { a, b }) : null, version.value);
  const choose = (name: "a" | "b", value: string, other: string) => (
    <>
      <label for={`agent-${name}`}>{name === "a" ? "agent" : "with"}</label>
      <select id={`agent-${name}`} value={value} onChange={(event) => setQuery({ [name]: event.currentTarget.value })}>
        <option value="">choose an agent</option>
        {value && !agents.includes(value) && <option value={value}>{plain(agentName(value))}</option>}
        {agents.filter((one) => one !== other).map((one) => <option key={one} value={one}>{plain(agentName(one)).slice(0, 60)}</option>)}
      </select>
    </>
  );
  return (
    <div class="screen">
      <div class="top"><h1 tabIndex={-1}>Compare agents {a && <Agent of={a} />} {b && <>and <Agent of={b} /></>}</h1><Buttons words={["dendrer", "compare", `${run}:${a || "AGENT"}`, `${run}:${b || "AGENT"}`]} /></div>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>{choose("a", a, b)}{choose("b", b, a)}</form>
      {!a || !b ? <p>{agents.length < 2 && timeline.value.state === "there" ? "This run has one agent." : "Choose two agents of this run."}</p> : <Answered answer={answer.value}>{(document) => <Parted run={run} of={document} />}</Answered>}
    </div>
  );
}

function Parted({ run, of: document }: { run: string; of: Compare }) {
  const ticks = (nodes: Compare["a_extension"]) => (
    <span>{nodes.length.toLocaleString("en")} nodes: {nodes.slice(0, 60).map((one) => <span key={one.node}><a href={pathOf(run) + queryOf({ t: one.tick })}>{one.tick}</a> </span>)}{nodes.length > 60 && `and ${nodes.length - 60} more`}</span>
  );
  return (
    <>
      <dl class="facts">
        <dt>share up to</dt><dd><a href={pathOf(run) + queryOf({ t: document.ancestor.tick })}>tick {document.ancestor.tick}</a> <code>{document.ancestor.node}</code>{document.ancestors.length > 1 && `, one of ${document.ancestors.length}`}</dd>
        <dt><Agent of={document.a} /> since</dt><dd>{ticks(document.a_extension)}</dd>
        <dt><Agent of={document.b} /> since</dt><dd>{ticks(document.b_extension)}</dd>
        <dt>congruent</dt><dd>{document.congruent === null ? "not made again" : `${String(document.congruent)} % of ${document.made_again ? `${document.made_again.nodes} nodes` : "the nodes"} verify and have the same state made again`} <span class="certainty">({document.certainty})</span></dd>
      </dl>
      <Places unknown={document.unknown} />
      <h2>{document.variance.length} places differ</h2>
      {document.variance.length > 0 && (
        <div class="scroll"><table class="list"><thead><tr><th scope="col">place</th><th scope="col"><Agent of={document.a} /> at {document.a_head.tick}</th><th scope="col"><Agent of={document.b} /> at {document.b_head.tick}</th></tr></thead>
          <tbody>{document.variance.map((one) => <tr key={one.path}><td><a href={pathOf(run, "backtrack") + queryOf({ path: one.path })}><T of={written(one.path)} limit={120} /></a></td><td>{"a" in one ? <Line value={one.a} /> : <Missing kind="absent" />}</td><td>{"b" in one ? <Line value={one.b} /> : <Missing kind="absent" />}</td></tr>)}</tbody></table></div>
      )}
    </>
  );
}
