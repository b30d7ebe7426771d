// Something that is on its way: shown when it is there, and said plainly when it is not.

import type { ComponentChildren } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { ReportContext } from "../context";
import type { Report } from "../report";
import { Absent, Outdated } from "../source";

type State<T> = { value?: T; error?: unknown; report?: Report | null };

/**
 * Renders `children` with what `open` promises; opened again whenever `name` or the report changes.
 * While a newer report's part is on its way, the older one's is shown, inside the older report:
 * candidates may stand in another order in the newer one.
 */
export function Opened<T>(props: {
  name: string;
  open: () => Promise<T>;
  absent?: ComponentChildren;
  children: (value: T) => ComponentChildren;
}) {
  const report = useContext(ReportContext);
  const [state, setState] = useState<State<T> & { of?: string }>({});
  useEffect(() => {
    let wanted = true;
    props.open().then(
      (value) => wanted && setState({ value, of: props.name, report }),
      (error: unknown) => wanted && setState({ error, of: props.name }),
    );
    return () => {
      wanted = false;
    };
  }, [props.name, report]);
  const waiting = state.of !== props.name || state.error instanceof Outdated;
  if (waiting) return <p class="hint" role="status">Opening&#8230;</p>;
  if (state.value !== undefined)
    return (
      <ReportContext.Provider value={state.report ?? null}>
        {props.children(state.value)}
      </ReportContext.Provider>
    );
  if (state.error instanceof Absent) return <>{"absent" in props ? props.absent : <p class="hint">Not in this file.</p>}</>;
  console.error(state.error);
  return <p class="loud">This part cannot be read: {String(state.error)}</p>;
}
