// A list of facts below a heading.

import type { ComponentChildren } from "preact";

export const Facts = ({ facts }: { facts: ComponentChildren[] }) => (
  <ul class="facts">
    {facts.map((fact, place) => (fact === null ? null : <li key={place}>{fact}</li>))}
  </ul>
);
