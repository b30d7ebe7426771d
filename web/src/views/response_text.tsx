// The text of a response, and a note if parts of it were neutralized.

import { plural } from "../format";
import { Clipped } from "../parts/clipped";
import { Prose } from "../parts/words";
import { NotHere } from "./detail_note";
import { Turns } from "./turns";
import type { QueryResults } from "./sheet";

export function ResponseText(props: { results: QueryResults; candidate: number; clip?: boolean }) {
  const { results, candidate } = props;
  const text = results.text(candidate);
  const Text = props.clip ? Clipped : Prose;
  return (
    <div class="response-text">
      {results.hasOwnHistory(candidate) && (
        <details>
          <summary>This candidate had a different conversation before the query</summary>
          <Turns turns={results.history(candidate)} />
        </details>
      )}
      {text === undefined && <NotHere what="The response's text is" />}
      {text === null && <p class="loud">No response to this query.</p>}
      {typeof text === "string" && <Text>{text}</Text>}
      <Disarmed count={results.disarmedIn(candidate)} />
    </div>
  );
}

function Disarmed({ count }: { count: number }) {
  if (count === 0) return null;
  return (
    <p class="hint">
      {plural(count, "sequence", "sequences")} in this response that imitated delimiters or special
      tokens of the prompt {count === 1 ? "was" : "were"} neutralized before the judge read it.
    </p>
  );
}
