// The most that any stretch shows is the most that is in the data: on random series, at random zooms.
import assert from "node:assert/strict";
import test from "node:test";
import { Pyramid } from "../src/pyramid";
import { generator } from "./generator";

test("the extent of any stretch is that of its values", () => {
  const random = generator(7);
  for (const count of [1, 2, 63, 64, 65, 4095, 4096, 4097, 300_000]) {
    const values = Float64Array.from({ length: count }, () => Math.floor(random() * 1e12));
    const pyramid = new Pyramid(values);
    const extent = { least: 0, most: 0, mostAt: 0 };
    for (let round = 0; round < 300; round++) {
      const begin = Math.floor(random() * count);
      const longest = round % 3 === 0 ? count - begin : Math.min(count - begin, 1000);
      const end = begin + 1 + Math.floor(random() * longest);
      pyramid.extent(begin, Math.min(end, count), extent);
      let least = Infinity;
      let most = -Infinity;
      let mostAt = begin;
      for (let i = begin; i < Math.min(end, count); i++) {
        if (values[i] < least) least = values[i];
        if (values[i] > most) (most = values[i]), (mostAt = i);
      }
      assert.deepEqual(extent, { least, most, mostAt }, `${begin} to ${end} of ${count}`);
    }
  }
});

test("of equal peaks the first is named", () => {
  const values = new Float64Array(10_000).fill(5);
  const extent = { least: 0, most: 0, mostAt: -1 };
  new Pyramid(values).extent(100, 9_000, extent);
  assert.equal(extent.mostAt, 100);
});
