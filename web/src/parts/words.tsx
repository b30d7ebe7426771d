// Text components. Names and texts are untrusted: they become text nodes only, each with its own
// writing direction.

import type { ComponentChildren } from "preact";
import type { Head } from "../contract";

export const Name = ({ children }: { children: string }) => <bdi>{children}</bdi>;

/** The short name of an answer's number. */
export const answerName = (head: Head) =>
  head.yes_no ? (head.answer_kinds.length ? "answer" : "P(yes)") : "grade";

/** The ends of the scale of scores, such as 1-10. */
export const Scale = ({ head }: { head: Head }) => <>{head.scale[0]}&#8211;{head.scale[1]}</>;

export const Tag = ({ children, mood }: { children: ComponentChildren; mood?: string }) => (
  <span class={`tag ${mood ?? ""}`}>{children}</span>
);

export const Loud = ({ children }: { children: ComponentChildren }) => (
  <span class="loud">{children}</span>
);

export function Section(props: {
  title: string;
  id?: string;
  lead?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="section" id={props.id}>
      <h2>{props.title}</h2>
      {props.lead === undefined ? null : <p class="section-lead">{props.lead}</p>}
      {props.children}
    </section>
  );
}

/** The top of a view: breadcrumbs, title and facts. */
export function Heading(props: {
  trail: [href: string, label: string][];
  title: string;
  facts?: ComponentChildren[];
}) {
  const facts = (props.facts ?? []).filter((fact) => fact !== null && fact !== undefined);
  return (
    <header class="heading">
      <nav aria-label="Breadcrumbs">
        <ol class="crumbs">
          {props.trail.map(([href, label]) => (
            <li key={href}><a href={href}><Name>{label}</Name></a></li>
          ))}
        </ol>
      </nav>
      <h1 tabIndex={-1}><Name>{props.title}</Name></h1>
      {facts.length > 0 && <ul class="facts">{facts.map((fact) => <li>{fact}</li>)}</ul>}
    </header>
  );
}

const SPANS = /(\([-\d.,%]+(?:-| to )[-\d.,%]+\)|`[^`]+`)/;

/** A sentence of the run: commands as code, and intervals such as (5-15) on one line. */
export const Sentence = ({ children: sentence }: { children: string }) => (
  <>
    {sentence.split(SPANS).map((part, place) => {
      if (place % 2 === 0) return part;
      return part.startsWith("`") ? <code>{part.slice(1, -1)}</code> : <span class="unbroken">{part}</span>;
    })}
  </>
);
