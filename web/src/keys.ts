// Keys of the screen that is shown. Never in a field of text, and not with Ctrl, Alt or Cmd.

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

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

/** The keys of the parts of the screen that are shown; the newest part comes first. */
const known: { keys: Keys }[] = [];
/** The time at which `g` was pressed. */
let prefix = 0;

/** Returns what a key does on the screen that is shown. */
export function find(name: string): (() => void) | undefined {
  return known.findLast((one) => one.keys[name])?.keys[name];
}

function act(event: KeyboardEvent): void {
  // Ctrl or Cmd with K acts in a field too, and when keys of one letter are off.
  if (!event.defaultPrevented && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    const opens = find("Ctrl+K");
    if (opens) {
      event.preventDefault();
      opens();
    }
    return;
  }
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target as HTMLElement | null;
  // An open dialog has its own keys.
  if (document.querySelector("dialog[open]")) return;
  const isField = target instanceof HTMLInputElement ? !/^(checkbox|radio|range)$/.test(target.type) : target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
  if (isField && event.key !== "Escape") return;
  if (event.key.length === 1 && !isOn.peek()) return;
  const isAfter = Date.now() - prefix < 1200;
  prefix = event.key === "g" && !isAfter ? Date.now() : 0;
  const does = isAfter ? find(`g${event.key}`) : find(event.key);
  if (!does) return;
  event.preventDefault();
  does();
}
addEventListener("keydown", act);

/** Adds keys while a component is shown. `g x` is written `gx`. */
export function useKeys(keys: Keys): void {
  const own = useRef<{ keys: Keys }>({ keys });
  own.current.keys = keys;
  useLayoutEffect(() => {
    const mine = own.current;
    known.push(mine);
    return () => {
      known.splice(known.indexOf(mine), 1);
    };
  }, []);
}
