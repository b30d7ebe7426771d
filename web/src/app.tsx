// The page frame and the routing to views.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ReportContext } from "./context";
import { Boundary } from "./parts/boundary";
import { useKeptScroll } from "./parts/kept_scroll";
import { Live } from "./parts/live";
import { Top } from "./parts/top";
import { Report } from "./report";
import { addressOf, pageOf, pathOf, to, useHash } from "./routes";
import { CandidateView } from "./views/candidate";
import { ChangesView } from "./views/changes";
import { ChartsView } from "./views/charts";
import { CompareView } from "./views/compare";
import { EvaluatorView } from "./views/evaluator";
import { ItemsView } from "./views/items";
import { LabelView } from "./views/label";
import { NotFound } from "./views/not_found";
import { Overview } from "./views/overview";
import { ReaderView } from "./views/reader";
import { TrustView } from "./views/trust";

export function App({ first }: { first: Report }) {
  // A served page gets a new head, and with it a new report, while the run continues.
  const [report, setReport] = useState(first);
  const hash = useHash();
  const stage = useRef<HTMLDivElement>(null);
  const page = pageOf(hash);
  useKeptScroll(page);
  useEffect(() => {
    const title = stage.current?.querySelector("h1");
    const name = title?.textContent ?? "";
    document.title = name && hash.length > 2 ? `${name} \u00b7 ${report.head.run}` : report.head.run;
    // Focus the title for screen readers; the first screen keeps the focus at the top.
    const isInList = document.activeElement?.closest(".query-pane");
    if (hash.length > 2 && !isInList) title?.focus({ preventScroll: true });
  }, [page]);
  return (
    <ReportContext.Provider value={report}>
      <Top head={report.head} hash={hash} />
      <Live head={report.head} onHead={(head) => setReport(new Report(head))} />
      <div ref={stage} class="stage" key={pathOf(hash)}><Boundary>{view(hash)}</Boundary></div>
      <footer class="foot">
        Made with {report.head.made_with}. This page loads {LOADS[report.head.blocks]}.
      </footer>
    </ReportContext.Provider>
  );
}

const LOADS = {
  embedded: "nothing from the network",
  served: "data only from its own server",
  folder: "data only from its own folder",
} as const;

function view(hash: string): ComponentChildren {
  const { parts } = addressOf(hash);
  if (parts === null) return <NotFound what="The address of this page is invalid." />;
  const [kind, ...names] = parts;
  const single = names.length === 0;
  if (kind === "" && single) return <Overview />;
  if (kind === "read" && single) return <ReaderView />;
  if (kind === "label" && single) return <LabelView />;
  if (kind === "changes" && single) return <ChangesView />;
  if (kind === "items" && single) return <ItemsView />;
  if (kind === "charts" && single) return <ChartsView />;
  if (kind === "trust" && single) return <TrustView />;
  if (kind === "evaluator" && single) return <EvaluatorView />;
  if (kind === "candidate" && names.length === 1) return <CandidateView name={names[0]!} />;
  if (kind === "compare" && single) return <CompareView />;
  if (kind === "compare" && names.length === 2)
    return <CompareView first={names[0]!} second={names[1]!} />;
  return <NotFound what={<>There is no such page. <a href={to.overview()}>Go to the overview</a></>} />;
}
