// The palette: views, runs, ticks and keys by their words. Ctrl or Cmd with K opens it, Escape closes it.

import { signal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { list } from "../api.ts";
import { find, useKeys } from "../keys.ts";
import { go, setQuery } from "../nav.ts";
import { plain } from "../pure/invisible.ts";
import { fitting, KEYS, pressed, readSearch, type Entry } from "../pure/keytable.ts";
import { pathOf } from "../pure/route.ts";
import { goTick, last, run, runs } from "../store.ts";
import { setTheme } from "../theme.ts";
import { T } from "./text.tsx";

type Act = Entry & { id: string; act: () => void };
const MOST = 40;
export const isOpen = signal(false);

/** The entries for a text, without those of keys that do nothing on this screen. */
function entries(text: string): Act[] {
  const found: Act[] = [];
  const name = run.value;
  const end = last.value;
  const number = /^\d[\d,]{0,14}$/.test(text.trim()) ? Number(text.trim().replaceAll(",", "")) : null;
  if (name !== null && number !== null && end !== null) {
    const tick = Math.min(number, end);
    found.push({ id: "tick", kind: "tick", word: `${text.trim()}: go to tick ${tick.toLocaleString("en")}`, hint: `of ${end.toLocaleString("en")}`, act: () => goTick(tick) });
  }
  for (const [key, words] of KEYS) {
    if (/^[wsad]$|^(Enter|Escape|Ctrl\+K)$/.test(key)) continue;
    const act = find(key);
    if (act) found.push({ id: `key-${key}`, kind: key.length === 2 && key.startsWith("g") ? "view" : "key", word: words, hint: pressed(key), act });
  }
  for (const one of list(runs.value?.items)) found.push({ id: `run-${one.name}`, kind: "run", word: plain(one.name), hint: `${one.ticks?.toLocaleString("en") ?? "unknown"} ticks`, act: () => go(pathOf(one.name)) });
  for (const one of ["system", "light", "dark"] as const) found.push({ id: `theme-${one}`, kind: "theme", word: `${one} theme`, hint: "", act: () => setTheme(one) });
  return found;
}

export function Palette() {
  useKeys({ "Ctrl+K": () => (isOpen.value = !isOpen.peek()) });
  return isOpen.value ? <Open /> : null;
}

function Open() {
  const dialog = useRef<HTMLDialogElement>(null);
  const before = useRef(document.activeElement as HTMLElement | null);
  const text = useSignal("");
  const at = useSignal(0);
  useEffect(() => {
    dialog.current?.showModal();
    return () => before.current?.focus();
  }, []);
  const all = useMemo(() => entries(text.value), [text.value, runs.value, run.value, last.value]);
  const shown = fitting(all, text.value, MOST);
  if (text.value.trim() !== "" && run.value !== null) {
    const search = readSearch(text.value);
    shown.push({ id: "search", kind: "search", word: `search "${plain(text.value.trim())}" in this run`, hint: "", act: () => go(`${pathOf(run.peek() ?? "")}`) });
    const entry = shown.at(-1);
    if (entry) entry.act = () => { go(pathOf(run.peek() ?? "")); setQuery({ grep: search.text, type: search.type, lanes: search.agent, writes: search.path }); };
  }
  const chosen = Math.min(at.value, shown.length - 1);
  const close = () => (isOpen.value = false);
  const take = (entry: Act | undefined) => {
    close();
    // The key acts after the palette is gone, so that it finds the field it goes to.
    if (entry) requestAnimationFrame(() => entry.act());
  };
  const key = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) at.value = (chosen + step + shown.length) % Math.max(1, shown.length);
    else if (event.key === "Enter") take(shown[chosen]);
    else return;
    event.preventDefault();
  };
  useEffect(() => document.getElementById(`entry-${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen, text.value]);
  return (
    <dialog class="palette" ref={dialog} aria-label="palette" onClose={close} onCancel={close} onClick={(event) => { if (event.target === dialog.current) close(); }}>
      <input
        role="combobox" aria-label="views, runs, ticks, keys" aria-expanded="true" aria-controls="entries" aria-activedescendant={shown.length > 0 ? `entry-${chosen}` : undefined} aria-autocomplete="list"
        placeholder="a view, a run, a tick, a key" value={text.value} autocomplete="off" spellcheck={false} autofocus onKeyDown={key}
        onInput={(event) => { text.value = event.currentTarget.value; at.value = 0; }}
      />
      <ul id="entries" role="listbox" aria-label="entries">
        {shown.map((entry, row) => (
          <li key={entry.id} id={`entry-${row}`} role="option" aria-selected={row === chosen} class={row === chosen ? "chosen" : ""} onClick={() => take(entry)}>
            <span class="dim kind">{entry.kind}</span> <T of={entry.word} limit={200} isOneLine /> <span class="dim hint-key">{entry.hint}</span>
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p class="dim">Nothing has these words.</p>}
    </dialog>
  );
}
