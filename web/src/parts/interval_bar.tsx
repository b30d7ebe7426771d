// An interval drawn on an axis that all rows of a table share.

import type { Interval, Unit } from "../contract";
import { figure } from "../format";

export interface Axis {
  low: number;
  high: number;
}

/** An axis that covers all known bounds, with a small margin. */
export function axisAround(intervals: (Interval | null)[], including: number[] = []): Axis {
  const known = intervals.flatMap((each) => (each ? [each.value, each.low, each.high] : []));
  const numbers = [...known, ...including].filter((end): end is number => end !== null);
  const low = Math.min(...numbers);
  const high = Math.max(...numbers);
  if (!numbers.length) return { low: 0, high: 1 };
  const room = (high - low || 1) * 0.03;
  return { low: low - room, high: high + room };
}

const placed = (axis: Axis, value: number) =>
  100 * Math.min(1, Math.max(0, (value - axis.low) / (axis.high - axis.low)));

export function IntervalBar(props: { of: Interval | null; axis: Axis; unit: Unit; label?: string }) {
  const { of, axis } = props;
  if (of === null) return null;
  const from = placed(axis, of.low ?? axis.low);
  const to = placed(axis, of.high ?? axis.high);
  const open = of.low === null || of.high === null;
  return (
    <span class="interval" role="img" aria-label={props.label ?? figure(of, props.unit)}>
      <span
        class={`reach ${open ? "open" : ""}`}
        style={{ insetInlineStart: `${from}%`, inlineSize: `${to - from}%` }}
      />
      <span class="point" style={{ insetInlineStart: `${placed(axis, of.value)}%` }} />
    </span>
  );
}
