// One perspective in a list, with expandable details.

import type { ComponentChildren } from "preact";
import type { DescribedPerspective, EvaluatorBlock } from "../contract";
import { share, whole } from "../format";
import { ScoreBar } from "../parts/score_bar";
import { Name, Tag } from "../parts/words";
import { KINDS, originWords } from "./perspective_rows";

/** Column headings; each line repeats them for screen readers. */
export const PerspectiveLineHead = () => (
  <div class="line perspective-line head" aria-hidden="true">
    <span>Perspective</span><span>Importance</span><span>Stability</span><span>Round</span>
  </div>
);

export function PerspectiveLine({ row, most }: { row: DescribedPerspective; most: number }) {
  return (
    <div class="line perspective-line">
      <span class="item-what">
        <span class="item-text" dir="auto" title={row.text}>{row.text}</span>
        <span class="item-of">
          <Tag>{KINDS[row.kind] ?? row.kind}</Tag> <Tag><Name>{originWords(row.origin)}</Name></Tag>{" "}
          {row.types.map((type) => <><Tag><Name>{type}</Name></Tag>{" "}</>)}
        </span>
      </span>
      <Measure name="importance">
        <b>{known(row.importance)}</b><ScoreBar score={row.importance} scale={[0, most]} />
      </Measure>
      <Measure name="stability"><b>{row.stability === null ? "\u2013" : `${whole(100 * row.stability)}%`}</b></Measure>
      <Measure name="round"><b>{row.round === 0 ? "start" : row.round}</b></Measure>
    </div>
  );
}

const known = (value: number | null) => (value === null ? "\u2013" : share(value));

function Measure(props: { name: string; children: ComponentChildren }) {
  return (
    <span class={`measure ${props.name}`}>
      <span class="phone-label">{props.name}</span> {props.children}
    </span>
  );
}

type Family = Map<string, DescribedPerspective>;

export function PerspectiveInside(props: { block: EvaluatorBlock; row: DescribedPerspective; family: Family }) {
  const { block, row, family } = props;
  return (
    <>
      <p class="perspective-text" dir="auto">{row.text}</p>
      <p class="hint">
        {asked(row, block.asking)} <code>{row.id}</code>
      </p>
      <Attended block={block} row={row} />
      {row.parents.length > 0 && (
        <>
          <h3>Derived from</h3>
          <Parents ids={row.parents} family={family} above={[row.id]} />
        </>
      )}
    </>
  );
}

/** How the judge answers it. */
function asked({ kind, form }: DescribedPerspective, asking: EvaluatorBlock["asking"]): string {
  if (kind === "query") return "Yes or no, once per query.";
  if (asking === "pairs")
    return form === "choice"
      ? "A or B, for two responses at once."
      : "A grade for how much better one of two responses is.";
  return form === "choice" ? "Yes or no, for one response." : "A grade, for one response.";
}

/** The attention of each expert; none for perspectives on queries, which only route. */
function Attended({ block, row }: { block: EvaluatorBlock; row: DescribedPerspective }) {
  const place = block.perspectives.filter(({ kind }) => kind === "response").indexOf(row);
  if (place < 0 || !block.experts.length) return null;
  return (
    <p class="hint">
      Attention: {block.experts.map(({ index, attention }) => `expert ${index + 1} ${share(attention[place] ?? 0)}`).join(", ")}.
    </p>
  );
}

/** The chain of parents; `above` stops cycles, which a hand-written pool could contain. */
function Parents({ ids, family, above }: { ids: string[]; family: Family; above: string[] }) {
  return (
    <ul class="parents">
      {ids.map((id) => {
        const parent = family.get(id);
        return (
          <li key={id}>
            {parent === undefined
              ? <span class="soft">No longer in the pool: <code>{id}</code></span>
              : <><span dir="auto">{parent.text}</span> <Tag><Name>{originWords(parent.origin)}</Name></Tag>{" "}
                <small>{parent.round === 0 ? "initial pool" : `round ${parent.round}`}</small></>}
            {parent !== undefined && parent.parents.length > 0 && !above.includes(id) && (
              <Parents ids={parent.parents} family={family} above={[...above, id]} />
            )}
          </li>
        );
      })}
    </ul>
  );
}
