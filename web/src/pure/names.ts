// Names of agents: one that could be taken for an author is quoted, as the program prints it.

const ROLES = new Set(["user", "system", "kernel", "runtime", "tool", "agent", "institution"]);

/** Writes the name of an agent. A name that reads like a role stays bare if the author on record is that role. */
export function agentName(name: string, author?: string | null): string {
  const isRole = ROLES.has(name.toLowerCase()) && name !== author;
  return isRole || name === "" || /[\s"]/u.test(name) ? JSON.stringify(name) : name;
}
