// The items of one checklist by what they belong to.

export interface ItemGroup {
  /** null where the checklist has no groups. */
  name: string | null;
  /** Places in the checklist, one after the other. */
  items: number[];
}

/** Neighbouring items with the same group together, in the checklist's order. */
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
