// Downloads: tables as CSV, charts as SVG and PNG.

export type Cell = string | number | null;

export interface Table {
  columns: string[];
  rows: Cell[][];
}

// A spreadsheet runs text that starts like this as a formula.
const FORMULA = /^[\s"'\p{Cf}\p{Cc}]*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]/u;

function cell(value: Cell): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",;\t\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = ({ columns, rows }: Table) =>
  [columns, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";

/** A file name of letters, digits and dashes. */
export const fileName = (...parts: string[]) =>
  parts.map((part) => part.replace(/[^A-Za-z0-9]+/g, "-").replace(/^-|-$/g, "")).join("-").slice(0, 80);

export function save(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

export const saveCsv = (name: string, table: Table) =>
  save(`${name}.csv`, new Blob([csv(table)], { type: "text/csv;charset=utf-8" }));

/** The chart as a standalone SVG, with the page's colors and background resolved. */
export function standalone(chart: SVGSVGElement): string {
  const copy = chart.cloneNode(true) as SVGSVGElement;
  const styles = getComputedStyle(chart);
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", paper);
  copy.prepend(ground);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("font-family", styles.fontFamily);
  copy.setAttribute("color", styles.color);
  const text = new XMLSerializer().serializeToString(copy);
  return text.replace(/var\((--[\w-]+)\)/g, (_, name: string) => styles.getPropertyValue(name).trim());
}

export interface Picture {
  svg: string;
  width: number;
  height: number;
}

export function pictureOf(chart: SVGSVGElement): Picture {
  const { width, height } = chart.viewBox.baseVal;
  return { svg: standalone(chart), width, height };
}

export async function savePng(name: string, { svg, width, height }: Picture, scale = 2): Promise<void> {
  const picture = new Image();
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await picture.decode();
  const canvas = document.createElement("canvas");
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.getContext("2d")!.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const made = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (made) save(`${name}.png`, made);
}

export const saveSvg = (name: string, { svg }: Picture) =>
  save(`${name}.svg`, new Blob([svg], { type: "image/svg+xml" }));
