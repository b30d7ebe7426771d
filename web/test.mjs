// Bundles the unit tests in test/ and runs them with node's own test runner.

import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = mkdtempSync(join(tmpdir(), "page-tests-"));
const names = readdirSync(join(here, "test")).filter((name) => /\.test\.tsx?$/.test(name));
await build({
  absWorkingDir: here,
  entryPoints: names.map((name) => `test/${name}`),
  outdir: target,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  platform: "node",
  format: "esm",
  target: ["node20"],
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
const made = names.map((name) => join(target, name.replace(/\.tsx?$/, ".mjs")));
const done = spawnSync(process.execPath, ["--test", ...made], { stdio: "inherit" });
rmSync(target, { recursive: true });
process.exit(done.status ?? 1);
