// Error boundary: one failing view must not break the page.

import type { ComponentChildren } from "preact";
import { useErrorBoundary } from "preact/hooks";

export function Boundary({ children }: { children: ComponentChildren }) {
  const [error] = useErrorBoundary((found) => console.error(found));
  if (error === undefined) return <>{children}</>;
  return (
    <>
      <h1 tabIndex={-1}>Cannot show this view</h1>
      <p class="loud">{String(error)}</p>
      <p>The other views still work. The files of the run have all data of this report.</p>
    </>
  );
}
