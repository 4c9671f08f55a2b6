// Keys, version and what the words mean.

import { useAnswer } from "../api.ts";
import type { Version } from "../documents.ts";
import { isOn, setOn } from "../keys.ts";
import { Answered } from "../parts/fault.tsx";
import { KEYS, pressed } from "../pure/keytable.ts";
import { MarkOf, Missing } from "../parts/value.tsx";
import { T } from "../parts/text.tsx";

export function HelpScreen({ page }: { page: string }) {
  const version = useAnswer<Version>(page === "about" ? "/version.json" : null);
  return page === "about" ? (
    <div class="screen">
      <h1 tabIndex={-1}>About</h1>
      <Answered answer={version.value}>{(one) => <dl class="facts"><dt>dendrer</dt><dd><T of={one.version} /></dd><dt>licence</dt><dd>MIT or Apache-2.0. This page contains Preact and @preact/signals (MIT).</dd></dl>}</Answered>
      <h2>What the badge proves</h2>
      <p>INTACT: the record is unchanged since it was signed on this machine. VERIFIED: no record is missing, and a tip or a checkpoint from elsewhere agrees. Neither proves that inputs were true. It is computed by this server from the bytes that it serves.</p>
      <h2>Marks in values</h2>
      <ul class="mark-list">
        <li><Missing kind="absent" /> nothing is at the place</li>
        <li><Missing kind="unknown" /> the value cannot be known, for example because a record was erased</li>
        <li><Missing kind="closed" /> the record has a hash of it, and the bytes are not here</li>
        <li><Missing kind="conflict" /> two agents wrote the place at once</li>
        <li><MarkOf value={{ $redacted: { kind: "named", len: "short" } }} /> taken out before it was recorded</li>
        <li><MarkOf value={{ $vault: { bytes: 12, commitment: "" } }} /> kept under another key</li>
        <li><MarkOf value={{ $gap: { reason: "value_too_large" } }} /> a value that was not accepted by the recorder</li>
        <li><MarkOf value={{ $cut: { kind: "text", bytes: 5000 } }} /> longer than what was sent to this page</li>
        <li><MarkOf value={{ $bytes: "AAEC" }} /> bytes</li>
        <li><MarkOf value={{ $float: "NaN" }} /> a number that JSON has no word for</li>
        <li><MarkOf value={{ $wtf8: "7b-_" }} /> a text that is no Unicode</li>
        <li><code>null</code> is a value, and <code>"$redacted"</code> is a text that an agent wrote</li>
      </ul>
      <p>Each address of this page is also a document: add <code>.json</code>. <a href="/openapi.json">/openapi.json</a> lists them.</p>
    </div>
  ) : (
    <div class="screen">
      <h1 tabIndex={-1}>Keys</h1>
      <p><label class="check"><input type="checkbox" checked={isOn.value} onChange={(event) => setOn(event.currentTarget.checked)} /> keys of one letter act</label> <span class="dim">they never act in a field; <kbd>Ctrl</kbd> or <kbd>Cmd</kbd> with <kbd>K</kbd> always does</span></p>
      <table class="list keys"><thead><tr><th scope="col">keys</th><th scope="col">action</th></tr></thead><tbody>{KEYS.map(([key, words]) => <tr key={key}><td><kbd>{pressed(key)}</kbd></td><td>{words}</td></tr>)}</tbody></table>
      <p>The same documents on the command line: each screen has <i>Copy command</i>.</p>
    </div>
  );
}
