// A search box, and the filter that keeps texts with all its words.

export function WordsBox(props: {
  placeholder: string;
  value: string;
  onWords: (value: string) => void;
}) {
  return (
    <label>
      <span>Filter</span>
      <input
        type="search"
        placeholder={props.placeholder}
        value={props.value}
        onInput={(event) => props.onWords(event.currentTarget.value)}
      />
    </label>
  );
}

/** Returns a test for lower-case texts that contain every word of `words`. */
export function wordsIn(words: string): (text: string) => boolean {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => wanted.every((word) => text.includes(word));
}

/** The number of remaining entries, announced to screen readers. */
export const Left = ({ shown, of }: { shown: number; of: number }) => (
  <span class="hint" role="status">
    {shown === of ? "" : `${shown.toLocaleString("en")} of ${of.toLocaleString("en")}`}
  </span>
);
