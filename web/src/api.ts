// Documents of the server. A failure is `dendrer.error/1`, and is shown with its code and help.

import { signal, useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Failure, Progress } from "./documents.ts";
import { parse } from "./pure/json.ts";
import { pathOf, queryOf, segment, type Query } from "./pure/route.ts";

export class Refused extends Error {
  readonly document: Failure;
  readonly status: number;
  constructor(document: Failure, status: number) {
    super(document.message);
    this.document = document;
    this.status = status;
  }
}

const failure = (code: string, message: string, notes: string[] = []): Failure => ({
  schema: "dendrer.error/1", code, kind: "page", message, where: {}, changed: false, notes, help: [],
});

/** The number of documents that are being asked for. */
export const asking = signal(0);

/** Asks for a document, and counts it while it is asked for. */
export async function ask<T>(address: string, abort?: AbortSignal): Promise<T> {
  asking.value += 1;
  try {
    return await fetched<T>(address, abort);
  } finally {
    asking.value -= 1;
  }
}

/** Tries of a question that the server could not answer, and of one that it had no room for. */
const TRIES = 3;
const TRIES_BUSY = 30;

/** Asks for the text of an answer; a server that has too many questions is asked again. */
async function textOf(address: string, accept: string, abort?: AbortSignal, tried = 1): Promise<{ text: string; response: Response }> {
  let response: Response;
  try {
    response = await fetch(address, { signal: abort ?? null, headers: { accept } });
  } catch (fault) {
    if (abort?.aborted) throw fault;
    throw new Refused(failure("offline", "the server does not answer", ["start `dendrer serve` again and open the address that it prints"]), 0);
  }
  const text = await response.text();
  if (response.status === 503 && tried < (text.includes('"E0810"') ? TRIES : TRIES_BUSY)) {
    const wait = Number(response.headers.get("retry-after") ?? "1");
    await new Promise((resolve) => setTimeout(resolve, Math.min(wait, 5) * 1000));
    if (!abort?.aborted) return textOf(address, accept, abort, tried + 1);
  }
  return { text, response };
}

/** Reads a document. */
async function fetched<T>(address: string, abort?: AbortSignal): Promise<T> {
  const { text, response } = await textOf(address, "application/json", abort);
  let document: unknown;
  try {
    document = parse(text);
  } catch {
    if (response.status === 401) throw new Refused(failure("401", "this page needs the token of the server", ["open the address that `dendrer serve` printed, then this one again"]), 401);
    throw new Refused(failure(String(response.status), "the answer is no document"), response.status);
  }
  if ((document as { schema?: unknown }).schema === "dendrer.error/1") throw new Refused(document as Failure, response.status);
  return document as T;
}

/** Asks for a value as it is: the text, or its JSON. */
export async function askText(address: string): Promise<string> {
  const { text, response } = await textOf(address, "*/*");
  if (response.ok) return text;
  let document: Failure;
  try {
    document = parse(text) as Failure;
  } catch {
    document = failure(String(response.status), "the server sends no value");
  }
  throw new Refused(document, response.status);
}

