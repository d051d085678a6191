// What is shown, as the page's address has it: "#event=4711&by=site&axis=time"; of the second recording "event.2=4711".

import type { AxisMode } from "./axis";
import type { By } from "./series";

export interface Shown {
  event: number;
  by: By;
  axis: AxisMode;
}

const suffix = (recording: number) => (recording === 0 ? "" : `.${recording + 1}`);

/** By recording; of those without an entry nothing was chosen. */
export function hashOf(all: (Shown | undefined)[]): string {
  const hash = new URLSearchParams();
  all.forEach((shown, i) => {
    for (const [name, value] of Object.entries(shown ?? {})) hash.set(name + suffix(i), String(value));
  });
  return `#${hash}`;
}

/** What a hash asks of a recording. Names and values that are not ours ask for nothing. */
export function wantedIn(hash: string, recording: number): Partial<Shown> {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const get = (name: keyof Shown) => given.get(name + suffix(recording)) ?? "";
  const wanted: Partial<Shown> = {};
  const event = get("event");
  if (/^\d{1,15}$/.test(event)) wanted.event = Number(event);
  const by = get("by");
  if (by === "site" || by === "category") wanted.by = by;
  const axis = get("axis");
  if (axis === "time" || axis === "events") wanted.axis = axis;
  return wanted;
}
