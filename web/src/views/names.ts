// Two candidates by name, because positions change while a run continues.

export type Names = readonly [first: string, second: string];
