// A button that copies a text.

import { useState } from "preact/hooks";

export function CopyButton({ text, what }: { text: string; what: string }) {
  const [state, setState] = useState<"" | "Copied" | "Cannot copy">("");
  const copy = async () => {
    setState((await copied(text)) ? "Copied" : "Cannot copy");
    setTimeout(() => setState(""), 2000);
  };
  return (
    <button type="button" class="copy" title={`Copy the ${what} as it is written`} onClick={() => void copy()}>
      <span role="status">{state || "Copy"}</span><span class="spoken"> {what}</span>
    </button>
  );
}

async function copied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text);
  }
}

/** For pages on which the clipboard is closed to scripts, such as some files. */
function copiedBySelection(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "spoken";
  document.body.append(field);
  field.select();
  const isDone = document.execCommand("copy");
  field.remove();
  return isDone;
}
