// Addresses of the page: the path is the object, the query is the view. One table for reading and for writing.

export type View = "state" | "diff" | "bisect" | "verify" | "commitments" | "why" | "backtrack" | "contract" | "conflicts" | "heatmap" | "compare" | "steps" | "layout";
export type Route =
  | { name: "runs" }
  | { name: "run"; run: string }
  | { name: "view"; run: string; view: View; tick: number | null }
  | { name: "help"; page: string }
  | { name: "lost"; path: string };

export const RUN_VIEWS: readonly View[] = ["diff", "bisect", "verify", "commitments", "backtrack", "contract", "conflicts", "heatmap", "compare", "steps", "layout"];
const TICK_VIEWS: readonly View[] = ["state", "why"];

/** Reads a path. */
export function readPath(path: string): Route {
  let parts: string[];
  try {
    parts = path.split("/").filter((part) => part !== "").map(decodeURIComponent);
  } catch {
    return { name: "lost", path };
  }
  const [first, run, third, fourth, fifth] = parts;
  if (parts.length === 0 || (parts.length === 1 && first === "runs")) return { name: "runs" };
  if (first === "help" && parts.length <= 2) return { name: "help", page: run ?? "keys" };
  if (first !== "run" || run === undefined) return { name: "lost", path };
  if (parts.length === 2) return { name: "run", run };
  const view = RUN_VIEWS.find((one) => one === third);
  if (parts.length === 3 && view) return { name: "view", run, view, tick: null };
  const at = TICK_VIEWS.find((one) => one === fifth);
  if (parts.length === 5 && third === "t" && at && /^\d{1,15}$/.test(fourth ?? "")) return { name: "view", run, view: at, tick: Number(fourth) };
  return { name: "lost", path };
}

/** Writes a name as one segment. A dot is escaped too: an end like `.json` would ask for a document. */
export function segment(name: string): string {
  return encodeURIComponent(name).replaceAll(".", "%2E");
}

/** Writes the path of a run, of one of its views, or of a view at a tick. */
export function pathOf(run: string, view?: View, tick?: number): string {
  const base = `/run/${segment(run)}`;
  if (!view) return base;
  return tick === undefined ? `${base}/${view}` : `${base}/t/${tick}/${view}`;
}

export type Query = Record<string, string | readonly string[] | number | null | undefined | boolean>;

/** Writes a query; members without a value are left out, and their order is that of the object. */
export function queryOf(query: Query): string {
  const pairs: string[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined || value === false || value === "") continue;
    for (const one of Array.isArray(value) ? value : [value]) pairs.push(`${encodeURIComponent(name)}=${encodeURIComponent(String(one))}`);
  }
  return pairs.length > 0 ? `?${pairs.join("&")}` : "";
}

/** Changes members of a query and keeps the others in their order. */
export function withQuery(search: string, changes: Query): string {
  const kept = new URLSearchParams(search);
  const all: Record<string, string[]> = {};
  for (const [name, value] of kept) (all[name] ??= []).push(value);
  return queryOf({ ...all, ...changes });
}

/** Reads a range `a..b` within 0 and `last`; null if there is none. */
export function readRange(text: string | null, last: number): [number, number] | null {
  const found = /^(\d{1,15})\.\.(\d{1,15})$/.exec(text ?? "");
  if (!found) return null;
  const from = Math.min(Number(found[1]), last);
  const to = Math.min(Number(found[2]), last);
  return from < to ? [from, to] : null;
}

/** Reads a tick within 0 and `last`; null if there is none. */
export function readTick(text: string | null, last: number): number | null {
  return text !== null && /^\d{1,15}$/.test(text) ? Math.min(Number(text), last) : null;
}
