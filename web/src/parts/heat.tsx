// Answers as color: the hue shows yes or no, its strength the distance from 0.5.

const side = (p: number | null) => (p === null ? "gap" : p >= 0.5 ? "yes" : "no");

const strength = (p: number | null) => `${p === null ? 0 : Math.round(Math.abs(p - 0.5) * 200)}%`;

export function heat(p: number | null) {
  return { class: `heat ${side(p)}`, style: { "--strength": strength(p) } };
}

/** All answers to one response, as a strip of colors. */
export function Strip({ answers }: { answers: (number | null)[] }) {
  return (
    <span class="strip" aria-hidden="true">
      {answers.map((p) => <span {...heat(p)} />)}
    </span>
  );
}

/** One answer as a bar from 0 to 1. */
export function AnswerBar({ p, low, high }: { p: number | null; low?: number | null; high?: number | null }) {
  const bounds = typeof low === "number" && typeof high === "number";
  return (
    <span class={`answer-bar ${p === null ? "gap" : ""}`} aria-hidden="true">
      {p !== null && <span class={`fill ${side(p)}`} style={{ inlineSize: `${100 * p}%` }} />}
      {bounds && (
        <span class="bounds" style={{ insetInlineStart: `${100 * low}%`, inlineSize: `${100 * (high - low)}%` }} />
      )}
    </span>
  );
}
