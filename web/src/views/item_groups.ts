// The items of one checklist by group.

export interface ItemGroup {
  /** null if the checklist has no groups. */
  name: string | null;
  /** Consecutive positions in the checklist. */
  items: number[];
}

/** Groups consecutive items of the same group, in checklist order. */
export function itemGroups(groups: string[] | null, items: number): ItemGroup[] {
  const found: ItemGroup[] = [];
  for (let item = 0; item < items; item++) {
    const name = groups?.[item] ?? null;
    const last = found.at(-1);
    if (last !== undefined && last.name === name) last.items.push(item);
    else found.push({ name, items: [item] });
  }
  return found;
}
