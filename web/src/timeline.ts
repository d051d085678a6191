// The timeline: layers of live memory over events or time, reserved memory above, and one picked moment.
//
// Each column of device pixels shows the event of its share at which most was live, with the layers of that event: the
// column adds up, and no zoom level hides or invents a peak. The least of the share is a line. Layers are written as
// pixels, so a frame costs the same for a thousand events and for a million.

import { Axis, risingTimes, type AxisMode, type View } from "./axis";
import { element, choice, button, fit, colour, showTip, hideTip, rows, type Choice } from "./dom";
import { axisStep, axisText, bytes, count, exact, say } from "./format";
import type { Shown } from "./link";
import type { Extent } from "./pyramid";
import type { By, Series } from "./series";

const LEFT = 64;
const RIGHT = 8;
const TOP = 8;
const BOTTOM = 22;

export class Timeline {
  readonly root = element("div", { class: "timeline" });
  readonly axis: Axis;
  private by: By = "category";
  private event: number;
  private readonly byChoice: Choice<By>;
  private readonly axisChoice: Choice<AxisMode>;
  private readonly plot = element("div", { class: "plot", tabindex: 0, role: "application" });
  private readonly ground = element("canvas", { "aria-hidden": "true" });
  private readonly data = element("canvas", { "aria-hidden": "true" });
  private readonly overlay = element("canvas", { "aria-hidden": "true" });
  private readonly legend = element("ul", { class: "legend" });
  private hover: number | null = null; // x in the plot
  private drag: { from: number; to: number; view: View; isPan: boolean } | null = null;
  private frame = 0;
  private isStale = true;
  private layers = new Float64Array(0);
  private colours: number[] = [];
  private pixels: ImageData | null = null;

  /** Calls back after each change of what is shown, whoever asked for it. */
  constructor(
    readonly series: Series,
    private readonly onChange: () => void,
  ) {
    const { recording } = series;
    this.axis = new Axis(recording.events, risingTimes(recording.times));
    this.event = recording.header.instant.event ?? 0;
    this.byChoice = choice(say("by"), [["category", say("category")], ["site", say("site")]], (by) => this.set({ by }));
    this.axisChoice = choice(say("axis"), [["events", say("events")], ["time", say("time")]], (axis) => this.set({ axis }));
    this.plot.setAttribute("aria-label", say("timeline-name"));
    this.plot.append(this.ground, this.data, this.overlay);
    this.root.append(this.makeTools(), this.plot, this.legend, element("p", { class: "help" }, say("help")));
    this.listen();
    new ResizeObserver(() => this.redraw()).observe(this.plot);
    this.setLayers();
    this.showChoices();
  }

  get shown(): Shown {
    return { event: this.event, by: this.by, axis: this.axis.mode };
  }

  /** The one way in which what is shown changes: buttons, keys, pointer and links come here. */
  set({ event, by, axis }: Partial<Shown>): void {
    if (axis !== undefined && axis !== this.axis.mode && this.axis.times) {
      this.axis.setMode(axis);
      this.redraw();
    }
    if (by !== undefined && by !== this.by) {
      this.by = by;
      this.setLayers();
      this.redraw();
    }
    if (event !== undefined) this.goTo(event);
    this.showChoices();
    this.onChange();
  }

  private showChoices(): void {
    this.byChoice.show(this.by);
    this.axisChoice.show(this.axis.mode);
  }

  private goTo(event: number): void {
    this.event = Math.max(0, Math.min(event, this.series.recording.events - 1));
    const at = this.axis.position(this.event);
    const { begin, end } = this.axis.view;
    if (at < begin || at >= end) this.show({ begin: at - (end - begin) / 2, end: at + (end - begin) / 2 });
    this.requestFrame();
  }

  /** What a column shows, for tests: the most of every column, as drawn. */
  shownMost(): number {
    const extent: Extent = { least: 0, most: 0, mostAt: 0 };
    let most = 0;
    const columns = this.columnCount();
    for (let column = 0; column < columns; column++) {
      const [begin, end] = this.axis.eventsOf(column, columns);
      this.series.pyramid.extent(begin, end, extent);
      most = Math.max(most, extent.most);
    }
    return most;
  }

