// Scores and differences as bars; the number is always shown next to them.

/** From the low end of the scale to the score. */
export function ScoreBar({ score, scale }: { score: number | null; scale: [number, number] }) {
  const part = score === null ? 0 : (score - scale[0]) / (scale[1] - scale[0] || 1);
  return (
    <span class={`score-bar ${score === null ? "gap" : ""}`} aria-hidden="true">
      <span style={{ inlineSize: `${100 * Math.min(1, Math.max(0, part))}%` }} />
    </span>
  );
}

/** A bar from the middle to the side of the better candidate; `most` is the full width. */
export function GapBar({ gap, most }: { gap: number; most: number }) {
  const part = Math.min(1, Math.abs(gap) / (most || 1));
  const side = gap < 0 ? "behind" : "ahead";
  return (
    <span class={`gap-bar ${side}`} aria-hidden="true">
      <span style={{ inlineSize: `${50 * part}%` }} />
    </span>
  );
}
