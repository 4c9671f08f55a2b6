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

/** Writes a pointer as the program reads and writes it: `policy.violated`, `sources[2]`, `nested["k.with.dot"]`. */
export function written(place: string): string {
  let text = "";
  for (const name of names(place)) {
    if (/^(0|[1-9]\d*)$/.test(name)) text += `[${name}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(name)) text += text ? `.${name}` : name;
    else text += `[${JSON.stringify(name)}]`;
  }
  return text || "(the whole state)";
}

/** Writes a place of an address: a pointer as the program does, another form as it was typed. */
export function shown(place: string): string {
  return place === "" || place.startsWith("/") ? written(place) : place;
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
