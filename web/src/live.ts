// Events of the server. The stream is closed while the page is hidden, and begins again where it was.

import { effect } from "@preact/signals";
import { segment } from "./pure/route.ts";
import { grew, last, loadRuns, run } from "./store.ts";

let wanted = 0;
/** Loads the list of runs again, once for many events. */
function soon(): void {
  if (wanted) return;
  wanted = window.setTimeout(() => {
    wanted = 0;
    void loadRuns();
  }, 500);
}

export function begin(): void {
  let all: EventSource | null = null;
  let one: EventSource | null = null;
  let pending = new Map<string, number>();
  let frame = 0;
  const took = (name: string, tick: number) => {
    pending.set(name, Math.max(tick, pending.get(name) ?? 0));
    if (frame) return;
    frame = window.setTimeout(() => {
      frame = 0;
      const now = pending;
      pending = new Map();
      for (const [known, at] of now) grew(known, at);
    }, 250);
  };
  const open = () => {
    if (all || document.hidden) return;
    all = new EventSource("/events");
    all.addEventListener("run", (event) => {
      const data = JSON.parse(event.data as string) as { name: string; ticks: number };
      soon();
      if (data.name !== run.peek()) took(data.name, data.ticks);
    });
  };
  const follow = (name: string | null, after: number | null) => {
    one?.close();
    one = null;
    if (name === null || after === null || document.hidden) return;
    one = new EventSource(`/run/${segment(name)}/events?after=${after}`);
    one.addEventListener("transition", (event) => {
      const data = JSON.parse(event.data as string) as { tick: number | null };
      if (data.tick !== null) took(name, data.tick);
    });
    one.addEventListener("lost", (event) => took(name, (JSON.parse(event.data as string) as { next: number }).next));
  };
  let followed: string | null = null;
  effect(() => {
    const name = run.value;
    const isKnown = last.value !== null;
    if (name !== followed || (isKnown && !one)) {
      followed = name;
      follow(name, isKnown ? last.peek() : null);
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      all?.close();
      one?.close();
      all = one = null;
    } else {
      open();
      void loadRuns();
      follow(run.peek(), last.peek());
    }
  });
  open();
}
