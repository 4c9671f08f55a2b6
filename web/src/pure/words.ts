// Two texts word by word: which parts only one of them has.

export type Part = { text: string; isOwn: boolean };

const WORDS_MAX = 400;

/** Splits two texts into parts that both have, in order, and parts of one alone. Longer texts are compared at both ends alone. */
export function partsOf(a: string, b: string): { a: Part[]; b: Part[] } {
  const [x, y] = [split(a), split(b)];
  let head = 0;
  while (head < x.length && head < y.length && x[head] === y[head]) head += 1;
  let tail = 0;
  while (tail < x.length - head && tail < y.length - head && x[x.length - 1 - tail] === y[y.length - 1 - tail]) tail += 1;
  const [left, right] = [x.slice(head, x.length - tail), y.slice(head, y.length - tail)];
  const shared = left.length * right.length <= WORDS_MAX * WORDS_MAX ? longest(left, right) : [];
  const whole = (words: readonly string[], own: readonly string[], kept: ReadonlySet<number>): Part[] => joined([
    ...words.slice(0, head).map((text) => ({ text, isOwn: false })),
    ...own.map((text, at) => ({ text, isOwn: !kept.has(at) })),
    ...words.slice(words.length - tail).map((text) => ({ text, isOwn: false })),
  ]);
  return { a: whole(x, left, new Set(shared.map(([at]) => at))), b: whole(y, right, new Set(shared.map(([, at]) => at))) };
}

function split(text: string): string[] {
  return text.match(/\s+|[\p{L}\p{N}_]+|./gsu) ?? [];
}

/** The longest common row of words, as pairs of places. */
function longest(a: readonly string[], b: readonly string[]): [number, number][] {
  const table = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) (table[i] as Uint32Array)[j] = a[i] === b[j] ? (table[i + 1]?.[j + 1] ?? 0) + 1 : Math.max(table[i + 1]?.[j] ?? 0, table[i]?.[j + 1] ?? 0);
  }
  const pairs: [number, number][] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) pairs.push([i++, j++]);
    else if ((table[i + 1]?.[j] ?? 0) >= (table[i]?.[j + 1] ?? 0)) i += 1;
    else j += 1;
  }
  return pairs;
}

function joined(parts: readonly Part[]): Part[] {
  const found: Part[] = [];
  for (const part of parts) {
    const before = found.at(-1);
    if (before && before.isOwn === part.isOwn) before.text += part.text;
    else found.push({ ...part });
  }
  return found;
}
