// Content that loads asynchronously, with messages for waiting, missing and failed data.

import type { ComponentChildren } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { ReportContext } from "../context";
import type { Report } from "../report";
import { Absent, Outdated } from "../source";

type State<T> = { value?: T; error?: unknown; report?: Report | null };

/**
 * Renders `children` with the result of `open`; opens again whenever `name` or the report changes.
 * While data of a newer report loads, the old data is shown in the context of the old report,
 * because the order of candidates may differ.
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
  if (waiting) return <p class="hint" role="status">Loading&#8230;</p>;
  if (state.value !== undefined)
    return (
      <ReportContext.Provider value={state.report ?? null}>
        {props.children(state.value)}
      </ReportContext.Provider>
    );
  if (state.error instanceof Absent) return <>{"absent" in props ? props.absent : <p class="hint">Not in this file.</p>}</>;
  console.error(state.error);
  return <p class="loud">Cannot read this part: {String(state.error)}</p>;
}
