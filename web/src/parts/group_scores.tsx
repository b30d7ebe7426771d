// What candidates got in each group of items: one figure a dimension and a sub-dimension.

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
      title="By group of items"
      lead={<>{head.answers_are}, mean over a group's items, then over responses. Blue is above one half, orange below. <button type="button" onClick={() => saveCsv(fileName(head.run, "groups"), table(head))}>CSV</button></>}
    >
      <div class="scroll">
        <table class="heat-map group-map">
          <caption class="spoken">{head.answers_are} by candidate and group of items</caption>
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
      <p class="hint">{words(head, there.length)} Rows: <FileLink head={head} name="explain.json" />.</p>
    </Section>
  );
}

/** What has been left out, and what the small figures are. */
function words(head: Head, candidates: number): string {
  const parts = head.groups.filter(({ whole }) => !whole);
  const missing = parts.flatMap((group) => group.missing).reduce((sum, each) => sum + each, 0);
  const bounded = head.groups.some(({ means }) => means.some((mean) => isBounded(mean)));
  const more = head.candidates.length - candidates;
  return [
    "All items weigh the same here.",
    bounded
      ? `Small figures are ${Math.round(100 * head.level)} % intervals over the queries.`
      : "There are too few queries for intervals.",
    missing ? `${plural(missing, "missing answer is", "missing answers are")} left out (dotted).` : "",
    more > 0 ? `${plural(more, "candidate", "candidates")} further down left out.` : "",
    head.groups_left_out ? `${plural(head.groups_left_out, "group", "groups")} left out.` : "",
  ].filter(Boolean).join(" ");
}

const isBounded = (mean: Interval | null) => mean !== null && mean.low !== null && mean.high !== null;

/** Groups of one dimension that stand together, under its name. */
function dimensions(groups: GroupMeans[]): { name: string | null; width: number }[] {
  const found: { name: string | null; width: number }[] = [];
  groups.forEach(({ dimension }, place) => {
    if (isStart(groups, place)) found.push({ name: dimension, width: 1 });
    else found.at(-1)!.width++;
  });
  return found;
}

/** Whether a dimension, or a group without one, begins here. */
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

/** A name that may be broken after underscores before it is broken anywhere. */
const breakable = (name: string) =>
  name.split(/(?<=_)/).map((part, place) => (place ? <><wbr />{part}</> : part));

function Cell(props: { group: GroupMeans; starts: boolean; candidate: number }) {
  const { group, candidate } = props;
  const mean = group.means[candidate] ?? null;
  const missing = group.missing[candidate] ?? 0;
  const look = heat(mean?.value ?? null);
  const lacking = missing ? plural(missing, "answer is missing", "answers are missing") : undefined;
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
