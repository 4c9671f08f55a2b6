// The address bar as a signal. Every state of a screen is in it.

import { computed, signal } from "@preact/signals";
import { readPath, withQuery, type Query } from "./pure/route.ts";

/** Path and query of the address that is shown. */
export const path = signal(location.pathname);
export const search = signal(location.search);
export const route = computed(() => readPath(path.value));
export const query = computed(() => new URLSearchParams(search.value));

function read(): void {
  path.value = location.pathname;
  search.value = location.search;
}
addEventListener("popstate", read);

/** Goes to an address of this server. */
export function go(address: string, isReplacing = false): void {
  const url = new URL(address, location.origin);
  if (url.origin !== location.origin) return;
  if (url.pathname === location.pathname && url.search === location.search) return;
  const isOther = url.pathname !== location.pathname;
  history[isReplacing ? "replaceState" : "pushState"](null, "", url.pathname + url.search);
  read();
  if (isOther) {
    scrollTo(0, 0);
    // A reader of the screen hears the new screen from its heading.
    requestAnimationFrame(() => document.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true }));
  }
}

let settled = 0;
/** Changes members of the query. A fast row of changes (scrubbing) is one step of the history. */
export function setQuery(changes: Query, isStep = true): void {
  const now = Date.now();
  const isFast = now - settled < 700;
  settled = now;
  go(location.pathname + withQuery(location.search, changes), !isStep || isFast);
}

/** Follows a link of this page without loading it again. */
export function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const link = (event.target as Element | null)?.closest?.("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin || /\.(json|jsonl|csv|svg)$|\/value$/.test(link.pathname)) return;
  if (link.pathname === location.pathname && link.search === location.search && link.hash) return;
  event.preventDefault();
  go(link.pathname + link.search);
}
