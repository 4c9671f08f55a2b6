// Windows of a long list: which rows are drawn, and where. A scroll area has an end, so its height is capped and mapped.

/** The greatest height of a scroll area that every browser draws. */
export const HEIGHT_MAX = 8_000_000;

export type Windowed = { height: number; first: number; count: number; offset: number };

/** Returns the rows to draw for a position of the scroll area. */
export function windowOf(rows: number, rowHeight: number, view: number, top: number, extra = 4): Windowed {
  const full = rows * rowHeight;
  const height = Math.min(full, HEIGHT_MAX);
  const room = Math.max(1, height - view);
  const isMapped = full > HEIGHT_MAX;
  const at = isMapped ? (Math.min(top, room) / room) * (full - view) : top;
  const visible = Math.ceil(view / rowHeight) + 1;
  const begin = Math.max(0, Math.floor(at / rowHeight));
  const first = Math.max(0, begin - extra);
  const count = Math.min(rows - first, visible + 2 * extra);
  // The rows hang at the position of the scroll area, less the part of it that lies above the first one.
  const offset = isMapped ? top - (at - first * rowHeight) : first * rowHeight;
  return { height, first, count: Math.max(0, count), offset };
}

/** Returns the position of the scroll area that shows a row, or null if the row is seen already. */
export function topFor(row: number, rows: number, rowHeight: number, view: number, top: number): number | null {
  const full = rows * rowHeight;
  const height = Math.min(full, HEIGHT_MAX);
  const scale = full > HEIGHT_MAX ? (height - view) / Math.max(1, full - view) : 1;
  const at = top / scale;
  const y = row * rowHeight;
  if (y >= at && y + rowHeight <= at + view) return null;
  const wanted = Math.max(0, Math.min(full - view, y - Math.max(0, view / 2 - rowHeight)));
  return wanted * scale;
}

/** Returns the windows of `size` ticks that a range needs. */
export function pages(from: number, to: number, size: number): number[] {
  const found: number[] = [];
  for (let page = Math.floor(from / size); page <= Math.floor(Math.max(from, to) / size); page += 1) found.push(page);
  return found;
}
