// A conversation, turn by turn.

import { Clipped } from "../parts/clipped";
import { Name } from "../parts/words";

export function Turns({ turns }: { turns: [role: string, content: string][] }) {
  return (
    <ol class="turns">
      {turns.map(([role, content], place) => (
        <li key={place}>
          <b><Name>{role}</Name></b>
          <Clipped>{content}</Clipped>
        </li>
      ))}
    </ol>
  );
}
