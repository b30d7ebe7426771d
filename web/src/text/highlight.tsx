// Syntax highlighting of code as elements; code never becomes HTML text.

import { createLowlight } from "lowlight";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import go from "highlight.js/lib/languages/go";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import type { ComponentChildren } from "preact";

const known = createLowlight({
  bash, cpp, go, java, javascript, json, python, rust, sql, typescript, xml, yaml,
});
known.registerAlias({ cpp: ["c", "h", "csharp", "cs"] });

/** Longer code is shown without colors. */
const MOST = 20_000;

interface Node {
  type: string;
  value?: string;
  children?: Node[];
  properties?: { className?: string[] };
}

export function highlighted(code: string, language: string): ComponentChildren {
  const name = language.toLowerCase();
  if (code.length > MOST || !known.registered(name)) return code;
  return drawn((known.highlight(name, code) as unknown as Node).children ?? []);
}

const drawn = (nodes: Node[]): ComponentChildren =>
  nodes.map((node) =>
    node.type === "text"
      ? node.value
      : <span class={(node.properties?.className ?? []).join(" ")}>{drawn(node.children ?? [])}</span>,
  );
