// *Make a rule of it*: the lines of a pack that keep the places of a result as state. They are copied, and nothing is written.

import { commandsOf, packOf, type Result } from "../pure/rule.ts";
import { command } from "../pure/sh.ts";
import { Copy } from "./copy.tsx";
import { T } from "./text.tsx";

export function Rule({ of: result }: { of: Result }) {
  const text = packOf(result);
  return (
    <div class="rule">
      <p>Lines of a pack that keep what <b><T of={result.tool} limit={100} /></b> answered as state. Copy them into <code>rule.yaml</code>: this page writes nothing.</p>
      <p><Copy what="pack" text={text} label="copy the lines" /></p>
      <pre tabIndex={0}><T of={text} /></pre>
      <p>Then check it, reduce this run under it as a new run, and ask:</p>
      <ul class="asked">{commandsOf(result).map((words) => <li key={words[1]}><code><T of={command(words)} limit={400} /></code> <Copy what="command" text={command(words)} label="copy" /></li>)}</ul>
    </div>
  );
}