/** Asks for a document line by line: progress, its items, and its other members as the last line. */
export async function lines<T extends { items: unknown }>(address: string, abort: AbortSignal, onProgress: (progress: Progress) => void): Promise<T> {
  const response = await fetch(address, { signal: abort, headers: { accept: "application/jsonl" } }).catch((fault: unknown) => {
    if (abort.aborted) throw fault;
    throw new Refused(failure("offline", "the server does not answer"), 0);
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const found: unknown[] = [];
  let summary: object | null = null;
  let rest = "";
  const take = (line: string): void => {
    if (line === "") return;
    const one = parse(line) as { schema?: string; summary?: object };
    if (one.schema === "dendrer.error/1") throw new Refused(one as Failure, response.status);
    if (one.schema === "dendrer.progress/1") onProgress(one as Progress);
    else if (one.schema === undefined && one.summary !== undefined) summary = one.summary;
    else found.push(one);
  };
  for (;;) {
    const part = await reader?.read();
    if (!part || part.done) break;
    const whole = (rest + part.value).split("\n");
    rest = whole.pop() ?? "";
    whole.forEach(take);
  }
  take(rest);
  // A stream that broke off has no last line: its items are not all.
  if (summary === null) throw new Refused(failure("offline", "the answer broke off"), response.status);
  return { ...(summary as object), items: found } as T;
}

/** Writes the address of a document of a run. */
export function of(run: string, name: string, query: Query = {}): string {
  return `${pathOf(run)}/${name}.json${queryOf(query)}`;
}

/** Writes the address of a document of a tick of a run. */
export function at(run: string, tick: number, name: string, query: Query = {}): string {
  return `/run/${segment(run)}/t/${tick}/${name}.json${queryOf(query)}`;
}

export type Answer<T> = { state: "asking"; last: T | null } | { state: "there"; document: T } | { state: "failed"; failure: Failure; last: T | null };

const CACHE = new Map<string, unknown>();
const CACHE_MAX = 300;

/** Forgets the answers that may have changed, because a run grew. A window that ends at or before `kept` stays as it is. */
export function forget(prefix: string, kept = -1): void {
  const isStale = (key: string): boolean => {
    const to = /[?&]to=(\d+)/.exec(key);
    return key.startsWith(prefix) && !(to && Number(to[1]) <= kept);
  };
  for (const key of [...CACHE.keys()]) if (isStale(key)) CACHE.delete(key);
  for (const key of [...FLIGHTS.keys()]) if (isStale(key)) FLIGHTS.delete(key);
}

function keep(address: string, document: unknown): void {
  CACHE.set(address, document);
  if (CACHE.size > CACHE_MAX) {
    const oldest = CACHE.keys().next().value;
    if (oldest !== undefined) CACHE.delete(oldest);
  }
}

type Flight = { answer: Promise<unknown>; control: AbortController; users: number };
const FLIGHTS = new Map<string, Flight>();

/** Asks for a document once: the same address is answered from memory, and one that is asked already is not asked twice. */
export async function askOnce<T>(address: string, abort?: AbortSignal): Promise<T> {
  if (CACHE.has(address)) return CACHE.get(address) as T;
  let flight = FLIGHTS.get(address);
  if (!flight) {
    const control = new AbortController();
    const answer = ask<T>(address, control.signal).then((document) => {
      if (FLIGHTS.get(address)?.control === control) keep(address, document);
      return document;
    }).finally(() => {
      if (FLIGHTS.get(address)?.control === control) FLIGHTS.delete(address);
    });
    flight = { answer, control, users: 0 };
    FLIGHTS.set(address, flight);
  }
  const own = flight;
  own.users += 1;
  // The question ends when the last part of the page that asked it is gone.
  abort?.addEventListener("abort", () => {
    own.users -= 1;
    if (own.users > 0) return;
    if (FLIGHTS.get(address) === own) FLIGHTS.delete(address);
    own.control.abort();
  }, { once: true });
  return own.answer as Promise<T>;
}

/** The least time between two questions about a run that grows. */
const PAUSE = 300;

type Followed<T> = { ask: (abort: AbortSignal) => Promise<T>; take: (answer: T) => void; fail: (fault: unknown) => void };

/**
 * Asks again while `version` changes, but lets each question end: one about a long run that grows would never have an answer
 * if each new tick began it anew. Another `key` is another question. `null` asks for nothing.
 */
export function useFollowed<T>(key: string | null, version: string, followed: Followed<T>): void {
  const now = useRef({ version, followed, again: () => {} });
  now.current.version = version;
  now.current.followed = followed;
  useEffect(() => {
    if (key === null) return;
    const control = new AbortController();
    let timer = 0;
    let asked: string | null = null;
    const run = (): void => {
      const begun = Date.now();
      const { followed: own, version: of } = now.current;
      timer = -1;
      asked = of;
      own.ask(control.signal).then(
        (answer) => control.signal.aborted || now.current.followed.take(answer),
        (fault: unknown) => control.signal.aborted || now.current.followed.fail(fault),
      ).finally(() => {
        timer = 0;
        if (!control.signal.aborted) later(Math.max(PAUSE, Date.now() - begun));
      });
    };
    const later = (pause: number): void => {
      if (timer === 0 && asked !== now.current.version) timer = window.setTimeout(run, pause);
    };
    now.current.again = () => later(0);
    run();
    return () => {
      control.abort();
      clearTimeout(timer);
      now.current.again = () => {};
    };
  }, [key]);
  useEffect(() => now.current.again(), [version]);
}

/** Follows a document by its address: the last one stays in sight until the next is there. `null` asks for nothing. */
export function useAnswer<T>(address: string | null, version = 0): Signal<Answer<T>> {
  const answer = useSignal<Answer<T>>(
    address !== null && CACHE.has(address) ? { state: "there", document: CACHE.get(address) as T } : { state: "asking", last: null },
  );
  useEffect(() => {
    if (address === null) return;
    const before = answer.peek();
    if (CACHE.has(address)) put(answer, CACHE.get(address) as T);
    else answer.value = { state: "asking", last: before.state === "there" ? before.document : before.last };
  }, [address]);
  useFollowed<T>(address, String(version), {
    ask: (abort) => askOnce<T>(address ?? "", abort),
    take: (document) => put(answer, document),
    fail: (fault) => {
      const last = known(answer.peek());
      answer.value = { state: "failed", failure: fault instanceof Refused ? fault.document : failure("page", String(fault)), last };
    },
  });
  return answer;
}

/** Puts a document in sight; one that is there already is not drawn again. */
function put<T>(answer: Signal<Answer<T>>, document: T): void {
  const before = answer.peek();
  if (before.state !== "there" || before.document !== document) answer.value = { state: "there", document };
}

/** Returns the document of an answer, or the one before it. */
export function known<T>(answer: Answer<T>): T | null {
  return answer.state === "there" ? answer.document : answer.last;
}

/** Returns the items of a document whose count may stand in their place. */
export function list<T>(items: readonly T[] | number | null | undefined): readonly T[] {
  return Array.isArray(items) ? items : [];
}

type Api = { paths: Record<string, { get?: { parameters?: { name: string }[] } }> };
const api = signal<Promise<Api> | null>(null);

/** Whether the server has a document, with a word of its query if one is given. */
export async function has(document: string, word?: string): Promise<boolean> {
  api.value ??= ask<Api>("/openapi.json");
  try {
    const found = (await api.value).paths[document]?.get;
    return found !== undefined && (word === undefined || (found.parameters ?? []).some((one) => one.name === word));
  } catch {
    api.value = null;
    return false;
  }
}
