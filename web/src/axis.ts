// Where events stand on the timeline: by their number or by the clock, and which of them a column of pixels covers.

const FEWEST_EVENTS = 8;
const FEWEST_US = 2;

export type AxisMode = "events" | "time";

/** A stretch of the axis, half-open: events, or microseconds since the first event. */
export interface View {
  begin: number;
  end: number;
}

export class Axis {
  mode: AxisMode = "events";
  view: View;

  /** `times` never goes back (see risingTimes); null: the recording has none. */
  constructor(
    readonly events: number,
    readonly times: Float64Array | null,
  ) {
    this.view = this.whole();
  }

  whole(): View {
    if (this.mode === "time" && this.times) return { begin: 0, end: Math.max(1, this.times[this.events - 1] + 1) };
    return { begin: 0, end: Math.max(this.events, 1) };
  }

  /** Kept within the whole, and no narrower than a few events. */
  show(view: View): void {
    const whole = this.whole();
    const fewest = Math.min(this.mode === "events" ? FEWEST_EVENTS : FEWEST_US, whole.end);
    const width = Math.min(Math.max(view.end - view.begin, fewest), whole.end);
    const middle = (view.begin + view.end) / 2;
    const begin = Math.min(Math.max(middle - width / 2, 0), whole.end - width);
    this.view = { begin, end: begin + width };
  }

  showEvents(begin: number, end: number): void {
    this.show({ begin: this.position(begin), end: this.position(end) });
  }

  /** By a factor around a place that stays where it is. */
  zoom(factor: number, around = (this.view.begin + this.view.end) / 2): void {
    const { begin, end } = this.view;
    this.show({ begin: around - (around - begin) * factor, end: around + (end - around) * factor });
  }

  /** The same events, on the other axis. */
  setMode(mode: AxisMode): void {
    const [begin, end] = this.eventsInView();
    this.mode = mode;
    this.showEvents(begin, end);
  }

  /** 0 to 1 over the view. */
  share(at: number): number {
    return (at - this.view.begin) / (this.view.end - this.view.begin);
  }

  at(share: number): number {
    return this.view.begin + Math.min(Math.max(share, 0), 1) * (this.view.end - this.view.begin);
  }

  /** Where an event stands. */
  position(event: number): number {
    return this.mode === "time" && this.times ? this.times[Math.min(event, this.times.length - 1)] : event;
  }

  /** The event at a place: the last that has happened there. */
  eventAt(at: number): number {
    if (this.mode !== "time" || !this.times) return Math.min(Math.max(Math.floor(at), 0), this.events - 1);
    let low = 0;
    let high = this.events - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.times[middle] <= at) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  eventsInView(): [number, number] {
    return [this.eventAt(this.view.begin), Math.min(this.eventAt(this.view.end) + 1, this.events)];
  }

  /** Events [begin, end) of a column: those in it, or the one that holds there. Columns leave no event out. */
  eventsOf(column: number, columns: number): [number, number] {
    const width = this.view.end - this.view.begin;
    const begin = this.eventAt(this.view.begin + (width * column) / columns);
    const isLast = column + 1 === columns;
    const next = this.eventAt(isLast ? this.view.end : this.view.begin + (width * (column + 1)) / columns);
    return [begin, Math.max(begin + 1, isLast ? next + 1 : next)];
  }
}

/** Microseconds since the first event; clocks that step back stand still. */
export function risingTimes(times: Float64Array | null): Float64Array | null {
  if (!times || times.length === 0) return null;
  const rising = new Float64Array(times.length);
  let latest = times[0];
  for (let i = 0; i < times.length; i++) {
    latest = Math.max(latest, times[i]);
    rising[i] = latest - times[0];
  }
  return rising;
}
