// Selection of two candidates to compare.

import { useReport } from "../context";
import type { Names } from "./names";

export function PairChoice({ names, onNames }: { names: Names; onNames: (names: Names) => void }) {
  const [first, second] = names;
  return (
    <div class="pair-choice">
      <CandidateChoice label="First" name={first} onName={(name) => onNames([name, second])} />
      <button type="button" onClick={() => onNames([second, first])}>
        <span aria-hidden="true">&#8646;</span> Swap
      </button>
      <CandidateChoice label="Second" name={second} onName={(name) => onNames([first, name])} />
    </div>
  );
}

interface ChoiceProps {
  label: string;
  name: string;
  onName: (name: string) => void;
}

function CandidateChoice({ label, name, onName }: ChoiceProps) {
  const { head, places } = useReport();
  return (
    <label>
      <span>{label}</span>
      <select
        value={String(places.get(name))}
        onChange={(event) => onName(head.candidates[Number(event.currentTarget.value)]!.name)}
      >
        {head.candidates.map((candidate, place) => (
          <option key={place} value={String(place)}>
            {candidate.rank === null ? candidate.name : `${candidate.rank}. ${candidate.name}`}
          </option>
        ))}
      </select>
    </label>
  );
}
