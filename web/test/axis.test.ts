// Columns of the timeline cover the events in view without a gap, at any zoom, by number and by the clock; so the most
// that they show is the most that is there.
import assert from "node:assert/strict";
import test from "node:test";
import { Axis, risingTimes } from "../src/axis";
import { Pyramid } from "../src/pyramid";
import { generator } from "./generator";

test("the most shown is the most in view, at every zoom and width", () => {
  const random = generator(3);
  for (const events of [1, 2, 9, 1000, 70_000]) {
    const values = Float64Array.from({ length: events }, () => Math.floor(random() * 1e11));
    // Many events share a microsecond, and clocks step back now and then.
    let now = 1e15;
    const times = Float64Array.from({ length: events }, () => (now += Math.floor(random() * 3) - (random() < 0.01 ? 50 : 0)));
    const pyramid = new Pyramid(values);
    const axis = new Axis(events, risingTimes(times));
    for (let round = 0; round < 120; round++) {
      axis.setMode(round % 2 === 0 ? "events" : "time");
      const begin = Math.floor(random() * events);
      axis.showEvents(begin, begin + Math.max(1, Math.floor(random() ** 4 * events)));
      const columns = 1 + Math.floor(random() * 1300);
      const extent = { least: 0, most: 0, mostAt: 0 };
      let shown = 0;
      let next = axis.eventsOf(0, columns)[0];
      for (let column = 0; column < columns; column++) {
        const [first, end] = axis.eventsOf(column, columns);
        assert.ok(first <= next, "no event is left out");
        next = Math.max(next, end);
        pyramid.extent(first, end, extent);
        shown = Math.max(shown, extent.most);
      }
      const [first, last] = axis.eventsInView();
      assert.ok(next >= last);
      assert.equal(shown, values.subarray(first, last).reduce((most, value) => Math.max(most, value), 0));
    }
  }
});

test("the whole is shown whole, and never less than a few events", () => {
  const axis = new Axis(1000, null);
  axis.show({ begin: -500, end: 5000 });
  assert.deepEqual(axis.view, { begin: 0, end: 1000 });
  axis.showEvents(500, 500);
  assert.equal(axis.view.end - axis.view.begin, 8);
  axis.zoom(1e6);
  assert.deepEqual(axis.eventsInView(), [0, 1000]);
});
