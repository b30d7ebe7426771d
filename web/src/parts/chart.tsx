// Chart frame: title, method, data source and downloads.

import type { ComponentChildren, RefObject } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { ReportContext } from "../context";
import { fileName, pictureOf, saveCsv, savePng, saveSvg, type Table } from "./download";

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

/** Width in pixels of a chart that is printed before it was laid out. */
const WIDTH = 640;

export function Chart(props: ChartProps) {
  const report = useContext(ReportContext);
  const [box, width] = useWidth();
  const place = useRef<HTMLDivElement>(null);
  const draw = (wide: number) => place.current?.replaceChildren(named(props.draw(wide), props.title));
  const near = useNear(box, () => draw(box.current?.clientWidth || WIDTH));
  useEffect(() => {
    if (width > 0 && near) draw(width);
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
          <button type="button" onClick={withDrawing((chart) => void savePng(name, pictureOf(chart)))}>PNG</button>
          <button type="button" onClick={withDrawing((chart) => saveSvg(name, pictureOf(chart)))}>SVG</button>
          <button type="button" onClick={() => saveCsv(name, props.table())}>CSV</button>
        </span>
      </div>
    </figure>
  );
}

/**
 * Names the drawing and its links, and removes them from the tab order; tables and lists lead to the
 * same pages. The library's labels of parts are dropped: they have no role to name.
 */
function named(drawing: SVGElement | HTMLElement, title: string): SVGElement | HTMLElement {
  const links = drawing.querySelectorAll("a");
  drawing.setAttribute("role", links.length ? "group" : "img");
  drawing.setAttribute("aria-label", `${title}; the CSV has the numbers`);
  for (const part of drawing.querySelectorAll("g[aria-label]")) part.removeAttribute("aria-label");
  for (const link of links) {
    link.setAttribute("tabindex", "-1");
    link.setAttribute("aria-label", link.querySelector("title")?.textContent || title);
  }
  return drawing;
}

/** Whether the chart is near the viewport or about to be printed; others are not drawn. */
function useNear(box: RefObject<HTMLElement | null>, draw: () => void): boolean {
  const [near, setNear] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (!element || near) return undefined;
    const watcher = new IntersectionObserver(
      (entries) => entries.some((entry) => entry.isIntersecting) && setNear(true),
      { rootMargin: "400px" },
    );
    // Printing starts before the next render, so draw at once.
    const print = () => {
      setNear(true);
      draw();
    };
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
