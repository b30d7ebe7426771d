// A candidate's means by item group, compared with the other candidates.

import type { GroupMeans } from "../contract";
import { useReport } from "../context";
import { count, ends, two } from "../format";
import { AnswerBar } from "../parts/heat";
import { Name, Section } from "../parts/words";

export function CandidateGroups({ candidate }: { candidate: number }) {
  const { head } = useReport();
  const there = head.groups[0]?.means.length ?? 0;
  if (candidate >= there) return null;
  const others = there < head.candidates.filter(({ rank }) => rank !== null).length ? `Others in the top ${count(there)}` : "Other candidates";
  const lacking = head.groups.some(({ missing }) => missing[candidate]);
  return (
    <Section title="Results by item group" lead={head.groups_are}>
      <div class="scroll">
        <table class="categories own-groups">
          <thead>
            <tr>
              <th scope="col">Group</th>
              <th scope="col">Mean</th>
              <th scope="col" class="number">{Math.round(100 * head.level)}% interval</th>
              <th scope="col" class="number">{others}</th>
              {lacking && <th scope="col" class="number">Unanswered items</th>}
            </tr>
          </thead>
          <tbody>
            {head.groups.map((group, place) => (
              <Line key={place} {...{ group, candidate, lacking }} />
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function Line(props: { group: GroupMeans; candidate: number; lacking: boolean }) {
  const { group, candidate } = props;
  const mean = group.means[candidate] ?? null;
  const others = meanOf(group.means.filter((_, place) => place !== candidate));
  const missing = group.missing[candidate] ?? 0;
  return (
    <tr>
      <th scope="row">{group.whole ? <b><Name>{`${group.name} (all)`}</Name></b> : <Name>{group.name}</Name>}</th>
      <td class="measure">
        <b>{mean === null ? "\u2013" : two(mean.value)}</b><AnswerBar p={mean?.value ?? null} />
      </td>
      <td class="number">{mean === null ? "\u2013" : ends(mean, "number").replace("interval ", "")}</td>
      <td class="number">{others === null ? "\u2013" : two(others)}</td>
      {props.lacking && <td class="number">{missing ? count(missing) : ""}</td>}
    </tr>
  );
}

function meanOf(means: GroupMeans["means"]): number | null {
  const known = means.filter((mean) => mean !== null);
  return known.length ? known.reduce((sum, { value }) => sum + value, 0) / known.length : null;
}
