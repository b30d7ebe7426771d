// One view that fails must not take the whole page with it.

import type { ComponentChildren } from "preact";
import { useErrorBoundary } from "preact/hooks";

export function Boundary({ children }: { children: ComponentChildren }) {
  const [error] = useErrorBoundary((found) => console.error(found));
  if (error === undefined) return <>{children}</>;
  return (
    <>
      <h1 tabIndex={-1}>This view cannot be shown</h1>
      <p class="loud">{String(error)}</p>
      <p>The other views are as they were. The run's files hold everything that is shown here.</p>
    </>
  );
}
