// What a candidate wrote, and what was done to it before the judge saw it.

import { plural } from "../format";
import { Clipped } from "../parts/clipped";
import { Prose } from "../parts/words";
import { NotHere } from "./detail_note";
import { Turns } from "./turns";
import type { Sheet } from "./sheet";

export function ResponseText(props: { sheet: Sheet; candidate: number; clip?: boolean }) {
  const { sheet, candidate } = props;
  const text = sheet.text(candidate);
  const Text = props.clip ? Clipped : Prose;
  return (
    <div class="response-text">
      {sheet.hasOwnHistory(candidate) && (
        <details>
          <summary>Its own conversation before the query</summary>
          <Turns turns={sheet.history(candidate)} />
        </details>
      )}
      {text === undefined && <NotHere what="The response's text is" />}
      {text === null && <p class="loud">It gave no response to this query.</p>}
      {typeof text === "string" && <Text>{text}</Text>}
      <Disarmed count={sheet.disarmedIn(candidate)} />
    </div>
  );
}

function Disarmed({ count }: { count: number }) {
  if (count === 0) return null;
  return (
    <p class="hint">
      {plural(count, "mark", "marks")} in this response that could pass for the judge&#8217;s own
      delimiters or tokens {count === 1 ? "was" : "were"} disarmed before the judge read it.
    </p>
  );
}
