// What to do next, derived from the result and from the trust figures.

import type { ComponentChildren } from "preact";
import type { Head } from "../contract";
import { to } from "../routes";
import { Name } from "./words";

export function NextSteps({ head }: { head: Head }) {
  const steps = stepsOf(head);
  if (head.provisional || !steps.length) return null;
  return (
    <section class="next-steps" aria-labelledby="next-title">
      <h2 id="next-title">What to do next</h2>
      <ul>{steps.map((step, place) => <li key={place}>{step}</li>)}</ul>
    </section>
  );
}

function stepsOf(head: Head): ComponentChildren[] {
  const [first, second] = head.candidates.filter(({ rank }) => rank !== null);
  const steps: ComponentChildren[] = [];
  const [main] = head.trust;
  if (main && main.value === null)
    steps.push(<><a href={to.label()}>Label 20 pairs</a>, or add votes or labels to the benchmark, to measure how far the judge agrees with people.</>);
  else if (main?.mood === "poor")
    steps.push(<>Do not rely on this ranking yet: read the <a href={to.trust()}>audit</a>, then try another judge or checklist.</>);
  else if (head.advice.length > 0)
    steps.push(<>Check the <a href={to.trust()}>audit</a> for weaknesses of the judge, such as length bias.</>);
  if (head.islands > 1)
    steps.push(<>Add queries that candidates of all {head.islands} sets answer: without shared queries, the sets cannot be ranked together.</>);
  else if (first && second) {
    const link = to.compare(first.name, second.name);
    steps.push(first.group === second.group
      ? <>Add queries to separate the tied candidates, or <a href={link}>compare the top two</a> to see how large the difference is.</>
      : <><a href={link}>Compare the top two</a> to see which queries decide the order.</>);
  }
  steps.push(
    <>
      Read the <a href={to.read()}>queries on which the candidates differ most</a>
      {first && second && head.islands <= 1 && <>, or those <a href={to.read({ only: "second" })}>where <Name>{second.name}</Name> scores higher than <Name>{first.name}</Name></a></>}.
    </>,
  );
  return steps;
}
