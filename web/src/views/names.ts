// Two candidates by name: while a run is going, their order changes.

export type Names = readonly [first: string, second: string];
