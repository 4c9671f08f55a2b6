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
