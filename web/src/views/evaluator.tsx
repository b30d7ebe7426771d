// The evolved evaluator that judged: its confidence, experts and perspectives.

import type { EvaluatorBlock } from "../contract";
import { useReport } from "../context";
import { day, ends, plural, show } from "../format";
import { FileLink } from "../parts/files";
import { axisAround, IntervalBar, type Axis } from "../parts/interval_bar";
import { Opened } from "../parts/opened";
import { Heading, Name, Section } from "../parts/words";
import { to } from "../routes";
import { EvaluatorConfidence } from "./evaluator_confidence";
import { EvaluatorExperts } from "./evaluator_experts";
import { PerspectiveList } from "./perspectives";

export function EvaluatorView() {
  const report = useReport();
  const { head } = report;
  return (
    <>
      <Heading trail={[[to.overview(), "Overview"]]} title="Evaluator" />
      <p class="lead">{head.evaluator
        ? <Name>{head.evaluator}</Name>
        : "This run was not judged by an evolved evaluator."}</p>
      {head.evaluator && (
        <Opened name="evaluator" open={() => report.evaluator()}>
          {(block) => <Parts block={block} />}
        </Opened>
      )}
    </>
  );
}

function Parts({ block }: { block: EvaluatorBlock }) {
  return (
    <>
      <Provenance block={block} />
      <EvaluatorConfidence block={block} />
      <EvaluatorExperts block={block} />
      <PerspectiveList block={block} />
      <Arms block={block} />
      <Cost block={block} />
    </>
  );
}

function Provenance({ block }: { block: EvaluatorBlock }) {
  const { head } = useReport();
  const { created, judge, rounds } = block.provenance;
  return (
    <p class="hint">
      {[
        created && <>Made {day(created)}.</>,
        rounds !== null && <>{plural(rounds, "round", "rounds")} of evolution.</>,
        judge && <>Trained on answers of <Name>{judge}</Name>.</>,
      ].filter(Boolean).map((fact) => <>{fact} </>)}
      Data: <FileLink head={head} name="evaluator.json" />.
    </p>
  );
}

/** The evaluator compared with simpler methods: fewer experts, the mean, a majority. */
function Arms({ block }: { block: EvaluatorBlock }) {
  if (!block.figures.length) return null;
  const axis = axisAround(block.figures.map(({ value }) => value), block.unit === "share" ? [] : [0]);
  return (
    <Section
      title="Compared with simpler methods"
      lead={`Cross-validated ${block.measure}, out-of-fold. Intervals come from resampled queries.`}
    >
      <div class="scroll">
        <table class="figures arms">
          <tbody>
            {block.figures.map((figure, place) => (
              <Arm key={place} figure={figure} axis={axis} unit={block.unit} />
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function Arm(props: { figure: EvaluatorBlock["figures"][number]; axis: Axis; unit: EvaluatorBlock["unit"] }) {
  const { figure, axis, unit } = props;
  return (
    <tr class={figure.own ? "own" : "baseline"}>
      <th scope="row"><Name>{figure.name}</Name>{figure.note && <small><Name>{figure.note}</Name></small>}</th>
      <td class="drawn"><IntervalBar of={figure.value} axis={axis} unit={unit} /></td>
      <td class="number">
        {figure.value === null
          ? "\u2013"
          : <>{show(figure.value.value, unit)}<small>{ends(figure.value, unit)}</small></>}
      </td>
    </tr>
  );
}

function Cost({ block }: { block: EvaluatorBlock }) {
  if (!block.cost.length) return null;
  return (
    <Section title="Cost per verdict">
      <dl class="cost-list">
        {block.cost.map(([name, value]) => (
          <div key={name}><dt><Name>{name}</Name></dt><dd><Name>{value}</Name></dd></div>
        ))}
      </dl>
    </Section>
  );
}
