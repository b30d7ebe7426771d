// The first screen: the result, how far to trust it, what to do next, and the leaderboard.

import { useReport } from "../context";
import { CalibrationCharts } from "../charts/calibration";
import { LabelChart } from "../charts/labels";
import { ScoreChart } from "../charts/scores";
import { WinChart } from "../charts/wins";
import { Explained } from "../parts/explained";
import { Files } from "../parts/files";
import { GroupScores } from "../parts/group_scores";
import { Hero } from "../parts/hero";
import { Leaderboard } from "../parts/leaderboard";
import { NextSteps } from "../parts/next_steps";
import { Facts, Missing } from "../parts/run_facts";
import { SliceBoard } from "../parts/slice_board";
import { TrustNumbers } from "../parts/trust_numbers";
import { Section } from "../parts/words";
import { to } from "../routes";

export function Overview() {
  const { head } = useReport();
  return (
    <>
      <Hero head={head} />
      <TrustNumbers head={head} />
      <NextSteps head={head} />
      <div class="columns">
        <div class="boards">
          <Leaderboard head={head} />
          <SliceBoard head={head} />
          <GroupScores head={head} />
        </div>
        <aside class="aside" aria-label="About this run">
          <Missing head={head} />
          <Facts head={head} />
        </aside>
      </div>
      <Section title="Charts" lead={<a class="more-charts" href={to.charts()}>All charts</a>}>
        <div class="charts">
          <ScoreChart />
          <WinChart />
          <LabelChart />
          <CalibrationCharts most={1} />
        </div>
      </Section>
      <Explained head={head} />
      <Section title="How the numbers were computed" id="made">
        <ol class="notes">{head.notes.map((note) => <li key={note}>{note}</li>)}</ol>
      </Section>
      {head.files.length > 0 && (
        <Section id="files" title="Files of this run" lead="The data behind this report, in the same folder as this page.">
          <Files head={head} />
        </Section>
      )}
    </>
  );
}
