// Time, tokens and cost of each stage.

import * as Plot from "@observablehq/plot";
import type { StageCost } from "../contract";
import { useReport } from "../context";
import { duration, large, money } from "../format";
import { Chart } from "../parts/chart";
import { FileLink } from "../parts/files";
import { draw } from "./plot";

export function CostChart() {
  const { head } = useReport();
  const stages = head.costs.filter(({ seconds }) => seconds !== null);
  if (!stages.length) return null;
  return (
    <Chart
      run={head.run}
      title="Cost by stage"
      lead="Time on a logarithmic scale; tokens and cost for stages that call a model"
      how="Time of the last call of each stage. Tokens and cost of all results in the run, including reused ones."
      rows={<FileLink head={head} name="manifest.json" />}
      table={() => ({
        columns: ["stage", "seconds", "requests", "prompt_tokens", "completion_tokens", "cost", "currency"],
        rows: head.costs.map((row) => [
          row.stage, row.seconds, row.requests, row.prompt_tokens, row.completion_tokens, row.cost, row.currency,
        ]),
      })}
      draw={(width) => {
        const least = Math.min(0.1, ...stages.map(({ seconds }) => Math.max(seconds!, 1e-3)));
        const most = Math.max(least, ...stages.map(({ seconds }) => seconds!));
        const marginRight = Math.min(150, width * 0.35);
        return draw(width, {
          marginLeft: LEFT,
          marginRight,
          height: 66 + 26 * stages.length,
          x: { label: "Time", type: "log", grid: true, ticks: timeTicks(least, most, width - LEFT - marginRight), tickFormat: brief },
          y: { label: null, domain: stages.map(({ stage }) => stage) },
          marks: [
            Plot.barX(stages, { y: "stage", x1: least, x2: (row) => Math.max(row.seconds, least), fill: "var(--accent)", fillOpacity: 0.55, inset: 2 }),
            Plot.text(stages, {
              y: "stage", x: (row) => Math.max(row.seconds, least), text: summary, textAnchor: "start", dx: 6, fill: "var(--ink)",
            }),
          ],
        });
      }}
    />
  );
}

const LEFT = 70;
/** Width of a label on the axis, with the space around it. */
const LABEL = 56;

/** Ticks of a logarithmic axis of seconds, in `width` pixels, whose labels do not overlap. */
export function timeTicks(least: number, most: number, width: number): number[] {
  const decades = Math.log10(most / least) || 1;
  const first = Math.floor(Math.log10(least));
  const powers = Array.from({ length: Math.ceil(decades) + 2 }, (_, place) => first + place);
  const isDense = (Math.log10(2) * width) / decades >= LABEL;
  const step = Math.ceil((LABEL * decades) / width);
  return powers
    .filter((_, place) => place % step === 0)
    .flatMap((power) => (isDense ? [1, 2, 5] : [1]).map((digit) => Number(`${digit}e${power}`)))
    .filter((tick) => tick >= 0.999 * least && tick <= 1.001 * most);
}

const brief = (seconds: number) => (seconds < 1 ? `${seconds}\u00a0s` : duration(seconds));

function summary(stage: StageCost): string {
  const parts = [duration(stage.seconds!)];
  if (stage.prompt_tokens) parts.push(`${large(stage.prompt_tokens)} tokens`);
  if (stage.cost !== null) parts.push(money(stage.cost, stage.currency));
  return parts.join(", ");
}
