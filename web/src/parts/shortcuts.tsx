// Keyboard shortcuts, and the list of them. Single keys can be turned off.

import { useEffect, useRef, useState } from "preact/hooks";
import { remember, remembered } from "./remembered";

let areOn = remembered("keys") !== "off";

/** Held down, these keys go on; any other key acts once per press. */
const MOVES = ["j", "k", "h", "l"];

const FIELDS = "input, select, textarea, dialog, [contenteditable]";

/** Calls a function per key, except in fields and with a modifier. */
export function useShortcuts(keys: Record<string, () => void>): void {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const into = event.target as HTMLElement;
      if (!areOn || event.ctrlKey || event.metaKey || event.altKey || into.closest?.(FIELDS)) return;
      const act = current.current[event.key];
      if (!act) return;
      event.preventDefault();
      if (!event.repeat || MOVES.includes(event.key)) act();
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, []);
}

const KEYS: [string, string][] = [
  ["Ctrl K", "Search queries, responses and items"],
  ["?", "Show this list"],
  ["j / k", "Next or previous query, candidate or pair"],
  ["h / l", "Another candidate in the last column of the reader"],
  ["/", "Filter the queries of the reader"],
  ["d", "Mark the words in which two responses differ"],
  ["r", "Show responses as they are written"],
  ["a / b / t", "While labeling: prefer A, prefer B, tie"],
  ["s / u", "While labeling: skip, undo"],
];

export function KeyList() {
  const box = useRef<HTMLDialogElement>(null);
  const [isOn, setOn] = useState(areOn);
  const show = () => box.current?.showModal();
  useShortcuts({ "?": show });
  const turn = (on: boolean) => {
    areOn = on;
    remember("keys", on ? "" : "off");
    setOn(on);
  };
  return (
    <>
      <button type="button" class="theme" title="Keyboard shortcuts" onClick={show}>
        <span aria-hidden="true">?</span><span class="spoken">Keyboard shortcuts</span>
      </button>
      <dialog ref={box} class="dialog" aria-labelledby="keys-title" onClick={(event) => event.target === box.current && box.current?.close()}>
        <div>
          <h2 id="keys-title">Keyboard shortcuts</h2>
          <dl class="keys">
            {KEYS.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}
          </dl>
          <label class="keys-on">
            <input type="checkbox" checked={isOn} onChange={(event) => turn(event.currentTarget.checked)} /> Single-key shortcuts
          </label>
          <button type="button" onClick={() => box.current?.close()}>Close</button>
        </div>
      </dialog>
    </>
  );
}
