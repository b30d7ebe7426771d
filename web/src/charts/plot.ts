// The chart library, with the settings that all charts share.

import * as Plot from "@observablehq/plot";

/** Draws marks the house's way; `className` is fixed, since the page's policy knows its style. */
export function draw(width: number, options: Plot.PlotOptions): SVGElement | HTMLElement {
  return Plot.plot({
    width,
    className: "plot",
    marginBottom: 40,
    style: { background: "transparent", fontSize: "12px", color: "var(--ink)" },
    ...options,
  });
}

/** Room for names at the left: enough to read them, never most of the chart. */
export const nameRoom = (width: number, names: string[]) =>
  Math.min(Math.max(60, 14 + 6.6 * Math.max(0, ...names.map((name) => name.length))), width * 0.42);

/** How many letters of a name fit there. */
export const lettersIn = (room: number) => Math.max(6, Math.floor((room - 14) / 6.4));

