// The picture of a run: all ticks, verdicts, a lane per agent. Decoration over the list of ticks, which says the same.

import { useSignal, type Signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { isOn } from "../keys.ts";
import { agentName } from "../pure/names.ts";
import { plain } from "../pure/invisible.ts";
import { binAt, isBad, laneAt, linksOf, rowOf, spotsOf, tickOf, WORDS, wordsOf, xOf, type Link, type Shape, type Sign, type Timeline } from "../pure/timeline.ts";
import { painted } from "../theme.ts";
import { Name } from "./text.tsx";

const MARKS = 22;
/** Room above the bars for the marks of the document, if a bar is more than a tick. */
const SPOTS = 14;
const STRIP = 14;
const LANE = 20;
const GAP = 4;
export type ShownLane = { lane: number; depth: number };
/** Lanes that a narrow window has room for. */
const LANES_NARROW = 4;

type Props = {
  of: Timeline; links: readonly Link[]; tick: number; lanes: readonly ShownLane[]; folded: readonly number[]; canZoomOut: boolean; isUnfolded: boolean; onFold: (isFolded: boolean) => void;
  onTick: (tick: number) => void; onZoom: (range: [number, number] | null) => void; onStep: (by: number) => void; onPinch: (factor: number) => void;
};

export function Picture({ of, links, tick, lanes: every, folded, isUnfolded, canZoomOut, onFold, onTick, onZoom, onStep, onPinch }: Props) {
  const base = useRef<HTMLCanvasElement>(null);
  // The moment is drawn over the picture, which stays as it is while a reader scrubs.
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(canvas);
  const brush = useSignal<[number, number] | null>(null);
  const isNarrow = width.value > 0 && matchMedia("(max-width: 640px)").matches;
  const lanes = useMemo(() => (isNarrow ? every.slice(0, LANES_NARROW) : every), [isNarrow, every]);
  const top = topOf(of);
  const height = top + GAP + of.strips.length * (STRIP + GAP) + lanes.length * LANE + GAP;

  const wide = width.value;
  const paint = painted.value;
  const range = brush.value;
  useLayoutEffect(() => {
    const context = wide > 0 ? sized(base.current, wide, height) : null;
    if (context) draw(context, of, lanes, wide, colours(context.canvas));
  }, [of, lanes, wide, height, paint]);
  useLayoutEffect(() => {
    const context = wide > 0 ? sized(canvas.current, wide, height) : null;
    if (!context) return;
    drawMoment(context, of, tick, wide, height, range, colours(context.canvas));
    drawLinks(context, of, linksOf(links, tick), lanes, wide, colours(context.canvas));
  }, [of, links, lanes, tick, wide, height, paint, range]);

  const acts = pointerOf({ of, tick, wide, canvas, brush, onTick, onZoom });
  const key = keysOf(of.width, onPinch, onStep);
  const bins = of.bins.length;
  return (
    <figure class="picture">
      <div class="rows">
        <Labels of={of} lanes={lanes} />
        <div class="canvas">
          <canvas ref={base} aria-hidden="true" />
          <canvas
            class="moment"
            ref={canvas}
            tabIndex={0}
            role="img"
            aria-label={`Timeline of ticks ${of.from} to ${of.to}, ${bins} marks, ${of.lanes.length} lanes; tick ${tick} is selected. The list below says the same. Keys: w and s zoom, a and d pan.`}
            {...acts}
            onKeyDown={key}
          />
        </div>
      </div>
      <figcaption>
        <Legend of={of} hasLinks={lanes.length > 0 && linksOf(links, tick).length > 0} />
        <LeftOut of={of} />
        {lanes.length < every.length && <span class="dim">{every.length - lanes.length} more lanes in a wider window</span>}
        {(folded.length > 0 || isUnfolded) && <Fold of={of} folded={folded} isUnfolded={isUnfolded} onFold={onFold} />}
        {canZoomOut && <button type="button" class="small" onClick={() => onZoom(null)}>Show all ticks</button>}
      </figcaption>
    </figure>
  );
}

/** Follows the width of the box around a canvas. */
function useWidth(canvas: { current: HTMLCanvasElement | null }): Signal<number> {
  const width = useSignal(0);
  useLayoutEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box) return;
    const observer = new ResizeObserver(() => (width.value = box.clientWidth));
    observer.observe(box);
    width.value = box.clientWidth;
    return () => observer.disconnect();
  }, []);
  return width;
}

