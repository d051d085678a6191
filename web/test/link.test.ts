import assert from "node:assert/strict";
import { test } from "node:test";
import { hashOf, wantedIn, type Shown } from "../src/link";

const first: Shown = { event: 4711, by: "site", axis: "time" };
const third: Shown = { event: 0, by: "category", axis: "events" };

test("one recording has plain names", () => {
  assert.equal(hashOf([first]), "#event=4711&by=site&axis=time");
});

test("what was written is what is read, for each of several recordings", () => {
  const hash = hashOf([first, undefined, third]);
  assert.deepEqual(wantedIn(hash, 0), first);
  assert.deepEqual(wantedIn(hash, 1), {});
  assert.deepEqual(wantedIn(hash, 2), third);
});

test("what is not ours asks for nothing", () => {
  for (const hash of ["", "#", "#details", "#event=-1", "#event=1.5", "#event=1e3", "#event=", "#by=size&axis=", "#event.1=3"]) {
    assert.deepEqual(wantedIn(hash, 0), {}, hash);
  }
  assert.deepEqual(wantedIn("#event=12&by=nothing", 0), { event: 12 });
});
