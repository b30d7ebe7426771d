// The full audit: conclusions first, then all figures with their baselines.

import type { ReportFigure, FigureTable, Head } from "../contract";
import { CalibrationCharts } from "../charts/calibration";
import { LabelChart } from "../charts/labels";
import { ReferenceChart } from "../charts/reference";
import { useReport } from "../context";
import { ends, show } from "../format";
import { FileLink } from "../parts/files";
import { axisAround, IntervalBar } from "../parts/interval_bar";
import { TrustNumbers } from "../parts/trust_numbers";
import { Heading, Name, Section, Sentence, Tag } from "../parts/words";
import { to } from "../routes";

export function TrustView() {
  const { head } = useReport();
  return (
    <>
      <Heading trail={[[to.overview(), "Overview"]]} title="Audit: how far can you trust this judge?" />
      <TrustNumbers head={head} titled={false} />
      {head.advice.length > 0 && (
        <Section title="What it means">
          <ul class="advice">{head.advice.map((sentence) => <li key={sentence}><Sentence>{sentence}</Sentence></li>)}</ul>
        </Section>
      )}
      {head.figures.length > 0 && (
        <Section
          title="All figures with their baselines"
          lead={<>A judge should beat baselines such as &#8220;the longer response wins&#8221;. Data: <FileLink head={head} name="audit.json" />.</>}
        >
          <Figures head={head} />
        </Section>
      )}
      <div class="charts section">
        <CalibrationCharts />
        <LabelChart />
        <ReferenceChart />
      </div>
      <div class="tables">{head.tables.map((table) => <Table key={table.title} table={table} />)}</div>
    </>
  );
}

function Figures({ head }: { head: Head }) {
  return (
    <div class="scroll">
      <table class="figures">
        <tbody>
          {head.figures.map((figure, place) => <Line key={`${place} ${figure.name}`} figure={figure} />)}
        </tbody>
      </table>
    </div>
  );
}

function Line({ figure }: { figure: ReportFigure }) {
  const axis = axisAround([figure.value], [0, 1]);
  return (
    <tr class={figure.baseline ? "baseline" : "own"}>
      <th scope="row">
        <Name>{figure.name}</Name> {figure.baseline && <Tag>baseline</Tag>}
        {figure.note && <small>{figure.note}</small>}
      </th>
      <td class="drawn"><IntervalBar of={figure.value} axis={axis} unit={figure.unit} /></td>
      <td class="number">
        {figure.value === null
          ? "\u2013"
          : <>{show(figure.value.value, figure.unit)}<small>{ends(figure.value, figure.unit)}</small></>}
      </td>
    </tr>
  );
}

function Table({ table }: { table: FigureTable }) {
  return (
    <section class="section">
      <h3>{table.title}</h3>
      <div class="scroll">
        <table>
          <thead>
            <tr><td />{table.columns.map((name) => <th scope="col" class="number" key={name}>{name}</th>)}</tr>
          </thead>
          <tbody>
            {table.rows.map((row, place) => (
              <tr key={place}>
                <th scope="row"><Name>{row.name}</Name>{row.note && <small>{row.note}</small>}</th>
                {row.cells.map((cell) => (
                  <td class="number">
                    {cell === null ? "\u2013" : <>{show(cell.value, table.unit)}<small>{ends(cell, table.unit)}</small></>}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {table.note && <p class="hint">{table.note}</p>}
    </section>
  );
}
