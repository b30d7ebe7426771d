// The leaderboard: ratings with intervals on one axis; brackets join tied candidates.

import { useState } from "preact/hooks";
import type { Candidate, Head } from "../contract";
import { count, ends, show } from "../format";
import { to } from "../routes";
import { boardImage } from "./board_image";
import { fileName, saveCsv, savePng, saveSvg, type Table } from "./download";
import { FileLink } from "./files";
import { axisAround, IntervalBar, type Axis } from "./interval_bar";
import { Loud, Name } from "./words";

const SHOWN = 50;

export function Leaderboard({ head }: { head: Head }) {
  const [all, setAll] = useState(false);
  const [needle, setNeedle] = useState("");
  const wanted = needle.trim().toLowerCase();
  const found = head.candidates.filter(({ name }) => name.toLowerCase().includes(wanted));
  const rows = all ? found : found.slice(0, SHOWN);
  const axis = axisAround(head.candidates.map(({ rating }) => rating));
  const two = head.candidates.slice(0, 2);
  const name = fileName(head.run, "ranking");
  return (
    <section class="board" aria-labelledby="board-title">
      <div class="board-head">
        <h2 id="board-title">Leaderboard</h2>
        {head.candidates.length > 8 && (
          <input
            type="search"
            aria-label="Filter candidates"
            placeholder="Filter candidates"
            value={needle}
            onInput={(event) => setNeedle(event.currentTarget.value)}
          />
        )}
        {two.length === 2 && <a href={to.compare(two[0]!.name, two[1]!.name)}>Compare two</a>}
        <span class="board-files" role="group" aria-label="Save the leaderboard">
          <button type="button" title="A picture to share" onClick={() => void savePng(name, boardImage(head))}>PNG</button>
          <button type="button" title="A picture to share" onClick={() => saveSvg(name, boardImage(head))}>SVG</button>
          <button type="button" title="A table" onClick={() => saveCsv(name, table(head))}>CSV</button>
        </span>
      </div>
      <p class="hint">
        Ranked by rating, higher is better (Bradley-Terry, Elo scale); mean scores can order candidates
        differently. Candidates in a bracket are statistically tied with the first one in it.
      </p>
      <table class="leaderboard">
        <thead>
          <tr>
            <th scope="col" class="rank">Rank</th>
            <th class="bracket"><span class="spoken">Group</span></th>
            <th scope="col">Candidate</th>
            <th scope="col" class="drawn">
              Rating, {Math.round(100 * head.level)}% interval
            </th>
            <th scope="col" class="number rating">Rating<small>Elo</small></th>
            <th scope="col" class="number score">Mean score<small>{head.scale[0]}&#8211;{head.scale[1]}</small></th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => <Row key={row.name} row={row} head={head} axis={axis} joined={!wanted} />)}
        </tbody>
      </table>
      {rows.length === 0 && <p class="hint" role="status">No candidate matches.</p>}
      {found.length > rows.length && (
        <button type="button" onClick={() => setAll(true)}>Show all {found.length}</button>
      )}
      <p class="hint">
        Numbers in gray are {Math.round(100 * head.level)}% confidence intervals. {head.rank_intervals}{" "}
        Data: <FileLink head={head} name="ranking.json" />. <a href="#/" onClick={toNotes}>How the numbers were computed</a>
      </p>
      {head.separation.length > 0 && (
        <details class="separation">
          <summary>Which candidates are tied?</summary>
          <ul>{head.separation.map((sentence) => <li key={sentence}>{sentence}</li>)}</ul>
        </details>
      )}
    </section>
  );
}

function toNotes(event: Event): void {
  event.preventDefault();
  document.getElementById("made")?.scrollIntoView();
}

function Row(props: { row: Candidate; head: Head; axis: Axis; joined: boolean }) {
  const { row, head } = props;
  const place = props.joined ? bracket(row, head) : "";
  return (
    <tr class={place}>
      <td class="rank">{row.rank === null ? "\u2013" : <><b>{row.rank}</b>{range(row)}</>}</td>
      <td class="bracket">
        {place && <span class="spoken">group {row.group}, tied with the first in it</span>}
      </td>
      <th scope="row">
        <a class="clamped" href={to.candidate(row.name)} title={row.name}><Name>{row.name}</Name></a>
        {row.missing > 0 && <small class="loud">{count(row.missing)} of {count(row.queries + row.missing)} without a score</small>}
      </th>
      <td class="drawn"><IntervalBar of={row.rating} axis={props.axis} unit="rating" /></td>
      <td class="number rating">
        {row.rating === null
          ? <Loud>not ranked</Loud>
          : <><b>{show(row.rating.value, "rating")}</b><small>{ends(row.rating, "rating")}</small></>}
      </td>
      <td class="number score">
        {row.score !== null && <>{show(row.score.value, "score")}<small>{ends(row.score, "score")}</small></>}
      </td>
    </tr>
  );
}

function range({ rank_low: low, rank_high: high }: Candidate) {
  return low === high ? null : <small>{low}&#8211;{high}</small>;
}

/** The part of the group's bracket that a row draws; "" for a group of one. */
function bracket(row: Candidate, head: Head): string {
  if (row.group === null) return "";
  const place = head.candidates.indexOf(row);
  const above = head.candidates[place - 1]?.group === row.group;
  const below = head.candidates[place + 1]?.group === row.group;
  if (above && below) return "joined middle";
  if (above) return "joined end";
  return below ? "joined start" : "";
}

function table(head: Head): Table {
  return {
    columns: ["rank", "rank_low", "rank_high", "group", "candidate", "rating", "rating_low", "rating_high",
      "mean_score", "mean_score_low", "mean_score_high", "queries", "missing"],
    rows: head.candidates.map((row) => [
      row.rank, row.rank_low, row.rank_high, row.group, row.name,
      row.rating?.value ?? null, row.rating?.low ?? null, row.rating?.high ?? null,
      row.score?.value ?? null, row.score?.low ?? null, row.score?.high ?? null,
      row.queries, row.missing,
    ]),
  };
}
