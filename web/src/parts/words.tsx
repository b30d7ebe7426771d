// Small pieces of text that every view uses. Names and texts are untrusted: they only ever become
// text nodes, and stand in their own direction of writing.

import type { ComponentChildren } from "preact";

export const Name = ({ children }: { children: string }) => <bdi>{children}</bdi>;

export const Tag = ({ children, mood }: { children: ComponentChildren; mood?: string }) => (
  <span class={`tag ${mood ?? ""}`}>{children}</span>
);

export const Loud = ({ children }: { children: ComponentChildren }) => (
  <span class="loud">{children}</span>
);

/** A text as it was written: line breaks kept, nothing interpreted. */
export const Prose = ({ children }: { children: string }) =>
  children === "" ? <p class="loud">Empty.</p> : <div class="prose" dir="auto">{children}</div>;

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

/** The top of a view: where it lies, its title, and facts beside it. */
export function Heading(props: {
  trail: [href: string, label: string][];
  title: string;
  facts?: ComponentChildren[];
}) {
  const facts = (props.facts ?? []).filter((fact) => fact !== null && fact !== undefined);
  return (
    <header class="heading">
      <nav aria-label="Where you are">
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
