// Names of agents: one that could be taken for an author or a word of the page is quoted, as the program prints it.

const ROLES = new Set(["user", "system", "kernel", "runtime", "tool", "agent", "institution", "begin"]);
/** Other words that the program prints where a name could be. */
const WORDS = new Set(["allow", "deny", "escalate", "ok", "FAIL", "refused", "INTERRUPT", "RESUME", "ERROR", "UNKNOWN", "confidence", "uncertainty", "-"]);

/** Whether a name passes for a role or a word up to its first sign that is of no word, as `user` and `user:x` do. */
function passesForWord(name: string): boolean {
  const first = name.split(/[^\p{L}\p{N}_\-./]/u)[0] ?? "";
  return ROLES.has(first.toLowerCase()) || WORDS.has(first);
}

/** Writes the name of an agent alone, where the author is not known. */
export function agentName(name: string): string {
  return name === "" || name.startsWith("(") || /[\s"]/u.test(name) || passesForWord(name) ? JSON.stringify(name) : name;
}

/** Writes who a record is by. The author on record decides: an agent with the name `user` is no user. */
export function speaker(agent: string | null | undefined, author?: string | null): string {
  const isPerson = author === "user" || author === "institution";
  if (author && ((isPerson && (!agent || agent === "agent")) || agent === author)) return author;
  if (!agent) return author && author !== "agent" ? author : "(no agent)";
  return isPerson ? `${author} (${agentName(agent)})` : agentName(agent);
}

/** Returns the label of a box of a picture. One of a transition has the tick, the agent and the id. */
export function labelOf(node: { kind: string; label: string; tick: number | null; id: string }): string {
  const found = /^(\d+) (.*) ([0-9a-f]{12})$/s.exec(node.label);
  if (node.kind !== "transition" || node.tick === null || node.tick === 0 || !found) return node.label;
  return `${found[1]} ${agentName(found[2] ?? "")} ${found[3]}`;
}
