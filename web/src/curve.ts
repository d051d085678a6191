// Lines of bytes over events, as points from which each value holds to the next.

export type Point = [event: number, value: number];

/** Where a line first goes above the top, and the most that it reaches; null: it stays below. */
export function departure(points: Point[], top: number): { event: number; most: number } | null {
  const first = points.find(([, value]) => value > top);
  if (!first) return null;
  return { event: first[0], most: points.reduce((most, [, value]) => Math.max(most, value), 0) };
}
