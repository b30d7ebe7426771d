// Shared settings of the chart library.

import * as Plot from "@observablehq/plot";

/** Draws a chart with shared settings; the security policy allows only this `className`. */
export function draw(width: number, options: Plot.PlotOptions): SVGElement | HTMLElement {
  return Plot.plot({
    width,
    className: "plot",
    marginBottom: 40,
    style: { background: "transparent", fontSize: "12px", color: "var(--ink)" },
    ...options,
  });
}

/** Left margin for names, limited to 42% of the width. */
export const nameRoom = (width: number, names: string[]) =>
  Math.min(Math.max(60, 14 + 6.6 * Math.max(0, ...names.map((name) => name.length))), width * 0.42);

/** Number of letters that fit in the margin. */
export const lettersIn = (room: number) => Math.max(6, Math.floor((room - 14) / 6.4));

