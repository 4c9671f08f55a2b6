// Text of a trace: text nodes alone. Characters that are not seen, or that reorder others, become named tokens.

import { useSignal } from "@preact/signals";
import { hasInvisible, pieces, plain } from "../pure/invisible.ts";
import { agentName, speaker } from "../pure/names.ts";
import { local, utc } from "../pure/time.ts";

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

/** Draws who a record is by: its author, or the agent that it names, in quotes if the name could be taken for another. */
export function Agent({ of, author }: { of: string | null | undefined; author?: string | null | undefined }) {
  return <Name of={author === undefined && of !== null && of !== undefined ? agentName(of) : speaker(of, author)} />;
}

export function Hash({ of }: { of: string | null | undefined }) {
  if (!of) return <span class="none">none</span>;
  return <code class="hash" title={of}><span class="short">{of.replace(/^sha256:/, "").slice(0, 12)}</span><span class="full">{of}</span></code>;
}

/** The time of a record: that of its source first, if it states one. */
export function When({ of, observed }: { of: string | null | undefined; observed: unknown }) {
  if (typeof observed !== "string" || observed === "") return <Time of={of} />;
  return <><Time of={observed} /> <span class="dim">(imported <Time of={of} />)</span></>;
}

export function Time({ of }: { of: string | null | undefined }) {
  if (!of) return <span class="none">none</span>;
  return <time dateTime={of} title={`${local(of)} here; recorded as ${plain(of)}`}><T of={utc(of)} limit={60} isOneLine /></time>;
}
