// The keys of the page and what they do: for help and for the palette. `ga` is `g`, then `a`.

export const KEYS: readonly (readonly [key: string, words: string])[] = [
  ["j", "next tick or row"], ["k", "previous tick or row"], ["J", "ten ticks on"], ["K", "ten ticks back"], ["Home", "tick 0"], ["End", "last tick"],
  ["h", "nearest tick of the lane above"], ["l", "nearest tick of the lane below"],
  ["v", "next violation"], ["V", "previous violation"], ["n", "next anomaly, denial or failure"], ["N", "previous anomaly, denial or failure"],
  ["]", "next change of the pinned place"], ["[", "previous change of the pinned place"], ["x", "pin the chosen place, or unpin it"],
  ["/", "search in the run"], ["b", "ask what must hold"], ["y", "copy link"], ["Y", "copy command"], ["f", "copy the command of a fork at this tick"],
  ["gr", "go to the runs"], ["gt", "go to the run"], ["gs", "go to the state"], ["gd", "go to the diff"], ["gb", "go to bisect"], ["gg", "go to the graph"], ["gc", "go to the causes: why"],
  ["gp", "go to the history of a place"], ["gh", "go to the heatmap"], ["ga", "go to the comparison of agents"], ["ge", "go to the steps"], ["gm", "go to the commitments"], ["go", "go to the conflicts"],
  ["gk", "go to the contract"], ["gv", "go to the verification"],
  ["w", "on the picture: zoom in"], ["s", "on the picture: zoom out"], ["a", "on the picture: move left"], ["d", "on the picture: move right"],
  ["Enter", "open: from a list to what is chosen"], ["Escape", "close, or leave a field"], ["Ctrl+K", "palette: views, runs, ticks, keys"], ["?", "this page"],
];

/** Writes a key as a reader presses it. */
export function pressed(key: string): string {
  return key.length === 2 && key.startsWith("g") ? `g ${key[1]}` : key;
}

export type Entry = { word: string; hint: string; kind: "tick" | "view" | "run" | "key" | "search" | "theme" };

/** Orders entries for a text: each word of it must be in the entry; one that begins with the text comes first. */
export function fitting<E extends Entry>(entries: readonly E[], text: string, most: number): E[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return entries.slice(0, most);
  const words = wanted.split(/\s+/);
  const rank = (entry: E): number => {
    const whole = `${entry.word} ${entry.hint} ${entry.kind}`.toLowerCase();
    if (!words.every((word) => whole.includes(word))) return -1;
    const own = entry.word.toLowerCase();
    return own.startsWith(wanted) ? 0 : own.includes(wanted) ? 1 : 2;
  };
  return entries.map((entry) => ({ entry, at: rank(entry) })).filter((one) => one.at >= 0).sort((a, b) => a.at - b.at).slice(0, most).map((one) => one.entry);
}

export type Search = { text: string; type: string[]; agent: string[]; path: string | null };

/** Reads a search: `type:`, `agent:` and `path:` are filters, the rest is text. A value with spaces is quoted. */
export function readSearch(written: string): Search {
  const found: Search = { text: "", type: [], agent: [], path: null };
  const rest = written.replaceAll(/(^|\s)(type|agent|path):("([^"]*)"|\S+)/g, (_, __, name: string, value: string, quoted: string | undefined) => {
    const word = quoted ?? value;
    if (name === "type") found.type.push(word);
    else if (name === "agent") found.agent.push(word);
    else found.path = word;
    return " ";
  });
  found.text = rest.replaceAll(/\s+/g, " ").trim();
  return found;
}

/** Writes a text so that the program searches it as it is. `(?i)` in front stays: it ignores capitals. */
export function escaped(text: string): string {
  const [, flag = "", rest = ""] = /^(\(\?i\))?(.*)$/s.exec(text) ?? [];
  return flag + rest.replaceAll(/[\\^$.*+?()[\]{}|#&\-~]/g, "\\$&");
}

/** Writes a search as a reader types it. */
export function writeSearch(search: Search): string {
  const word = (value: string): string => (/\s/.test(value) ? `"${value}"` : value);
  return [...search.type.map((one) => `type:${word(one)}`), ...search.agent.map((one) => `agent:${word(one)}`), ...(search.path ? [`path:${word(search.path)}`] : []), search.text].filter(Boolean).join(" ");
}
