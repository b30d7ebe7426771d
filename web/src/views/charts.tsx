// All charts.

import { CalibrationCharts } from "../charts/calibration";
import { CostChart } from "../charts/costs";
import { LabelChart } from "../charts/labels";
import { RatingChart } from "../charts/ratings";
import { ReferenceChart } from "../charts/reference";
import { ScoreChart } from "../charts/scores";
import { SliceCharts } from "../charts/slices";
import { WinChart } from "../charts/wins";
import { Heading } from "../parts/words";
import { to } from "../routes";

export function ChartsView() {
  return (
    <>
      <Heading trail={[[to.overview(), "Overview"]]} title="Charts" />
      <p class="section-lead lower">Save each chart as PNG or SVG, and its numbers as CSV.</p>
      <h2 class="spoken">All charts</h2>
      <div class="charts">
        <RatingChart />
        <ScoreChart />
        <WinChart />
        <CostChart />
        <ReferenceChart />
        <LabelChart />
        <CalibrationCharts />
        <SliceCharts />
      </div>
    </>
  );
}
