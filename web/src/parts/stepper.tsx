// Links to the previous and next entry, also with the keys k and j.

import { go } from "../routes";
import { useShortcuts } from "./shortcuts";
import { Name } from "./words";

export interface Step {
  href: string;
  label: string;
}

export function Stepper(props: { before: Step | null; after: Step | null; order: string }) {
  const { before, after } = props;
  const follow = (step: Step | null) => () => step && go(step.href);
  useShortcuts({ j: follow(after), k: follow(before) });
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
