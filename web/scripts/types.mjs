// Writes src/documents.ts from the schemas of the program; with --check it compares and fails if they differ.
//   DENDRER=../target/debug/dendrer node scripts/types.mjs [--check]
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

const NAMES = [
  "action-why", "backtrack", "badge", "bisect", "bisect-all", "commitments", "compare", "conflicts", "contract-check", "diff", "error", "frontier", "heatmap", "layout", "log", "progress",
  "runs", "show", "state", "state-difference", "steps", "timeline", "transcript", "verify", "version", "why",
];
const program = process.env.DENDRER ?? "dendrer";
const file = new URL("../src/documents.ts", import.meta.url);

const pascal = (name) => (name === "error" ? "failure" : name).split("-").map((part) => part[0].toUpperCase() + part.slice(1)).join("");
const isName = (key) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(key);

function typeOf(schema, depth) {
  if (schema === true || schema === undefined) return "unknown";
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return [...new Set(choices.map((one) => typeOf(one, depth)))].join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (schema.$ref) return schema.$ref === "#" ? "unknown" : reference(schema.$ref);
  const kinds = [].concat(schema.type ?? []);
  if (kinds.length === 0) return schema.properties ? objectOf(schema, depth) : "unknown";
  return [...new Set(kinds.map((kind) => kindOf(kind, schema, depth)))].join(" | ");
}

// Whether the type of a schema has more than one member, so that a list of it needs parentheses.
function isUnion(schema) {
  return Boolean(schema) && [schema.anyOf, schema.oneOf, schema.enum, schema.type].some((one) => Array.isArray(one) && one.length > 1);
}

let references = new Map();
function reference(pointer) {
  const name = pointer.split("/").at(-1);
  return references.get(name) ?? "unknown";
}

function kindOf(kind, schema, depth) {
  switch (kind) {
    case "null": return "null";
    case "boolean": return "boolean";
    case "string": return "string";
    case "integer": case "number": return "number";
    case "array": {
      if (schema.prefixItems) return `[${schema.prefixItems.map((one) => typeOf(one, depth)).join(", ")}]`;
      const item = typeOf(schema.items, depth);
      return isUnion(schema.items) ? `(${item})[]` : `${item}[]`;
    }
    default: return objectOf(schema, depth);
  }
}

function objectOf(schema, depth) {
  const own = Object.entries(schema.properties ?? {});
  if (own.length === 0) {
    const rest = schema.additionalProperties;
    return `Record<string, ${rest && rest !== true ? typeOf(rest, depth) : "unknown"}>`;
  }
  const pad = "  ".repeat(depth + 1);
  const required = new Set(schema.required ?? []);
  const lines = own.map(([key, one]) => {
    const note = one.description ? `${pad}/** ${one.description.replaceAll("*/", "* /")} */\n` : "";
    return `${note}${pad}${isName(key) ? key : JSON.stringify(key)}${required.has(key) ? "" : "?"}: ${typeOf(one, depth + 1)};\n`;
  });
  return `{\n${lines.join("")}${"  ".repeat(depth)}}`;
}

let text = "// Written by scripts/types.mjs from `dendrer schema NAME`. Do not edit: `npm run types` compares.\n\n";
for (const name of NAMES) {
  const schema = JSON.parse(execFileSync(program, ["schema", name], { encoding: "utf8", maxBuffer: 1 << 26 }));
  references = new Map();
  for (const [key, one] of Object.entries(schema.$defs ?? {})) {
    references.set(key, pascal(name) + pascal(key.replaceAll("_", "-")));
    text += `export type ${references.get(key)} = ${typeOf(one, 0)};\n\n`;
  }
  text += `/** ${schema.description ?? `The document \`dendrer.${name}/1\`.`} */\nexport type ${pascal(name)} = ${typeOf(schema, 0)};\n\n`;
}
text = `${text.trimEnd()}\n`;

if (process.argv.includes("--check")) {
  if (readFileSync(file, "utf8") !== text) {
    console.error("src/documents.ts differs from the schemas of the program: run node scripts/types.mjs");
    process.exit(1);
  }
} else {
  writeFileSync(file, text);
}