  zoomToEvents(begin: number, end: number): void {
    this.axis.showEvents(begin, end);
    this.redraw();
  }

  pick(event: number): void {
    this.set({ event });
  }

  redraw(): void {
    this.isStale = true;
    this.requestFrame();
  }

  // ---- tools and input

  private makeTools(): HTMLElement {
    const { header } = this.series.recording;
    const tools = element("div", { class: "tools" });
    tools.append(this.byChoice.root);
    if (this.axis.times) tools.append(this.axisChoice.root);
    const peak = header.peak_allocated.event;
    tools.append(element("span", { class: "gap" }));
    if (peak !== null) tools.append(button(say("peak"), () => this.pick(peak)));
    if (header.instant.failed) tools.append(button(say("failure"), () => this.pick(header.instant.event ?? 0)));
    const minus = button("\u2212", () => this.zoom(2));
    const plus = button("+", () => this.zoom(0.5));
    minus.setAttribute("aria-label", say("zoom-out"));
    plus.setAttribute("aria-label", say("zoom-in"));
    tools.append(minus, plus, button(say("all"), () => this.show(this.axis.whole())));
    return tools;
  }

  private listen(): void {
    const plot = this.plot;
    const at = (event: PointerEvent | WheelEvent) => event.clientX - plot.getBoundingClientRect().left;
    plot.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.drag = { from: at(event), to: at(event), view: { ...this.axis.view }, isPan: event.shiftKey };
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", (event) => {
      this.hover = at(event);
      if (this.drag) {
        this.drag.to = this.hover;
        if (this.drag.isPan) this.pan(this.drag);
      }
      this.requestFrame();
      this.showHover(event);
    });
    plot.addEventListener("pointerup", () => this.endDrag());
    plot.addEventListener("pointercancel", () => (this.drag = null));
    plot.addEventListener("pointerleave", () => {
      this.hover = null;
      hideTip();
      this.requestFrame();
    });
    plot.addEventListener("dblclick", () => this.show(this.axis.whole()));
    plot.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey && document.activeElement !== plot) return;
        event.preventDefault();
        this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.axisAt(at(event)));
      },
      { passive: false },
    );
    plot.addEventListener("keydown", (event) => this.onKey(event));
  }

  private onKey(event: KeyboardEvent): void {
    const { header, events } = this.series.recording;
    const [begin, end] = this.axis.eventsInView();
    const step = event.shiftKey ? Math.max(1, Math.round((end - begin) / 20)) : 1;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.pick(this.event - step),
      ArrowRight: () => this.pick(this.event + step),
      Home: () => this.pick(0),
      End: () => this.pick(events - 1),
      "+": () => this.zoom(0.5, this.axis.position(this.event)),
      "=": () => this.zoom(0.5, this.axis.position(this.event)),
      "-": () => this.zoom(2, this.axis.position(this.event)),
      "0": () => this.show(this.axis.whole()),
      p: () => this.pick(header.peak_allocated.event ?? 0),
      f: () => header.instant.failed && this.pick(header.instant.event ?? 0),
    };
    const action = actions[event.key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  }

  private endDrag(): void {
    const drag = this.drag;
    this.drag = null;
    if (!drag || drag.isPan) return;
    if (Math.abs(drag.to - drag.from) < 4) {
      this.pick(this.axis.eventAt(this.axisAt(drag.from)));
      return;
    }
    const [a, b] = [this.axisAt(drag.from), this.axisAt(drag.to)];
    this.show({ begin: Math.min(a, b), end: Math.max(a, b) });
  }

  private pan(drag: { from: number; to: number; view: View }): void {
    const width = drag.view.end - drag.view.begin;
    const moved = ((drag.from - drag.to) / this.plotWidth()) * width;
    this.show({ begin: drag.view.begin + moved, end: drag.view.end + moved });
  }

  private zoom(factor: number, around?: number): void {
    this.axis.zoom(factor, around);
    this.redraw();
  }

  private show(view: View): void {
    this.axis.show(view);
    this.redraw();
  }

  // ---- axis

  private plotWidth(): number {
    return Math.max(1, this.plot.clientWidth - LEFT - RIGHT);
  }

  private columnCount(): number {
    return Math.round(this.plotWidth() * Math.min(window.devicePixelRatio || 1, 2));
  }

  private axisAt(x: number): number {
    return this.axis.at((x - LEFT) / this.plotWidth());
  }

  private x(at: number): number {
    return LEFT + this.axis.share(at) * this.plotWidth();
  }

  // ---- drawing

  private setLayers(): void {
    const { header } = this.series.recording;
    const names: [string, string][] =
      this.by === "category"
        ? header.categories.map((each) => [each.name, each.colour])
        : siteNames(header.site_layers, header.sites, header.site_colours);
    this.layers = new Float64Array(this.series.layerCount(this.by));
    this.colours = names.map(([, hex]) => pixelOf(hex));
    this.names = names;
    const used = this.usedLayers();
    this.legend.replaceChildren(
      ...names
        .filter((_, i) => used[i])
        .map(([name, hex]) => {
          const key = element("b", { class: "key" });
          key.style.background = hex;
          return element("li", { title: name }, key, name);
        }),
    );
  }
  private names: [string, string][] = [];

  /** Layers that ever hold something, as far as their kinds tell. */
  private usedLayers(): boolean[] {
    const { header, kinds } = this.series.recording;
    const used: boolean[] = new Array(this.names.length).fill(false);
    for (let kind = 0; kind < kinds.count; kind++) {
      if (this.by === "site") used[header.site_layers[kinds.site[kind]]] = true;
      else {
        used[kinds.category[kind]] = true;
        if (kinds.size[kind] !== kinds.requested[kind]) used[used.length - 1] = true;
      }
    }
    return used;
  }

  private requestFrame(): void {
    if (this.frame === 0) {
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.draw();
      });
    }
  }

  private topBytes(): number {
    return Math.max(this.tallest, this.mostBytes()) * 1.05;
  }

  /** The most that has to have room. */
  mostBytes(): number {
    const { header } = this.series.recording;
    return Math.max(this.series.mostReserved, header.capacity.high, header.peak_allocated.bytes, 1);
  }

  /** Two timelines are compared on one scale. */
  shareScale(most: number): void {
    this.tallest = most;
    this.redraw();
  }
  private tallest = 0;

  draw(): void {
    const height = this.plot.clientHeight - TOP - BOTTOM;
    if (height <= 0 || this.series.recording.events === 0) return;
    if (this.isStale) {
      this.isStale = false;
      this.drawGround(height);
      this.drawData(height);
    }
    this.drawOverlay(height);
  }

  private y(value: number, height: number): number {
    return TOP + height * (1 - value / this.topBytes());
  }

  private drawGround(height: number): void {
    const { context, width } = fit(this.ground);
    const { recording } = this.series;
    const top = this.topBytes();
    context.fillStyle = colour("--raised");
    const ends = recording.steps.end;
    const [first, last] = this.axis.eventsInView();
    for (let i = 1; i < ends.length; i += 2) {
      if (ends[i] <= first || ends[i - 1] >= last) continue;
      const begin = Math.max(this.x(this.axis.position(ends[i - 1])), LEFT);
      const end = Math.min(this.x(this.axis.position(ends[i])), width - RIGHT);
      if (end - begin > 2) context.fillRect(begin, TOP, end - begin, height);
    }
    context.strokeStyle = colour("--rule");
    context.fillStyle = colour("--soft");
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    const step = axisStep(top, 5);
    for (let value = 0; value <= top; value += step) {
      const y = Math.round(this.y(value, height)) + 0.5;
      context.beginPath();
      context.moveTo(LEFT, y);
      context.lineTo(width - RIGHT, y);
      context.stroke();
      context.fillText(axisText(value, top), LEFT - 6, y + 4);
    }
    const label = (event: number) => this.axisLabel(event);
    context.textAlign = "left";
    context.fillText(label(first), LEFT, TOP + height + 16);
    context.textAlign = "right";
    context.fillText(label(last - 1), width - RIGHT, TOP + height + 16);
  }

  private axisLabel(event: number): string {
    const name = say("event", { event: count(event) });
    if (this.axis.mode !== "time" || !this.axis.times) return name;
    return `${(this.axis.times[event] / 1e6).toFixed(3)} s`;
  }

  private drawData(height: number): void {
    const { context, scale } = fit(this.data);
    const columns = this.columnCount();
    const rowsHigh = Math.round(height * scale);
    if (!this.pixels || this.pixels.width !== columns || this.pixels.height !== rowsHigh) {
      this.pixels = context.createImageData(columns, rowsHigh);
    }
    const image = new Uint32Array(this.pixels.data.buffer);
    image.fill(0);
    const perByte = rowsHigh / this.topBytes();
    const extent: Extent = { least: 0, most: 0, mostAt: 0 };
    const least = new Float64Array(columns);
    const reserved = new Float64Array(columns);
    for (let column = 0; column < columns; column++) {
      const [begin, end] = this.axis.eventsOf(column, columns);
      this.series.pyramid.extent(begin, end, extent);
      least[column] = extent.least;
      reserved[column] = this.mostReserved(begin, end);
      this.series.layersAt(extent.mostAt, this.by, this.layers);
      let sum = 0;
      let row = rowsHigh;
      for (let layer = 0; layer < this.layers.length; layer++) {
        sum += this.layers[layer];
        const top = Math.max(0, rowsHigh - Math.round(sum * perByte));
        for (; row > top; row--) image[(row - 1) * columns + column] = this.colours[layer];
      }
    }
    context.putImageData(this.pixels, Math.round(LEFT * scale), Math.round(TOP * scale));
    this.line(context, least, height, colour("--ground"), 0.55);
    this.line(context, reserved, height, colour("--ink"), 1);
    this.drawMarks(context, height);
  }

  private mostReserved(begin: number, end: number): number {
    const { reservedEvent, reservedBytes } = this.series;
    let index = this.series.reservedIndex(begin);
    let most = reservedBytes[index];
    for (index += 1; index < reservedEvent.length && reservedEvent[index] < end; index++) {
      most = Math.max(most, reservedBytes[index]);
    }
    return most;
  }

  private line(context: CanvasRenderingContext2D, values: Float64Array, height: number, style: string, alpha: number): void {
    context.strokeStyle = style;
    context.globalAlpha = alpha;
    context.lineWidth = 1;
    context.beginPath();
    const wide = this.plotWidth() / values.length;
    for (let column = 0; column < values.length; column++) {
      const y = this.y(values[column], height);
      context.lineTo(LEFT + column * wide, y);
      context.lineTo(LEFT + (column + 1) * wide, y);
    }
    context.stroke();
    context.globalAlpha = 1;
  }

  private drawMarks(context: CanvasRenderingContext2D, height: number): void {
    const { header } = this.series.recording;
    const bad = colour("--bad");
    const ink = colour("--ink");
    context.font = "12px system-ui, sans-serif";
    if (header.capacity.high > 0) {
      const y = this.y(header.capacity.high, height);
      context.strokeStyle = bad;
      context.setLineDash([5, 4]);
      context.beginPath();
      context.moveTo(LEFT, y);
      context.lineTo(LEFT + this.plotWidth(), y);
      context.stroke();
      context.setLineDash([]);
      context.fillStyle = bad;
      context.textAlign = "left";
      const name = say(header.capacity.is_limit ? "limit" : "capacity");
      context.fillText(`${name} ${bytes(header.capacity.high)}`, LEFT + 6, y - 4);
    }
    for (const failure of header.failures) {
      const x = this.x(this.axis.position(failure.event));
      if (x < LEFT || x > LEFT + this.plotWidth()) continue;
      // A library may fail a hundred times while it tries: those are ticks, and the one that counts is a line.
      const isInstant = failure.event === header.instant.event;
      context.strokeStyle = bad;
      context.lineWidth = isInstant ? 1.5 : 1;
      context.beginPath();
      context.moveTo(x, TOP);
      context.lineTo(x, isInstant ? TOP + height : TOP + 7);
      context.stroke();
      if (isInstant) this.text(context, say("failed", { bytes: bytes(failure.size) }), x, TOP + height * 0.42, bad);
    }
    const peak = header.peak_allocated;
    const x = this.x(this.axis.position(peak.event ?? 0));
    if (x >= LEFT && x <= LEFT + this.plotWidth()) {
      const y = this.y(peak.bytes, height);
      context.fillStyle = ink;
      context.beginPath();
      context.moveTo(x, y - 1);
      context.lineTo(x - 5, y - 9);
      context.lineTo(x + 5, y - 9);
      context.fill();
      this.text(context, say("peak-mark", { bytes: bytes(peak.bytes) }), x, y - 5, ink);
    }
  }

  private text(context: CanvasRenderingContext2D, text: string, x: number, y: number, style: string): void {
    const isRight = x > LEFT + this.plotWidth() * 0.7;
    context.textAlign = isRight ? "right" : "left";
    const at = x + (isRight ? -9 : 9);
    context.lineWidth = 3;
    context.strokeStyle = colour("--ground");
    context.strokeText(text, at, y);
    context.lineWidth = 1;
    context.fillStyle = style;
    context.fillText(text, at, y);
  }

  private drawOverlay(height: number): void {
    const { context } = fit(this.overlay);
    const accent = colour("--accent");
    const atMoment = this.x(this.axis.position(this.event) + (this.axis.mode === "events" ? 0.5 : 0));
    if (atMoment >= LEFT && atMoment <= LEFT + this.plotWidth()) {
      context.strokeStyle = accent;
      context.lineWidth = 2;
      context.beginPath();
      context.moveTo(atMoment, TOP);
      context.lineTo(atMoment, TOP + height);
      context.stroke();
    }
    if (this.drag && !this.drag.isPan) {
      context.fillStyle = accent;
      context.globalAlpha = 0.15;
      context.fillRect(Math.min(this.drag.from, this.drag.to), TOP, Math.abs(this.drag.to - this.drag.from), height);
      context.globalAlpha = 1;
    }
    if (this.hover !== null && this.hover >= LEFT) {
      context.strokeStyle = colour("--soft");
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(Math.round(this.hover) + 0.5, TOP);
      context.lineTo(Math.round(this.hover) + 0.5, TOP + height);
      context.stroke();
    }
  }

  /** The event that the column under the pointer shows: that at which most was live. */
  private showHover(pointer: PointerEvent): void {
    if (this.hover === null || this.hover < LEFT) return hideTip();
    const columns = this.columnCount();
    const column = Math.min(Math.floor(((this.hover - LEFT) / this.plotWidth()) * columns), columns - 1);
    const [begin, end] = this.axis.eventsOf(Math.max(column, 0), columns);
    const extent: Extent = { least: 0, most: 0, mostAt: 0 };
    this.series.pyramid.extent(begin, end, extent);
    const layers = new Float64Array(this.layers.length);
    this.series.layersAt(extent.mostAt, this.by, layers);
    const shown = [...layers.keys()].filter((i) => layers[i] > 0).sort((a, b) => layers[b] - layers[a]);
    const table: [string, string, string?][] = [
      [say("active"), exact(extent.most)],
      [say("reserved"), exact(this.series.reservedAt(extent.mostAt))],
    ];
    if (end - begin > 1) table.push([say("least"), exact(extent.least)]);
    for (const i of shown.slice(0, 8)) table.push([this.names[i][0], exact(layers[i]), this.names[i][1]]);
    showTip(
      pointer.clientX,
      pointer.clientY,
      element("div", { class: "strong" }, `${this.eventName(extent.mostAt)}, ${bytes(extent.most)}`),
      rows(table),
    );
  }

  /** "event 4,711, step 3, forward". */
  eventName(event: number): string {
    const { spans, header } = this.series.recording;
    let name = say("event", { event: count(event) });
    let low = -1;
    for (let step = 1 << 30; step > 0; step >>= 1) {
      if (low + step < spans.begin.length && spans.begin[low + step] <= event) low += step;
    }
    if (low >= 0) name += `, ${say("step", { step: count(spans.step[low]) })}, ${header.phases[spans.phase[low]]}`;
    return name;
  }
}

function siteNames(layerOf: number[], sites: [string, number][], colours: string[]): [string, string][] {
  const names: [string, string][] = colours.map((hex) => [say("other-sites"), hex]);
  layerOf.forEach((layer, site) => {
    if (layer < colours.length - 1) names[layer][0] = sites[site][0] || say("no-frames");
  });
  return names;
}

/** "#rrggbb" as a pixel of ImageData on a little-endian machine. */
function pixelOf(hex: string): number {
  const value = parseInt(hex.slice(1), 16);
  return ((255 << 24) | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}
