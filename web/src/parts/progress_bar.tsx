// A progress bar; the text next to it gives the numbers.

export function ProgressBar(props: { done: number; total: number; name: string }) {
  const part = props.total > 0 ? Math.min(1, props.done / props.total) : 0;
  return (
    <span
      class="progress"
      role="progressbar"
      aria-label={props.name}
      aria-valuemin={0}
      aria-valuemax={props.total}
      aria-valuenow={props.done}
    >
      <span style={{ inlineSize: `${100 * part}%` }} />
    </span>
  );
}
