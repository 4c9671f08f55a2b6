// A placed picture as SVG, read-only: boxes are links, arrow keys lead along edges. The table has the same.

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { go, query } from "../nav.ts";
import { labelOf } from "../pure/names.ts";
import { plain } from "../pure/invisible.ts";
import { inSight, isSeen, LINE, linesOf, next, pathOf, type Box, type GraphNode, type Layout } from "../pure/graph.ts";
import { queryOf } from "../pure/route.ts";

type Props = { of: Layout; chosen: string | null; run: string };

/** The address of this screen with a node chosen; a tick of this run is looked at. */
export function addressOf(node: GraphNode, run: string): string {
  const kept = Object.fromEntries([...query.value].filter(([name]) => name !== "node" && name !== "t"));
  return queryOf({ ...kept, node: node.id, t: node.tick !== null && (node.run === null || node.run === run) ? node.tick : query.value.get("t") });
}

/** Words of a node for a reader who does not see the picture. */
function wordsOf(node: GraphNode): string {
  return plain([labelOf(node), node.kind, node.status].filter(Boolean).join(", ").slice(0, 300));
}

export function Graph({ of: layout, chosen, run }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const view = useSignal<Box>({ x: 0, y: 0, w: 1200, h: 700 });
  const see = () => {
    const element = box.current;
    if (element) view.value = { x: element.scrollLeft, y: element.scrollTop, w: element.clientWidth, h: element.clientHeight };
  };
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const observer = new ResizeObserver(see);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const own = layout.nodes.find((one) => one.id === chosen);
  const isFit = query.value.get("size") === "fit";
  const all = { x: 0, y: 0, w: layout.width, h: layout.height };
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || !own || isFit) return;
    // A chosen box that is out of sight is brought to the middle.
    if (own.x < element.scrollLeft || own.x + own.w > element.scrollLeft + element.clientWidth) element.scrollLeft = own.x + own.w / 2 - element.clientWidth / 2;
    if (own.y < element.scrollTop || own.y + own.h > element.scrollTop + element.clientHeight) element.scrollTop = own.y + own.h / 2 - element.clientHeight / 2;
    see();
  }, [own?.id, layout, isFit]);
  const key = (event: KeyboardEvent) => {
    const from = (event.target as Element).closest("[data-node]")?.getAttribute("data-node");
    const to = from === null || from === undefined ? null : next(layout, from, event.key);
    const node = layout.nodes.find((one) => one.id === to);
    if (!node) return;
    event.preventDefault();
    event.stopPropagation();
    go(location.pathname + addressOf(node, run), true);
    requestAnimationFrame(() => box.current?.querySelector<SVGAElement>('[aria-current="true"]')?.focus());
  };
  const edges = layout.edges.filter((edge) => isSeen(edge, isFit ? all : view.value));
  return (
    <div class="graph" ref={box} onScroll={see} onKeyDown={key} role="group" aria-label={`picture of ${layout.nodes.length} nodes and ${layout.edges.length} edges; arrow keys lead along edges; the table has the same`}>
      <svg width={isFit ? "100%" : layout.width + 8} height={isFit ? "100%" : layout.height + 8} viewBox={`-4 -4 ${layout.width + 8} ${layout.height + 8}`}>
        <defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0l8 4l-8 4z" class="edge-head" /></marker></defs>
        {edges.map((edge, at) => <path key={at} class={`edge ${chosen !== null && (edge.from === chosen || edge.to === chosen) ? "edge-chosen" : ""}`} d={pathOf(edge.points)} marker-end="url(#head)"><title>{plain(edge.rel)}</title></path>)}
        {inSight(layout.nodes, isFit ? all : view.value).map((node) => (
          <a key={node.id} href={addressOf(node, run)} data-node={node.id} aria-current={node.id === chosen ? "true" : undefined} aria-label={wordsOf(node)} class={`node node-${word(node.kind)} status-${word(node.status ?? "none")} ${node.id === chosen ? "node-chosen" : ""}`}>
            <rect x={node.x} y={node.y} width={node.w} height={node.h} rx="4" />
            {node.status !== null && <rect class="node-side" x={node.x} y={node.y} width="6" height={node.h} />}
            <Label of={node} />
          </a>
        ))}
      </svg>
    </div>
  );
}

function Label({ of: node }: { of: GraphNode }) {
  const lines = linesOf(plain(labelOf(node).replaceAll("\n", "\u0001")).replaceAll("[U+0001]", "\n"), node.w, node.h);
  const top = node.y + node.h / 2 - ((lines.length - 1) * LINE) / 2;
  return (
    <text x={node.x + node.w / 2} y={top} text-anchor="middle" dominant-baseline="central">
      {lines.map((line, at) => <tspan key={at} x={node.x + node.w / 2} dy={at === 0 ? 0 : LINE}>{line}</tspan>)}
    </text>
  );
}

/** A word as the name of a class. */
function word(text: string): string {
  return text.replaceAll(/[^a-z0-9]+/gi, "-").toLowerCase().slice(0, 30);
}
