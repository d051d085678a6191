// What was live after each event, in total and by layer. At every event the layers sum to the active bytes.

import { NEVER, type Recording } from "./decode";
import { Pyramid } from "./pyramid";

export type By = "category" | "site";

const STRIDE = 512; // events between two stored states of the layers

/** Layer sums at any event: the stored state before it, and the few events since. */
class Layers {
  readonly count: number;
  private readonly states: Float64Array;
  private readonly now: Float64Array;

  constructor(
    private readonly recording: Recording,
    private readonly change: Int32Array,
    private readonly by: By,
  ) {
    const { header, lives } = recording;
    this.count = by === "category" ? header.categories.length : header.site_colours.length;
    this.now = new Float64Array(this.count);
    for (let life = 0; life < lives.count && lives.begin[life] < 0; life++) this.apply(life, 1, this.now);
    const blocks = Math.ceil(recording.events / STRIDE);
    this.states = new Float64Array(Math.max(blocks, 1) * this.count);
    for (let block = 0; block < blocks; block++) {
      this.states.set(this.now, block * this.count);
      const end = Math.min((block + 1) * STRIDE, recording.events);
      for (let event = block * STRIDE; event < end; event++) this.step(event, this.now);
    }
  }

  /** Right after `event`; -1 is before the first one. */
  at(event: number, into: Float64Array): void {
    const block = Math.max(Math.floor(event / STRIDE), 0);
    for (let i = 0; i < this.count; i++) into[i] = this.states[block * this.count + i];
    for (let e = block * STRIDE; e <= event; e++) this.step(e, into);
  }

  private step(event: number, into: Float64Array): void {
    const change = this.change[event];
    if (change > 0) this.apply(change - 1, 1, into);
    else if (change < 0) this.apply(-change - 1, -1, into);
  }

  private apply(life: number, sign: number, into: Float64Array): void {
    const { kinds, lives, header } = this.recording;
    const kind = lives.kind[life];
    if (this.by === "site") {
      into[header.site_layers[kinds.site[kind]]] += sign * kinds.size[kind];
      return;
    }
    into[kinds.category[kind]] += sign * kinds.requested[kind];
    into[this.count - 1] += sign * (kinds.size[kind] - kinds.requested[kind]); // the rounding
  }
}

export class Series {
  readonly active: Float64Array; // after each event
  readonly pyramid: Pyramid;
  readonly reservedEvent: Int32Array; // where it changes; the first entry is -1, before the first event
  readonly reservedBytes: Float64Array; // from there on
  readonly mostReserved: number;
  private readonly change: Int32Array; // by event: life + 1 that begins, -(life + 1) that ends, 0
  private readonly layers: Partial<Record<By, Layers>> = {};
  private readonly startActive: number;

  constructor(readonly recording: Recording) {
    const { lives, kinds, events, driver } = recording;
    this.change = new Int32Array(events);
    let active = 0;
    for (let life = 0; life < lives.count; life++) {
      if (lives.begin[life] >= 0) this.change[lives.begin[life]] = life + 1;
      else active += kinds.size[lives.kind[life]];
      if (lives.freeCompleted[life] !== NEVER) this.change[lives.freeCompleted[life]] = -(life + 1);
    }
    this.startActive = active;
    this.active = new Float64Array(events);
    for (let event = 0; event < events; event++) {
      const change = this.change[event];
      if (change > 0) active += kinds.size[lives.kind[change - 1]];
      else if (change < 0) active -= kinds.size[lives.kind[-change - 1]];
      this.active[event] = active;
    }
    this.pyramid = new Pyramid(this.active);

    const at = [-1];
    const bytes = [0];
    let reserved = 0;
    for (let i = 0; i < driver.count; i++) {
      reserved += driver.gain[i] ? driver.size[i] : -driver.size[i];
      if (at[at.length - 1] === driver.event[i]) bytes[bytes.length - 1] = reserved;
      else at.push(driver.event[i]), bytes.push(reserved);
    }
    this.reservedEvent = Int32Array.from(at);
    this.reservedBytes = Float64Array.from(bytes);
    this.mostReserved = bytes.reduce((most, each) => Math.max(most, each), 0);
  }

  activeAt(event: number): number {
    return event < 0 ? this.startActive : this.active[event];
  }

  reservedAt(event: number): number {
    return this.reservedBytes[this.reservedIndex(event)];
  }

  /** The last change at or before the event. */
  reservedIndex(event: number): number {
    let low = 0;
    let high = this.reservedEvent.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.reservedEvent[middle] <= event) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  layerCount(by: By): number {
    return this.layersOf(by).count;
  }

  layersAt(event: number, by: By, into: Float64Array): void {
    this.layersOf(by).at(event, into);
  }

  private layersOf(by: By): Layers {
    return (this.layers[by] ??= new Layers(this.recording, this.change, by));
  }

  /** Allocated and requested bytes too, for one event: a walk over all lives. */
  totalsAt(event: number): { active: number; allocated: number; requested: number; blocks: number } {
    const { lives, kinds } = this.recording;
    const totals = { active: 0, allocated: 0, requested: 0, blocks: 0 };
    for (let life = 0; life < lives.count; life++) {
      if (lives.begin[life] > event) break;
      if (lives.freeCompleted[life] <= event) continue;
      const kind = lives.kind[life];
      totals.active += kinds.size[kind];
      totals.requested += kinds.requested[kind];
      totals.blocks += 1;
      if (lives.freeRequested[life] > event) totals.allocated += kinds.size[kind];
    }
    return totals;
  }
}
