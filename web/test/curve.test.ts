import assert from "node:assert/strict";
import { test } from "node:test";
import { departure, type Point } from "../src/curve";

test("a line leaves where it is first above the top, and its most is told", () => {
  const points: Point[] = [[0, 3], [10, 12], [20, 4], [30, 68]];
  assert.deepEqual(departure(points, 10), { event: 10, most: 68 });
  assert.equal(departure(points, 68), null);
  assert.equal(departure([], 1), null);
});
