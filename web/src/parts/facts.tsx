// Facts under a heading, for those that are known only later than the heading.

import type { ComponentChildren } from "preact";

export const Facts = ({ facts }: { facts: ComponentChildren[] }) => (
  <ul class="facts">
    {facts.map((fact, place) => (fact === null ? null : <li key={place}>{fact}</li>))}
  </ul>
);
