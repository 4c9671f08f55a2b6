// Keys of the screen that is shown. Never in a field of text, and not with Ctrl, Alt or Cmd.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export type Keys = Record<string, () => void>;

const KEPT = "dendrer-keys";
const read = (): boolean => {
  try {
    return localStorage.getItem(KEPT) !== "off";
  } catch {
    return true;
  }
};

/** Whether keys of one letter act. */
export const isOn = signal(read());

export function setOn(on: boolean): void {
  isOn.value = on;
  try {
    localStorage.setItem(KEPT, on ? "on" : "off");
  } catch {
    // The choice is not remembered.
  }
}

/** The word that follows `g`; null if `g` was not pressed. */
let prefix = 0;

/** Adds keys while a component is shown. `g x` is written `gx`. */
export function useKeys(keys: Keys): void {
  useEffect(() => {
    const act = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as HTMLElement | null;
      if (target && (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable) && !(target instanceof HTMLInputElement && /^(checkbox|radio|range)$/.test(target.type))) return;
      if (event.key.length === 1 && !isOn.peek()) return;
      const isAfter = Date.now() - prefix < 1200;
      const name = isAfter && keys[`g${event.key}`] ? `g${event.key}` : event.key;
      if (event.key === "g" && !isAfter) prefix = Date.now();
      const does = keys[name];
      if (!does) return;
      if (name.length === 2) prefix = 0;
      event.preventDefault();
      does();
    };
    addEventListener("keydown", act);
    return () => removeEventListener("keydown", act);
  });
}
