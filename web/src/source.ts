// Block sources: gzip bytes embedded in the page or fetched from its server.

const parsed = () => new Promise<void>((done) => {
  if (document.readyState !== "loading") done();
  else document.addEventListener("DOMContentLoaded", () => done(), { once: true });
});

/** The block is not in this page. */
export class Absent extends Error {}

/** The run has newer results than the page's head. */
export class Outdated extends Error {}

/** Dispatched to the window when a block is outdated, so that the page gets a new head. */
export const OUTDATED = "outdated";

/** For `catch`: null without the block; an outdated block stays an error. */
export function nullIfMissing(error: unknown): null {
  if (error instanceof Outdated) throw error;
  return null;
}

export type Fetcher = (name: string) => Promise<Uint8Array<ArrayBuffer>>;

/** Reads blocks from the page; waits until the whole block has arrived. */
export async function embedded(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const here = () => document.getElementById(`block-${name}`);
  // A block that the browser is still reading has nothing after it yet, and may be incomplete.
  if (!here()?.nextSibling) await parsed();
  const element = here();
  if (!element) throw new Absent(name);
  return fromBase64(element.textContent ?? "");
}

/** Fetches blocks from `rocketeval view` that match the head of this `version`. */
export const servedAt = (version: string): Fetcher => async (name) => {
  const answer = await fetch(`block/${encodeURIComponent(name)}?version=${encodeURIComponent(version)}`);
  if (answer.status === 404) throw new Absent(name);
  if (answer.status === 409) {
    window.dispatchEvent(new Event(OUTDATED));
    throw new Outdated(name);
  }
  if (!answer.ok) throw new Error(`The server returned ${answer.status} for ${name}.`);
  return new Uint8Array(await answer.arrayBuffer());
};

/** Fetches blocks from files next to the page. */
export const inFolder: Fetcher = async (name) => {
  const answer = await fetch(`block/${encodeURIComponent(name)}.bin`);
  if (answer.status === 404) throw new Absent(name);
  if (!answer.ok) throw new Error(`The host returned ${answer.status} for ${name}.`);
  return new Uint8Array(await answer.arrayBuffer());
};

export async function unzip(packed: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> })
    .fromBase64;
  if (native) return native.call(Uint8Array, text);
  const plain = atob(text);
  const bytes = new Uint8Array(plain.length);
  for (let place = 0; place < plain.length; place++) bytes[place] = plain.charCodeAt(place);
  return bytes;
}
