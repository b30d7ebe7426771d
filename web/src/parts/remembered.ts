// Settings and labels of this browser, kept between visits where the browser allows it.

const PREFIX = "rocketeval-";

/** Values that the browser refused to store; they last until the page is closed. */
const refused = new Map<string, string>();

export function remembered(name: string): string {
  const here = refused.get(name);
  if (here !== undefined) return here;
  try {
    return localStorage.getItem(PREFIX + name) ?? "";
  } catch {
    return "";
  }
}

/** Whether the browser keeps the value after the page is closed. */
export const isStored = (name: string): boolean => !refused.has(name);

export function remember(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(PREFIX + name, value);
    else localStorage.removeItem(PREFIX + name);
    refused.delete(name);
  } catch {
    // The storage is closed or full.
    refused.set(name, value);
  }
}
