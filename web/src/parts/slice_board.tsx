// The leaderboard by slice: mean scores of candidates on the queries with each value of a field.

import { useState } from "preact/hooks";
import type { Head, Interval } from "../contract";
import { count, ends, plural, two } from "../format";
import { addressOf, setFields, to, useHash } from "../routes";
import { chosenField, isBounded, slicedFields, sliceOf } from "../slices";
import { Choice } from "./choice";
import { fileName, saveCsv, type Table } from "./download";
import { heat } from "./heat";
import { Name, Section } from "./words";

const SHOWN = 20;

export function SliceBoard({ head }: { head: Head }) {
  const [all, setAll] = useState(false);
  const by = addressOf(useHash()).fields.get("by") ?? "";
  const fields = slicedFields(head);
  const chosen = chosenField(fields, by);
  if (!chosen) return null;
  const { field, slices, note } = chosen;
  const there = head.candidates.slice(0, slices[0]!.means.length);
  const rows = all ? there : there.slice(0, SHOWN);
  const more = head.candidates.length - there.length;
  return (
    <Section title="Leaderboard by slice" lead="Mean scores on the queries of each slice; blue is above the middle of the scale, orange below. A name opens its queries.">
      <div class="filter slice-filter">
        <Choice
          label="Group by" value={field} options={fields.map(({ field: name }) => [name, name])}
          onChoice={(name) => setFields({ by: name }, true)}
        />
        <button type="button" onClick={() => saveCsv(fileName(head.run, "slices"), table(head))}>CSV</button>
      </div>
      <div class="scroll">
        <table class="heat-map group-map slice-map">
          <caption class="spoken">Mean score by candidate and {field}</caption>
          <thead>
            <tr>
              <th scope="col">Candidate</th>
              {slices.map(({ name, queries }) => (
                <th key={name} scope="col" title={name}>
                  <a href={to.read({ in: sliceOf(field, name) })}><span class="cut"><Name>{name}</Name></span></a>
                  <small>{plural(queries, "query", "queries")}</small>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, rank }, candidate) => (
              <tr key={name}>
                <th scope="row">
                  <span class="rank">{rank ?? ""}</span>
                  <a href={to.candidate(name)}><Name>{name}</Name></a>
                </th>
                {slices.map((slice) => <Cell key={slice.name} mean={slice.means[candidate] ?? null} scale={head.scale} />)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length < there.length && (
        <button type="button" onClick={() => setAll(true)}>Show all {count(there.length)}</button>
      )}
      <p class="hint">
        {note}
        {more > 0 && ` ${plural(more, "lower-ranked candidate is", "lower-ranked candidates are")} left out.`}
      </p>
    </Section>
  );
}

function Cell({ mean, scale: [low, high] }: { mean: Interval | null; scale: [number, number] }) {
  const look = heat(mean === null ? null : (mean.value - low) / (high - low));
  return (
    <td class={look.class} style={look.style}>
      {mean === null
        ? <span class="spoken">missing</span>
        : <>{two(mean.value)}{isBounded(mean) && <small>{ends(mean, "score")}</small>}</>}
    </td>
  );
}

const table = (head: Head): Table => ({
  columns: ["field", "slice", "queries", "candidate", "mean", "low", "high"],
  rows: head.slices.flatMap(({ field, name, queries, means }) => means.map((mean, candidate) => [
    field, name, queries, head.candidates[candidate]!.name, mean?.value ?? null, mean?.low ?? null, mean?.high ?? null,
  ])),
});
