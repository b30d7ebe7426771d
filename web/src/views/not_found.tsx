import type { ComponentChildren } from "preact";
import { Heading } from "../parts/words";
import { to } from "../routes";

export function NotFound({ what }: { what: ComponentChildren }) {
  return (
    <>
      <Heading trail={[[to.overview(), "Overview"]]} title="Not in this report" />
      <p>{what}</p>
    </>
  );
}
