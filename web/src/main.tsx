// Entry point: renders a report or a list of runs.

import { render } from "preact";
import type { Head, RunsHead } from "./contract";
import { App } from "./app";
import { Report } from "./report";
import { Runs } from "./views/runs";

const read = <T,>() => JSON.parse(document.getElementById("head")!.textContent!) as T;
const place = document.getElementById("app")!;
place.replaceChildren();
if (document.body.dataset.page === "runs") render(<Runs first={read<RunsHead>()} />, place);
else {
  const report = new Report(read<Head>());
  render(<App first={report} />, place);
  // Unpack the answers, which most views need, while the reader reads the first screen.
  if (report.head.blocks === "embedded") void whenIdle().then(() => report.answers()).catch(() => {});
}

function whenIdle(): Promise<void> {
  return new Promise((done) =>
    window.addEventListener("load", () => (window.requestIdleCallback ?? setTimeout)(() => done())),
  );
}
