// Whether the record is intact: what was checked, what was found, and the command that repeats it elsewhere.

import { list, of, useAnswer } from "../api.ts";
import type { Verify } from "../documents.ts";
import { query, setQuery } from "../nav.ts";
import { pathOf, queryOf } from "../pure/route.ts";
import { version } from "../store.ts";
import { Buttons } from "../parts/copy.tsx";
import { Answered } from "../parts/fault.tsx";
import { Hash, Name, T } from "../parts/text.tsx";
import { Places } from "../parts/tick.tsx";

export function VerifyScreen({ run }: { run: string }) {
  const isReplay = query.value.get("replay") === "true";
  const answer = useAnswer<Verify>(of(run, "verify", { replay: isReplay ? "true" : null }), version.value);
  const words = ["dendrer", "verify", run, ...(isReplay ? ["--replay"] : [])];
  return (
    <div class="verify">
      <div class="top"><h1 tabIndex={-1}>Verification</h1><Buttons words={words} citation={answer.value.state === "there" ? `${run} ${list(answer.value.document.items)[0]?.tip ?? ""}` : null} /></div>
      <p><label class="check"><input type="checkbox" checked={isReplay} onChange={(event) => setQuery({ replay: event.currentTarget.checked ? "true" : null })} /> replay: reproduce every state as well</label></p>
      <Answered answer={answer.value}>
        {(document) => (
          <>
            <p class={`verdict-big verdict-${document.verdict}`}><b>{document.verdict}</b> <span class="dim">{proves(document.verdict)}</span></p>
            <dl class="facts">
              <dt>whole</dt><dd>{document.lines.whole.word}{document.lines.whole.checkpoint !== null && ` to checkpoint ${document.lines.whole.checkpoint}`}{document.lines.whole.partial.map((one) => <span key={one.run}> <Name of={one.run} /> {one.why}</span>)}</dd>
              <dt>signer</dt><dd>{document.lines.signer.known ? "known to this machine" : "unknown here"}</dd>
              <dt>derived</dt><dd>{document.lines.derived.word}</dd>
            </dl>
            {document.witnesses.length === 0 ? <p>UNWITNESSED: a full rewrite by the holder of the key would not show.</p> : <ul>{document.witnesses.map((one) => <li key={one}><T of={one} limit={200} /></li>)}</ul>}
            {document.not_checked.length > 0 && <p>not checked: {document.not_checked.map((one) => <code key={one}><T of={one} limit={100} /> </code>)}</p>}
            {list(document.items).map((one) => (
              <dl class="facts" key={one.run}>
                <dt>run</dt><dd><Name of={one.run} /></dd>
                <dt>links</dt><dd>{one.transitions} of {one.ticks} ticks, last good tick {one.last_good ?? "none"}</dd>
                <dt>replay</dt><dd>{one.replay === null ? "not asked" : one.replay.ok ? `${one.replay.ticks ?? one.ticks} of ${one.ticks} states reproduced` : <><b class="bad-text">failed</b> <T of={one.replay.message ?? ""} /></>}</dd>
                <dt>state</dt><dd>{one.state === "known" ? "known" : <span class="mark mark-unknown"><b>{one.state}</b></span>}{one.incomplete_from !== null && ` from tick ${one.incomplete_from} on`}</dd>
                <dt>first record</dt><dd><Hash of={one.genesis} /></dd>
                <dt>tip</dt><dd><Hash of={one.tip} /></dd>
                {one.refusals > 0 && <><dt>refused lines</dt><dd>{one.refusals}</dd></>}
                {one.part && <><dt>part</dt><dd>only ticks {one.part.from}..{one.part.to}</dd></>}
              </dl>
            ))}
            {list(document.items).map((one) => <Places key={one.run} unknown={one.unknown} />)}
            <dl class="facts"><dt>log</dt><dd>{document.log.size} records, {document.log.signed ?? "none"} signed</dd><dt>log root</dt><dd><Hash of={document.log.root} /></dd><dt>records read</dt><dd>{document.records}</dd></dl>
            <h2>Findings</h2>
            {document.findings.length === 0 ? <p>none</p> : (
              <div class="scroll"><table class="list"><thead><tr><th scope="col">code</th><th scope="col">run</th><th scope="col" class="num">tick</th><th scope="col">what</th><th scope="col">stored</th><th scope="col">computed</th></tr></thead>
                <tbody>{document.findings.map((one, at) => <tr key={at}><td><code>{one.code}</code></td><td><Name of={one.run ?? ""} /></td><td class="num">{one.tick !== null && <a href={pathOf(run) + queryOf({ t: one.tick })}>{one.tick}</a>}</td><td><T of={one.message} limit={400} /></td><td>{(one.stored ?? one.found) && <Hash of={one.stored ?? one.found} />}</td><td>{(one.computed ?? one.given) && <Hash of={one.computed ?? one.given} />}</td></tr>)}</tbody></table></div>
            )}
            {document.findings_left_out > 0 && <p>{document.findings_left_out} more are left out</p>}
          </>
        )}
      </Answered>
    </div>
  );
}

export function proves(verdict: Verify["verdict"]): string {
  switch (verdict) {
    case "VERIFIED": return "intact, complete and witnessed; it does not prove that inputs were true";
    case "INTACT": return "proves: unchanged since recording; does not prove: that inputs were true";
    case "UNVERIFIABLE": return "something could not be read: neither intact nor tampered";
    case "DIVERGED": return "replay gave another state";
    case "TAMPERED": return "the record is not what was signed";
    case "EQUIVOCATION": return "two histories have the same signature";
    case "MALFORMED": return "the bytes are no bundle and no store";
  }
}