/** Labels of the rows: marks, questions, lanes. */
function Labels({ of, lanes }: { of: Timeline; lanes: readonly ShownLane[] }) {
  return (
    <div class="labels">
      <div class="label label-marks" style={{ height: `${topOf(of)}px` }}>{of.width === 1 ? "all ticks" : `1 mark = ${of.width.toLocaleString("en")} ticks`}</div>
      {of.strips.map((strip) => <div class="label label-strip" key={strip.predicate} title={plain(strip.predicate)}><Name of={strip.predicate} /></div>)}
      {lanes.map(({ lane, depth }) => (
        <div class="label label-lane" key={lane} style={{ paddingLeft: `${Math.min(3, depth) * 10}px` }}><Name of={nameOf(of, lane)} /> <span class="dim count">{of.lanes[lane]?.total.toLocaleString("en")}</span></div>
      ))}
    </div>
  );
}

function Fold({ of, folded, isUnfolded, onFold }: { of: Timeline; folded: readonly number[]; isUnfolded: boolean; onFold: (isFolded: boolean) => void }) {
  const names = folded.slice(0, 3).map((lane) => plain(nameOf(of, lane))).join(", ").slice(0, 60);
  return <button type="button" class="small" aria-pressed={isUnfolded} onClick={() => onFold(isUnfolded)}>{isUnfolded ? "fold quiet lanes" : `${folded.length} more lanes: ${names}${folded.length > 3 ? ", .." : ""}`}</button>;
}

type Pointed = {
  of: Timeline; tick: number; wide: number; canvas: { current: HTMLCanvasElement | null }; brush: Signal<[number, number] | null>;
  onTick: (tick: number) => void; onZoom: (range: [number, number] | null) => void;
};

/** A click goes to a tick; a drawn range is zoomed to, and ends at ticks. */
function pointerOf({ of, tick, wide, canvas, brush, onTick, onZoom }: Pointed) {
  const xFrom = (event: PointerEvent): number => event.clientX - (canvas.current?.getBoundingClientRect().left ?? 0);
  const binFrom = (x: number) => of.bins[binAt(x, wide, of.bins.length)];
  return {
    onPointerDown: (event: PointerEvent) => {
      canvas.current?.setPointerCapture(event.pointerId);
      brush.value = [xFrom(event), xFrom(event)];
    },
    onPointerMove: (event: PointerEvent) => {
      if (brush.value) brush.value = [brush.value[0], xFrom(event)];
      // The words of the mark under the pointer, without drawing anything again.
      const bin = binFrom(xFrom(event));
      if (canvas.current && bin) canvas.current.title = plain(wordsOf(bin));
    },
    onPointerUp: (event: PointerEvent) => {
      const drawn = brush.value;
      brush.value = null;
      if (!drawn) return;
      const a = binFrom(Math.min(drawn[0], xFrom(event)));
      const b = binFrom(Math.max(drawn[0], xFrom(event)));
      if (!a || !b) return;
      if (Math.abs(drawn[0] - xFrom(event)) > 6 && b.to > a.from) onZoom([a.from, b.to]);
      else onTick(tickOf(of, a, tick));
    },
  };
}

/** Keys of the picture while it has the focus. */
function keysOf(width: number, onPinch: (factor: number) => void, onStep: (by: number) => void): (event: KeyboardEvent) => void {
  const far = Math.max(1, width * 8);
  const does: Record<string, () => void> = {
    w: () => onPinch(0.5), s: () => onPinch(2), a: () => onStep(-far), d: () => onStep(far), ArrowLeft: () => onStep(-1), ArrowRight: () => onStep(1),
  };
  return (event) => {
    const found = does[event.key];
    if (!found || event.ctrlKey || event.metaKey || event.altKey || (event.key.length === 1 && !isOn.peek())) return;
    event.preventDefault();
    event.stopPropagation();
    found();
  };
}

function nameOf(of: Timeline, lane: number): string {
  const one = of.lanes[lane];
  if (one?.agent) return agentName(one.agent);
  return (one && one.agents > 0 ? `${one.agents} more agents` : "(no agent)");
}

/** The height of the first row: bars, and above them marks. */
function topOf(of: Timeline): number {
  return of.width > 1 ? MARKS + SPOTS : MARKS;
}

/** The marks that the document left out, by kind. */
function LeftOut({ of }: { of: Timeline }) {
  const kinds = Object.entries(of.leftOut).filter(([, count]) => count > 0);
  if (kinds.length === 0) return null;
  return <span class="left-out">marks left out: {kinds.map(([kind, count]) => `${count.toLocaleString("en")} ${kind}`).join(", ")}</span>;
}

