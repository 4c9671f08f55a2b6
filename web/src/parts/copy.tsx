// Buttons that copy. What is copied is the true text; a warning says if it has characters that are not seen.

import { signal, useSignal } from "@preact/signals";
import { hasInvisible, plain } from "../pure/invisible.ts";
import { command } from "../pure/sh.ts";

/** The words that the live region reads. */
export const said = signal("");

/** Copies a text. Without the clipboard of the browser the text is shown to be copied by hand. */
export async function copy(text: string, what: string): Promise<boolean> {
  const warning = hasInvisible(text) ? "; it has characters that are not seen" : "";
  try {
    await navigator.clipboard.writeText(text);
    said.value = `${what} copied${warning}`;
    return true;
  } catch {
    said.value = `${what}: copy it from the field${warning}`;
    return false;
  }
}

type Taken = { state: "" | "asking" | "copied" | "field" | "failed"; text: string };

/** Copies a value that is asked for when a reader wants it: all of it, with the count of its characters. */
export function CopyValue({ ask }: { ask: () => Promise<string> }) {
  const taken = useSignal<Taken>({ state: "", text: "" });
  const press = async () => {
    taken.value = { state: "asking", text: "" };
    try {
      const text = await ask();
      const isCopied = await copy(text, `value of ${countOf(text)}`);
      taken.value = { state: isCopied ? "copied" : "field", text };
    } catch (fault) {
      taken.value = { state: "failed", text: (fault as Error).message };
    }
  };
  const { state, text } = taken.value;
  return (
    <>
      <button type="button" class="small" onClick={press} disabled={state === "asking"}>copy value</button>
      {state === "copied" && <span class="taken">copied {countOf(text)}{hasInvisible(text) && <b class="warn-text">, some of them not seen</b>}</span>}
      {state === "failed" && <span class="taken bad-text" role="alert">not copied: {plain(text)}</span>}
      {state === "field" && <textarea class="field" readOnly value={text} aria-label="value" onFocus={(event) => event.currentTarget.select()} />}
    </>
  );
}

/** Counts characters as a reader does, not units of the encoding. */
function countOf(text: string): string {
  let count = 0;
  for (const _ of text) count += 1;
  return `${count.toLocaleString("en")} character${count === 1 ? "" : "s"}`;
}

export function Copy({ what, text, label }: { what: string; text: string; label?: string }) {
  const state = useSignal<"" | "copied" | "field">("");
  const press = async () => {
    state.value = (await copy(text, what)) ? "copied" : "field";
    if (state.value === "copied") setTimeout(() => (state.value = ""), 1500);
  };
  return (
    <>
      <button type="button" class="small" onClick={press} title={text.length < 500 ? plain(text) : what}>{state.value === "copied" ? "copied" : (label ?? `Copy ${what}`)}</button>
      {state.value === "field" && <input class="field" readOnly value={text} aria-label={what} onFocus={(event) => event.currentTarget.select()} />}
    </>
  );
}

/** The three buttons of each screen. */
export function Buttons({ words, citation }: { words: readonly string[]; citation?: string | null | undefined }) {
  return (
    <div class="buttons" role="group" aria-label="copy">
      <Copy what="link" text={location.href} label="Copy link" />
      <Copy what="command" text={command(words)} label="Copy command" />
      {citation && <Copy what="citation" text={citation} label="Copy citation" />}
    </div>
  );
}
