// Places of a state: JSON pointers, and the way they are written for a reader.

import { write } from "./json.ts";

/** Splits a JSON pointer into its names. */
export function names(pointer: string): string[] {
  if (pointer === "") return [];
  return pointer.replace(/^\//, "").split("/").map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Joins names to a JSON pointer. */
export function pointer(path: readonly string[]): string {
  return path.map((name) => `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** Writes a pointer as the program does: `policy.violated`, `sources[2]`, quoted if a name is no word. */
export function written(place: string): string {
  let text = "";
  for (const name of names(place)) {
    if (/^\d+$/.test(name)) text += `[${name}]`;
    else if (/^[\p{L}_][\p{L}\p{N}_-]*$/u.test(name)) text += text ? `.${name}` : name;
    else text += `${text ? "." : ""}${JSON.stringify(name)}`;
  }
  return text || "(the whole state)";
}

export type Change = { path: string; before?: unknown; after?: unknown };
export type Shown = Change & { sign: "+" | "-" | "~" };

/** Gives each change its sign. A list that only became longer is shown as its new items. */
export function signed(changes: readonly Change[]): Shown[] {
  return changes.flatMap((change): Shown[] => {
    const hasBefore = "before" in change;
    const hasAfter = "after" in change;
    const { before, after } = change;
    if (Array.isArray(before) && Array.isArray(after) && after.length > before.length) {
      const isLonger = before.every((item, at) => write(item) === write(after[at]));
      if (isLonger && after.length - before.length <= 20) {
        return after.slice(before.length).map((item, at) => ({ path: `${change.path}/${before.length + at}`, after: item, sign: "+" }));
      }
    }
    return [{ ...change, sign: !hasBefore ? "+" : !hasAfter ? "-" : "~" }];
  });
}
