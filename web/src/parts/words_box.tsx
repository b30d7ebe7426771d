// A box for words, and what is left of a list that has to hold them all.

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

/** Whether a text in lower case holds every word of `words`. */
export function wordsIn(words: string): (text: string) => boolean {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => wanted.every((word) => text.includes(word));
}

/** How many are left, told to those who listen, too. */
export const Left = ({ shown, of }: { shown: number; of: number }) => (
  <span class="hint" role="status">
    {shown === of ? "" : `${shown.toLocaleString("en")} of ${of.toLocaleString("en")}`}
  </span>
);
