// Text of a trace: text nodes alone. Characters that are not seen, or that reorder others, become named tokens.

import { useSignal } from "@preact/signals";
import { hasInvisible, pieces } from "../pure/invisible.ts";

const FIRST = 4096;

/** Draws a text. Beyond 4 KiB the rest is drawn when it is asked for. */
export function T({ of, limit = FIRST, isOneLine = false }: { of: string; limit?: number; isOneLine?: boolean }) {
  const isOpen = useSignal(false);
  const shown = isOpen.value || of.length <= limit ? of : of.slice(0, limit);
  return (
    <span class="t">
      {hasInvisible(shown) || (isOneLine && shown.includes("\n"))
        ? pieces(shown, isOneLine).map((piece) => ("text" in piece ? piece.text : <span class="tok" title={piece.name} aria-label={piece.name}>{piece.token}</span>))
        : shown}
      {shown.length < of.length && (
        <button type="button" class="more" onClick={() => (isOpen.value = true)}>
          show all {of.length.toLocaleString("en")} characters
        </button>
      )}
    </span>
  );
}

/** Draws a name of a trace in one line that may be clipped. */
export function Name({ of }: { of: string | null | undefined }) {
  if (of === null || of === undefined) return <span class="none">none</span>;
  return <span class="name"><T of={of} limit={200} isOneLine /></span>;
}

export function Hash({ of }: { of: string | null | undefined }) {
  if (!of) return <span class="none">none</span>;
  return <code class="hash" title={of}><span class="short">{of.replace(/^sha256:/, "").slice(0, 12)}</span><span class="full">{of}</span></code>;
}

export function Time({ of }: { of: string | null | undefined }) {
  if (!of) return <span class="none">none</span>;
  return <time dateTime={of}>{of.slice(0, 19).replace("T", " ")}</time>;
}
