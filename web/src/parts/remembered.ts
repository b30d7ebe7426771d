// Settings of this browser, kept between visits where the browser allows it.

const PREFIX = "rocketeval-";

export function remembered(name: string): string {
  try {
    return localStorage.getItem(PREFIX + name) ?? "";
  } catch {
    return "";
  }
}

export function remember(name: string, value: string): void {
  try {
    if (value) localStorage.setItem(PREFIX + name, value);
    else localStorage.removeItem(PREFIX + name);
  } catch {
    // A private window or a closed storage: the setting lasts until the page is closed.
  }
}
