// Sort orders.

/** Sorted by a number, unknown values last; ties in benchmark order. */
export function byNumber(places: number[], of: (place: number) => number | null): number[] {
  const known = (place: number) => of(place) ?? Infinity;
  return [...places].sort((a, b) => Math.sign(known(a) - known(b)) || a - b);
}
