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
      <StepLink step={before} mark="&#8592;" letter="k" />
      <StepLink step={after} mark="&#8594;" letter="j" />
    </nav>
  );
}

function StepLink({ step, mark, letter }: { step: Step | null; mark: string; letter: string }) {
  if (step === null) return <span class="step none" aria-hidden="true">{mark}</span>;
  return (
    <a class="step" href={step.href} aria-keyshortcuts={letter} title={`Key ${letter}`}>
      <span aria-hidden="true">{mark}</span> <Name>{step.label}</Name>
    </a>
  );
}
