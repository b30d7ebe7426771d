// Blocks: gzip bytes, embedded in the page or fetched from the server that serves it.

const parsed = new Promise<void>((done) => {
  if (document.readyState !== "loading") done();
  else document.addEventListener("DOMContentLoaded", () => done(), { once: true });
});

/** A block that is not in this page. */
export class Absent extends Error {}

/** A block whose run has gone on since; a newer head is on its way. */
export class Outdated extends Error {}

export type Fetcher = (name: string) => Promise<Uint8Array<ArrayBuffer>>;

/** Blocks from the page itself; the last of them may still be on their way. */
export async function embedded(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const here = () => document.getElementById(`block-${name}`);
  if (!here()) await parsed;
  const element = here();
  if (!element) throw new Absent(name);
  return fromBase64(element.textContent ?? "");
}

/** Blocks from `rocketeval view`, as they were when the head of this `version` was made. */
export const servedAt = (version: string): Fetcher => async (name) => {
  const answer = await fetch(`block/${encodeURIComponent(name)}?version=${encodeURIComponent(version)}`);
  if (answer.status === 404) throw new Absent(name);
  if (answer.status === 409) throw new Outdated(name);
  if (!answer.ok) throw new Error(`The server answered ${answer.status} for ${name}.`);
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
