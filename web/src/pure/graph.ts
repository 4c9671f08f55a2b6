// A placed picture: which boxes are in sight, how an edge is drawn, what a label shows, and where an arrow key leads.
import type { Layout } from "../documents.ts";

export type { Layout };
export type GraphNode = Layout["nodes"][number];
export type GraphEdge = Layout["edges"][number];
export type Box = { x: number; y: number; w: number; h: number };

/** The size of a letter in units of the document, as it is drawn. */
export const LETTER = 7;
export const LINE = 15;

/** Writes the points of an edge as a path. */
export function pathOf(points: readonly (readonly number[])[]): string {
  return points.map(([x, y], at) => `${at === 0 ? "M" : "L"}${x ?? 0} ${y ?? 0}`).join(" ");
}

/** Returns the nodes of which a part is in sight. */
export function inSight<N extends Box>(nodes: readonly N[], view: Box, margin = 300): N[] {
  return nodes.filter((one) => one.x + one.w >= view.x - margin && one.x <= view.x + view.w + margin && one.y + one.h >= view.y - margin && one.y <= view.y + view.h + margin);
}

/** Whether a part of an edge is in sight. */
export function isSeen(edge: { points: readonly (readonly number[])[] }, view: Box, margin = 300): boolean {
  const xs = edge.points.map((point) => point[0] ?? 0);
  const ys = edge.points.map((point) => point[1] ?? 0);
  return Math.max(...xs) >= view.x - margin && Math.min(...xs) <= view.x + view.w + margin && Math.max(...ys) >= view.y - margin && Math.min(...ys) <= view.y + view.h + margin;
}

/** Cuts a label into lines that fit a box; the last line ends with `..` if more follows. */
export function linesOf(label: string, w: number, h: number): string[] {
  const letters = Math.max(4, Math.floor((w - 8) / LETTER));
  const most = Math.max(1, Math.floor((h - 4) / LINE));
  const lines: string[] = [];
  for (const part of label.split("\n")) {
    let rest = part;
    while (rest.length > letters) {
      const cut = rest.lastIndexOf(" ", letters);
      const at = cut > letters / 2 ? cut : letters;
      lines.push(rest.slice(0, at));
      rest = rest.slice(at).trimStart();
    }
    lines.push(rest);
  }
  if (lines.length <= most) return lines;
  const last = lines[most - 1] ?? "";
  return [...lines.slice(0, most - 1), `${last.slice(0, Math.max(0, letters - 2))}..`];
}

/** Returns the node that an arrow key leads to: along an edge if one leads that way, else the nearest on that side. */
export function next(layout: { nodes: readonly GraphNode[]; edges: readonly GraphEdge[] }, from: string, key: string): string | null {
  const own = layout.nodes.find((one) => one.id === from);
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  if (!own || !way) return null;
  const [dx = 0, dy = 0] = way;
  const middle = (one: Box): [number, number] => [one.x + one.w / 2, one.y + one.h / 2];
  const [x, y] = middle(own);
  const near = new Set(layout.edges.flatMap((edge) => (edge.from === from ? [edge.to] : edge.to === from ? [edge.from] : [])));
  let found: { id: string; far: number } | null = null;
  for (const one of layout.nodes) {
    if (one.id === from) continue;
    const [ox, oy] = middle(one);
    const along = (ox - x) * dx + (oy - y) * dy;
    const across = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
    if (along <= 0 || (across > along * 2 && !near.has(one.id))) continue;
    const far = along + across + (near.has(one.id) ? 0 : 100_000);
    if (found === null || far < found.far) found = { id: one.id, far };
  }
  return found?.id ?? null;
}

export type Beside = { edge: GraphEdge; other: GraphNode | null };

/** Returns the edges of a node, those that lead to it and those that lead on. */
export function besideOf(layout: { nodes: readonly GraphNode[]; edges: readonly GraphEdge[] }, id: string): { before: Beside[]; after: Beside[] } {
  const byId = new Map(layout.nodes.map((one) => [one.id, one]));
  return {
    before: layout.edges.filter((edge) => edge.to === id).map((edge) => ({ edge, other: byId.get(edge.from) ?? null })),
    after: layout.edges.filter((edge) => edge.from === id).map((edge) => ({ edge, other: byId.get(edge.to) ?? null })),
  };
}
