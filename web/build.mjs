// Bundles the page into src/rocketeval/report/page; with --check, fails if the bundle is stale.

import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = join(here, "..", "src", "rocketeval", "report", "page");

async function bundle() {
  const options = { bundle: true, minify: true, write: false, charset: "utf8", logLevel: "warning" };
  const script = await build({
    ...options,
    absWorkingDir: here,
    entryPoints: ["src/main.tsx"],
    format: "iife",
    target: ["es2022"],
    jsx: "automatic",
    jsxImportSource: "preact",
    legalComments: "none",
    metafile: true,
    outfile: "app.js",
  });
  const style = await build({ ...options, absWorkingDir: here, entryPoints: ["src/style/all.css"], outfile: "app.css" });
  return {
    "app.js": inlineable(script.outputFiles[0].text),
    "app.css": style.outputFiles[0].text,
    "style-hashes.json": JSON.stringify([digest(chartStyle())]) + "\n",
    "THIRD_PARTY.txt": licenses(Object.keys(script.metafile.inputs)),
  };
}

// The script is inlined into a script element, which these strings would end. They occur only in
// strings and regular expressions, where the escape means the same.
function inlineable(text) {
  if (/\\<(\/script|!--)/i.test(text)) throw new Error("the bundle escapes the end of a script element");
  return text.replace(/<(?=\/script|!--)/gi, "\\x3C");
}

// The chart library adds one style element to every chart; the security policy allows only that one.
function chartStyle() {
  const source = readFileSync(join(here, "node_modules/@observablehq/plot/src/plot.js"), "utf8");
  const found = /append\("style"\)\.text\(\s*`([^`]*)`/.exec(source);
  if (!found) throw new Error("the chart library's style element has changed");
  return found[1].replaceAll("${className}", "plot");
}

function digest(text) {
  return "sha256-" + createHash("sha256").update(text).digest("base64");
}

function licenses(inputs) {
  const names = inputs.map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]);
  const packages = [...new Set(names.filter(Boolean))].sort();
  return packages.map(licenseOf).join("\n");
}

function licenseOf(name) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file) throw new Error(`${name} has no license file`);
  const text = readFileSync(join(folder, file), "utf8").trim();
  return `${"=".repeat(80)}\n${name} ${version} (${license})\n\n${text}\n`;
}

const made = await bundle();
if (process.argv.includes("--check")) {
  const stale = Object.entries(made).filter(([name, text]) => read(join(target, name)) !== text);
  if (stale.length) {
    console.error(`Out of date: ${stale.map(([name]) => name).join(", ")}. Run: npm run build`);
    process.exit(1);
  }
} else {
  mkdirSync(target, { recursive: true });
  for (const [name, text] of Object.entries(made)) writeFileSync(join(target, name), text);
  console.log(Object.entries(made).map(([name, text]) => `${name} ${Buffer.byteLength(text)}`).join("\n"));
}

function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
