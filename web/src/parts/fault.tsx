// States of a screen beside its content: asking, failed, and what an error says.

import type { ComponentChildren } from "preact";
import type { Answer } from "../api.ts";
import type { Failure } from "../documents.ts";
import { command } from "../pure/sh.ts";
import { Copy } from "./copy.tsx";
import { T } from "./text.tsx";

/** Draws an error as the program prints it: code, message, the place in an expression, notes, commands that help. */
export function Fault({ of, expression }: { of: Failure; expression?: string | null | undefined }) {
  const place = /byte (\d+)/.exec(of.where.expression ?? "");
  const found = place && expression ? caret(expression, Number(place[1])) : null;
  return (
    <div class="fault" role="alert">
      <p><b>error[{of.code}]</b>: <T of={of.message} /></p>
      {found && <pre class="caret"><T of={expression ?? ""} />{"\n"}{" ".repeat(found)}^</pre>}
      {of.notes.map((note) => <p class="note">note: <T of={note} /></p>)}
      {of.help.map((help) => <p class="help">help: <code><T of={command(help.argv)} /></code> <Copy what="command" text={command(help.argv)} /></p>)}
    </div>
  );
}

/** Turns a place in bytes into a column. */
function caret(expression: string, byte: number): number {
  const before = new TextEncoder().encode(expression).slice(0, byte);
  return new TextDecoder().decode(before).length;
}

/** Draws the document of an answer. A later one is drawn over the earlier, which stays in sight meanwhile. */
export function Answered<T>({ answer, children, expression }: { answer: Answer<T>; children: (document: T) => ComponentChildren; expression?: string | null | undefined }) {
  if (answer.state === "there") return <>{children(answer.document)}</>;
  if (answer.state === "failed") return <Fault of={answer.failure} expression={expression} />;
  return answer.last ? <div class="stale" aria-busy="true">{children(answer.last)}</div> : <p class="wait" aria-busy="true">asking ..</p>;
}
