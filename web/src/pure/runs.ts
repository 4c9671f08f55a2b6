// The list of runs: facets with counts, the tree of forks, and an order that stays while a reader points at a row.

import type { Runs } from "../documents.ts";

export type RunItem = Exclude<Runs["items"], number>[number];
export type Choice = { stage: string | null; verified: string | null; forked: string | null };
export type Facet = { name: keyof Choice; value: string; words: string; count: number };

/** Counts the values of each facet in the runs that are loaded. */
export function facetsOf(runs: readonly RunItem[]): Facet[] {
  const count = (test: (run: RunItem) => boolean): number => runs.filter(test).length;
  const stages = [...new Set(runs.flatMap((run) => (run.stage === null ? [] : [run.stage])))].sort((a, b) => a - b);
  return [
    ...stages.map((stage): Facet => ({ name: "stage", value: String(stage), words: `stage ${stage}`, count: count((run) => run.stage === stage) })),
    { name: "verified", value: "true", words: "verified here", count: count((run) => run.verified_here) },
    { name: "verified", value: "false", words: "not checked", count: count((run) => !run.verified_here) },
    { name: "forked", value: "true", words: "forks", count: count((run) => run.forked_from !== null) },
    { name: "forked", value: "false", words: "not forked", count: count((run) => run.forked_from === null) },
  ];
}

/** Writes the condition of a filter and of facets as one expression. */
export function whereOf(where: string, choice: Choice): string {
  const parts = [choice.verified === "true" ? "verified" : choice.verified === "false" ? "!verified" : "", choice.forked === "true" ? "forked" : choice.forked === "false" ? "!forked" : ""].filter(Boolean);
  if (parts.length === 0) return where;
  return [...(where === "" ? [] : [`(${where})`]), ...parts].join(" && ");
}

export type Placed = { run: RunItem; depth: number };

/** Puts forks below the run that they are of; without a tree the order of the document stays. */
export function treeOf(runs: readonly RunItem[], isTree: boolean): Placed[] {
  if (!isTree) return runs.map((run) => ({ run, depth: 0 }));
  const names = new Set(runs.map((run) => run.name));
  const children = new Map<string | null, RunItem[]>();
  for (const run of runs) {
    const from = run.forked_from && names.has(run.forked_from.run) && run.forked_from.run !== run.name ? run.forked_from.run : null;
    children.set(from, [...(children.get(from) ?? []), run]);
  }
  const placed: Placed[] = [];
  const add = (parent: string | null, depth: number): void => {
    if (depth > 100) return;
    for (const run of children.get(parent) ?? []) {
      placed.push({ run, depth });
      add(run.name, depth + 1);
    }
  };
  add(null, 0);
  return placed;
}

/** Keeps the rows that are drawn where they are: new ones come at the end. */
export function held(runs: readonly RunItem[], before: readonly string[]): RunItem[] {
  const at = new Map(before.map((name, row) => [name, row]));
  const rank = (run: RunItem): number => at.get(run.name) ?? before.length;
  return [...runs].sort((a, b) => rank(a) - rank(b));
}