function Legend({ of, hasLinks }: { of: Timeline; hasLinks: boolean }) {
  const found = new Set<Sign>(rowOf(of, of.bins.length, MARKS, null).map((shape) => shape.sign));
  if (of.width > 1) {
    // A bar has the colour of its worst sign; forms are drawn for marks alone.
    for (const sign of found) if (!isBad(sign)) found.delete(sign);
    for (const one of spotsOf(of, 1000, 10)) found.add(one.sign);
  }
  found.delete("none");
  return (
    <span class="legend">
      {[...found].map((sign) => <span key={sign} class="legend-item"><svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true" class={`sign sign-${sign}`}><path d={PATHS[sign]} /></svg> {WORDS[sign]}</span>)}
      {of.width > 1 && <span class="legend-item">height: the count; colour and mark: the worst</span>}
      {of.strips.some((strip) => strip.items.some((words) => words.includes("uncertain"))) && <span class="legend-item"><span class="hatch" aria-hidden="true" /> unknown verdict</span>}
      {hasLinks && <span class="legend-item">line: follows from</span>}
      {of.width === 1 && of.bins.some((bin) => bin.n > 0 && bin.changes === 0) && <span class="legend-item">hollow: no change</span>}
    </span>
  );
}

/** Shapes of signs in a square of 12: read by form as well as by colour. */
const PATHS: Record<Sign, string> = {
  onset: "M2 1h8l-4 10z",
  question: "M3 4a3 3 0 1 1 4 2.6l-1 1v1M6 10.2v1",
  denied: "M2 2h8v8h-8z M4 6h4",
  failed: "M2 2l8 8M10 2l-8 8",
  anomaly: "M6 1l5 9h-10z",
  gap: "M1 2h2v8h-2z M9 2h2v8h-2z",
  closed: "M1 5h10v2h-10z",
  unknown: "M2 6h2M5 6h2M8 6h2",
  merge: "M2 2l4 4l-4 4 M6 6h5",
  fork: "M1 6h4l5-4 M5 6l5 4",
  result: "M6 2v8M2 6h8",
  request: "M3 2l6 4l-6 4",
  plan: "M2 3h8M2 6h8M2 9h5",
  memory: "M2 2h8v8h-8z",
  policy: "M2 4h8M2 8h8",
  saw: "M6 2a4 4 0 1 0 .01 0z",
  other: "M6 3l3 3l-3 3l-3-3z",
  none: "",
};
/** Signs that are areas; the others are lines. */
const FILLED = new Set<Sign>(["onset", "anomaly", "gap", "closed", "memory", "saw", "other", "request"]);

type Colours = Record<"ink" | "dim" | "line" | "bad" | "warn" | "ok" | "accent" | "page", string>;

function colours(element: Element): Colours {
  const style = getComputedStyle(element);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return { ink: of("--ink"), dim: of("--dim"), line: of("--line"), bad: of("--bad"), warn: of("--warn"), ok: of("--ok"), accent: of("--accent"), page: of("--page") };
}

/** Gives a canvas its size in pixels of the screen. */
function sized(element: HTMLCanvasElement | null, width: number, height: number): CanvasRenderingContext2D | null {
  const context = element?.getContext("2d") ?? null;
  if (!element || !context) return null;
  const ratio = devicePixelRatio || 1;
  if (element.width !== Math.round(width * ratio)) element.width = Math.round(width * ratio);
  if (element.height !== Math.round(height * ratio)) element.height = Math.round(height * ratio);
  element.style.width = `${width}px`;
  element.style.height = `${height}px`;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

function draw(c: CanvasRenderingContext2D, of: Timeline, lanes: readonly ShownLane[], width: number, paint: Colours): void {
  const column = width / Math.max(1, of.bins.length);
  let y = 0;
  if (of.width > 1) for (const spot of spotsOf(of, width, 10)) glyph(c, spot.sign, spot.x, SPOTS / 2 - 1, 9, paint, false);
  row(c, rowOf(of, width, MARKS, null), y + topOf(of) - MARKS, MARKS, paint);
  y += topOf(of) + GAP;
  for (const strip of of.strips) {
    strip.items.forEach((words, bin) => verdict(c, words, bin * column, y, column, paint));
    if (strip.onset !== null && strip.onset >= of.from && strip.onset <= of.to) {
      c.fillStyle = paint.ink;
      c.fillRect(xOf(strip.onset, of, width) - column / 2 - 1, y - 2, 2, STRIP + 4);
    }
    y += STRIP + GAP;
  }
  for (const { lane } of lanes) {
    c.fillStyle = paint.line;
    c.fillRect(0, y + LANE / 2 - 0.5, width, 1);
    row(c, rowOf(of, width, LANE, lane), y, LANE, paint);
    y += LANE;
  }
}

function drawMoment(c: CanvasRenderingContext2D, of: Timeline, tick: number, width: number, height: number, brush: [number, number] | null, paint: Colours): void {
  const column = width / Math.max(1, of.bins.length);
  const at = xOf(tick, of, width);
  c.fillStyle = c.strokeStyle = paint.accent;
  c.globalAlpha = 0.18;
  c.fillRect(at - Math.max(2, column / 2), 0, Math.max(4, column), height);
  c.globalAlpha = column > 8 ? 0.25 : 1;
  c.fillRect(at - 1, 0, 2, height);
  if (brush && Math.abs(brush[1] - brush[0]) > 6) {
    c.globalAlpha = 0.25;
    c.fillRect(Math.min(...brush), 0, Math.abs(brush[1] - brush[0]), height);
  }
  c.globalAlpha = 1;
}

/** Draws links of the record between lanes: what a tick follows from, and merges. */
function drawLinks(c: CanvasRenderingContext2D, of: Timeline, links: readonly Link[], lanes: readonly ShownLane[], width: number, paint: Colours): void {
  const numbers = lanes.map(({ lane }) => lane);
  const top = topOf(of) + GAP + of.strips.length * (STRIP + GAP);
  c.lineWidth = 1.4;
  c.strokeStyle = c.fillStyle = paint.accent;
  for (const link of links) {
    const [a, b] = [laneAt(of, numbers, link.from), laneAt(of, numbers, link.to)];
    if (a < 0 || b < 0) continue;
    const [x, y, tox, toy] = [xOf(link.from, of, width), top + a * LANE + LANE / 2, xOf(link.to, of, width), top + b * LANE + LANE / 2];
    const bend = a === b ? LANE * 0.8 : 0;
    c.setLineDash(link.rel === "merges" ? [] : [4, 3]);
    c.beginPath();
    c.moveTo(x, y);
    c.quadraticCurveTo((x + tox) / 2, (y + toy) / 2 - bend, tox, toy);
    c.stroke();
    c.setLineDash([]);
    c.beginPath();
    c.arc(tox, toy, 2.6, 0, Math.PI * 2);
    c.fill();
  }
}

/** Draws verdicts of a bin. An unknown one is hatched, and is never drawn as ok. */
function verdict(c: CanvasRenderingContext2D, words: readonly string[], x: number, y: number, w: number, paint: Colours): void {
  const wide = Math.max(1, w - (w > 4 ? 1 : 0));
  if (words.includes("violation")) {
    c.fillStyle = paint.bad;
    c.fillRect(x, y, wide, STRIP);
    if (w > 7) {
      c.strokeStyle = paint.page;
      c.lineWidth = 1.4;
      c.beginPath();
      const m = x + wide / 2;
      c.moveTo(m - 2.5, y + 4.5);
      c.lineTo(m + 2.5, y + 9.5);
      c.moveTo(m + 2.5, y + 4.5);
      c.lineTo(m - 2.5, y + 9.5);
      c.stroke();
    }
  }
  if (words.includes("uncertain")) {
    c.strokeStyle = paint.warn;
    c.lineWidth = 1;
    c.save();
    c.beginPath();
    c.rect(x, y, wide, STRIP);
    c.clip();
    c.beginPath();
    for (let d = -STRIP; d < wide; d += 4) {
      c.moveTo(x + d, y + STRIP);
      c.lineTo(x + d + STRIP, y);
    }
    c.stroke();
    c.restore();
  }
  if (words.length === 1 && words[0] === "ok") {
    c.fillStyle = paint.ok;
    c.fillRect(x, y + STRIP / 2 - 2, wide, 4);
  }
}

const drawn = new Map<Sign, Path2D>();
function pathOf(sign: Sign): Path2D {
  let path = drawn.get(sign);
  if (!path) drawn.set(sign, (path = new Path2D(PATHS[sign])));
  return path;
}

function colourOf(sign: Sign, paint: Colours): string {
  if (sign === "anomaly" || sign === "question") return paint.warn;
  if (isBad(sign)) return paint.bad;
  return sign === "closed" || sign === "unknown" || sign === "gap" ? paint.dim : paint.ink;
}

function row(c: CanvasRenderingContext2D, shapes: readonly Shape[], y: number, height: number, paint: Colours): void {
  for (const shape of shapes) {
    if (shape.isBar || shape.w < 4) {
      c.fillStyle = colourOf(shape.sign, paint);
      c.fillRect(shape.x, y + shape.y, Math.max(1, shape.w - 0.5), shape.h);
      continue;
    }
    glyph(c, shape.sign, shape.x + shape.w / 2, y + height / 2, Math.min(12, shape.w - 0.5, height - 2), paint, shape.isHollow);
  }
}

/** Draws a sign around a point. */
function glyph(c: CanvasRenderingContext2D, sign: Sign, x: number, y: number, size: number, paint: Colours, isHollow: boolean): void {
  c.save();
  c.translate(x - size / 2, y - size / 2);
  c.scale(size / 12, size / 12);
  const path = pathOf(sign);
  c.strokeStyle = c.fillStyle = colourOf(sign, paint);
  c.lineWidth = isBad(sign) ? 2.2 : 1.7;
  if (!FILLED.has(sign)) c.stroke(path);
  else if (isHollow) {
    c.fillStyle = paint.page;
    c.fill(path);
    c.stroke(path);
  } else c.fill(path);
  c.restore();
}
