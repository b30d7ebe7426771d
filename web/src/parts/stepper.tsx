// Links to the previous and next entry, also with the keys k and j.

import { useEffect } from "preact/hooks";
import { Name } from "./words";

export interface Step {
  href: string;
  label: string;
}

export function Stepper(props: { before: Step | null; after: Step | null; order: string }) {
  const { before, after } = props;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const into = event.target as HTMLElement;
      // Single keys work only from the title, to avoid conflicts with dictation and shortcuts.
      const here = into.tagName === "H1" || into === document.body || into.closest(".stepper");
      if (event.ctrlKey || event.metaKey || event.altKey || !here) return;
      const step = event.key === "j" ? after : event.key === "k" ? before : null;
      if (step) location.hash = step.href;
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [before?.href, after?.href]);
  return (
    <nav class="stepper" aria-label={props.order}>
      <span class="hint">{props.order}</span>
      <StepLink step={before} letter="k" />
      <StepLink step={after} letter="j" />
    </nav>
  );
}

/** The arrow stands on the side to which the link leads. */
function StepLink({ step, letter }: { step: Step | null; letter: "j" | "k" }) {
  const mark = <span aria-hidden="true">{letter === "k" ? "\u2190" : "\u2192"}</span>;
  if (step === null) return <span class="step none">{mark}</span>;
  return (
    <a class="step" href={step.href} aria-keyshortcuts={letter} title={`Key ${letter}`}>
      {letter === "k" && <>{mark} </>}<Name>{step.label}</Name>{letter === "j" && <> {mark}</>}
    </a>
  );
}
