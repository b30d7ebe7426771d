// Chart frame: title, method, data source and downloads.

import type { ComponentChildren, RefObject } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { ReportContext } from "../context";
import { fileName, saveCsv, savePng, saveSvg, type Table } from "./download";

export interface ChartProps {
  title: string;
  /** One line under the title. */
  lead?: ComponentChildren;
  how: ComponentChildren;
  /** Links to the data files. */
  rows?: ComponentChildren;
  /** The drawn numbers, for the CSV. */
  table: () => Table;
  /** Draws the chart for a width in pixels; called again when the width changes. */
  draw: (width: number) => SVGElement | HTMLElement;
  /** Redraw when this or the report changes. */
  of?: unknown;
  run: string;
  wide?: boolean;
}

export function Chart(props: ChartProps) {
  const report = useContext(ReportContext);
  const [box, width] = useWidth();
  const place = useRef<HTMLDivElement>(null);
  const near = useNear(box);
  useEffect(() => {
    if (width > 0 && near) place.current?.replaceChildren(named(props.draw(width), props.title));
  }, [width, near, props.of, report]);
  const name = fileName(props.run, props.title);
  const drawing = () => place.current?.querySelector<SVGSVGElement>("svg.plot") ?? null;
  const withDrawing = (use: (chart: SVGSVGElement) => void) => () => {
    const chart = drawing();
    if (chart) use(chart);
  };
  return (
    <figure class={`chart ${props.wide ? "wide" : ""}`} aria-label={props.title}>
      <figcaption>
        <h3>{props.title}</h3>
        {props.lead !== undefined && <p>{props.lead}</p>}
      </figcaption>
      <div ref={box} class={near ? "drawing" : "drawing yet-to-come"}><div ref={place} /></div>
      <div class="chart-foot">
        <details class="how">
          <summary>Method and data</summary>
          <p>{props.how}</p>
          {props.rows !== undefined && <p>Data: {props.rows}</p>}
        </details>
        <span class="files">
          <button type="button" onClick={withDrawing((chart) => void savePng(name, chart))}>PNG</button>
          <button type="button" onClick={withDrawing((chart) => saveSvg(name, chart))}>SVG</button>
          <button type="button" onClick={() => saveCsv(name, props.table())}>CSV</button>
        </span>
      </div>
    </figure>
  );
}

/**
 * Marks the drawing as one image and removes its links from the tab order; tables and lists lead to
 * the same pages.
 */
function named(drawing: SVGElement | HTMLElement, title: string): SVGElement | HTMLElement {
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `${title}; the CSV has the numbers`);
  for (const link of drawing.querySelectorAll("a")) link.setAttribute("tabindex", "-1");
  return drawing;
}

/** Whether the chart is near the viewport or about to be printed; others are not drawn. */
function useNear(box: RefObject<HTMLElement | null>): boolean {
  const [near, setNear] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (!element || near) return undefined;
    const watcher = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setNear(true),
      { rootMargin: "400px" },
    );
    const print = () => setNear(true);
    watcher.observe(element);
    window.addEventListener("beforeprint", print);
    return () => {
      watcher.disconnect();
      window.removeEventListener("beforeprint", print);
    };
  }, [near]);
  return near;
}

function useWidth() {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const watcher = new ResizeObserver(([entry]) => {
      if (entry) setWidth(Math.floor(entry.contentRect.width));
    });
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  return [box, width] as const;
}
