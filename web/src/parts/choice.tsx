// A labeled select.

export type Options<T extends string> = readonly (readonly [value: T, label: string])[];

export function Choice<T extends string>(props: {
  label: string;
  value: T;
  options: Options<T>;
  onChoice: (value: T) => void;
}) {
  return (
    <label class="choice">
      <span>{props.label}</span>
      <select
        value={props.value}
        onChange={(event) => props.onChoice(event.currentTarget.value as T)}
      >
        {props.options.map(([value, label]) => <option key={value} value={value}>{label}</option>)}
      </select>
    </label>
  );
}
