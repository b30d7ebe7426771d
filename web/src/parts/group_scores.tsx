// Means by candidate and item group: one figure per dimension and sub-dimension.

import { useState } from "preact/hooks";
import type { GroupMeans, Head, Interval } from "../contract";
import { count, ends, plural, two } from "../format";
import { to } from "../routes";
import { fileName, saveCsv, type Table } from "./download";
import { FileLink } from "./files";
import { heat } from "./heat";
import { Name, Section } from "./words";

const SHOWN = 20;

export function GroupScores({ head }: { head: Head }) {
  const [all, setAll] = useState(false);
  const { groups } = head;
  if (!groups.length) return null;
  const there = head.candidates.slice(0, groups[0]!.means.length);
  const rows = all ? there : there.slice(0, SHOWN);
  return (
    <Section
      title="Results by item group"
      lead={<>{head.groups_are} Blue is above 0.5, orange below. <button type="button" onClick={() => saveCsv(fileName(head.run, "groups"), table(head))}>CSV</button></>}
    >
      <div class="scroll">
        <table class="heat-map group-map">
          <caption class="spoken">Means by candidate and item group</caption>
          <GroupHead groups={groups} />
          <tbody>
            {rows.map(({ name, rank }, candidate) => (
              <tr key={name}>
                <th scope="row">
                  <span class="rank">{rank ?? ""}</span>
                  <a href={to.candidate(name)}><Name>{name}</Name></a>
                </th>
                {groups.map((group, place) => (
                  <Cell key={place} group={group} starts={isStart(groups, place)} candidate={candidate} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length < there.length && (
        <button type="button" onClick={() => setAll(true)}>Show all {count(there.length)}</button>
      )}
      <p class="hint">{words(head, there.length)} Data: <FileLink head={head} name="explain.json" />.</p>
    </Section>
  );
}

/** Notes on intervals and on what is left out. */
function words(head: Head, candidates: number): string {
  const parts = head.groups.filter(({ whole }) => !whole);
  const missing = parts.flatMap((group) => group.missing).reduce((sum, each) => sum + each, 0);
  const bounded = head.groups.some(({ means }) => means.some((mean) => isBounded(mean)));
  const more = head.candidates.length - candidates;
  return [
    bounded
      ? `Small numbers are ${Math.round(100 * head.level)}% intervals from resampled queries.`
      : "No intervals: too few queries, or equal scores on all.",
    missing ? `${plural(missing, "unanswered item is", "unanswered items are")} left out (dotted cells).` : "",
    more > 0 ? `${plural(more, "lower-ranked candidate is", "lower-ranked candidates are")} left out.` : "",
    head.groups_left_out ? `${plural(head.groups_left_out, "group is", "groups are")} left out.` : "",
  ].filter(Boolean).join(" ");
}

const isBounded = (mean: Interval | null) => mean !== null && mean.low !== null && mean.high !== null;

/** Consecutive groups of one dimension, with their number of columns. */
function dimensions(groups: GroupMeans[]): { name: string | null; width: number }[] {
  const found: { name: string | null; width: number }[] = [];
  groups.forEach(({ dimension }, place) => {
    if (isStart(groups, place)) found.push({ name: dimension, width: 1 });
    else found.at(-1)!.width++;
  });
  return found;
}

/** Whether a dimension, or a group without a dimension, starts here. */
const isStart = (groups: GroupMeans[], place: number) =>
  place === 0 || groups[place]!.dimension === null
  || groups[place]!.dimension !== groups[place - 1]!.dimension;

function GroupHead({ groups }: { groups: GroupMeans[] }) {
  const named = groups.some(({ dimension }) => dimension !== null);
  return (
    <thead>
      {named && (
        <tr>
          <td />
          {dimensions(groups).map(({ name, width }, place) => (
            <th key={place} scope="colgroup" colSpan={width} class="start" title={name ?? undefined}>
              {name !== null && <span class="cut"><Name>{name}</Name></span>}
            </th>
          ))}
        </tr>
      )}
      <tr>
        <th scope="col">Candidate</th>
        {groups.map((group, place) => (
          <th key={place} scope="col" class={isStart(groups, place) ? "start" : ""} title={group.name}>
            <span class="cut"><bdi>{breakable(ownName(group))}</bdi></span>
          </th>
        ))}
      </tr>
    </thead>
  );
}

function ownName({ name, dimension, whole }: GroupMeans): string {
  if (whole) return "all";
  return dimension === null || name === dimension ? name : name.slice(dimension.length + 2);
}

/** A name with optional line breaks after underscores. */
const breakable = (name: string) =>
  name.split(/(?<=_)/).map((part, place) => (place ? <><wbr />{part}</> : part));

function Cell(props: { group: GroupMeans; starts: boolean; candidate: number }) {
  const { group, candidate } = props;
  const mean = group.means[candidate] ?? null;
  const missing = group.missing[candidate] ?? 0;
  const look = heat(mean?.value ?? null);
  const lacking = missing ? plural(missing, "unanswered item", "unanswered items") : undefined;
  return (
    <td class={`${look.class} ${props.starts ? "start" : ""} ${missing ? "odd" : ""}`} style={look.style} title={lacking}>
      {mean === null
        ? <span class="spoken">missing</span>
        : <>{group.whole ? <b>{two(mean.value)}</b> : two(mean.value)}{isBounded(mean) && <small>{ends(mean, "number")}</small>}</>}
      {lacking && <span class="spoken">, {lacking}</span>}
    </td>
  );
}

function table(head: Head): Table {
  return {
    columns: ["candidate", "group", "dimension", "whole", "mean", "low", "high", "missing"],
    rows: head.candidates.slice(0, head.groups[0]!.means.length).flatMap(({ name }, candidate) =>
      head.groups.map((group) => {
        const mean = group.means[candidate] ?? null;
        return [
          name, group.name, group.dimension, group.whole ? "True" : "False", mean?.value ?? null,
          mean?.low ?? null, mean?.high ?? null, group.missing[candidate] ?? 0,
        ];
      })),
  };
}
