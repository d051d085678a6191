// The settings that were replayed, as lines of reserved memory over each other, with what no setting can beat.

import { departure, type Point } from "./curve";
import { button, colour, element, fit } from "./dom";
import { axisStep, axisText, bytes, exact, say } from "./format";
import type { Series } from "./series";

const LEFT = 64;
const TOP = 16; // room for the marks of lines that go beyond
const BOTTOM = 8;

/** A setting is a long word: it may break behind its commas. */
function breakable(conf: string): Node[] {
  return conf.split(/(?<=,)/).flatMap((part) => [document.createTextNode(part), element("wbr")]);
}

export class WhatIf {
  readonly root = element("section", { class: "block what-if" });
  private readonly canvas = element("canvas", { role: "img", "aria-label": say("what-if-name") });
  private readonly legend = element("ul", { class: "legend" });
  private marked = 0; // the best one

  constructor(private readonly series: Series) {
    const plot = element("div", { class: "plot small" }, this.canvas);
    this.root.append(element("h2", {}, say("what-if")), plot, this.legend, this.list());
    new ResizeObserver(() => this.draw()).observe(plot);
  }

  private list(): HTMLElement {
    const list = element("ul", { class: "lines" });
    this.series.recording.header.curves.forEach((curve, i) => {
      const made = button("", () => this.mark(i));
      made.append(
        element("code", {}, ...breakable(curve.conf || say("defaults"))),
        curve.completed
          ? element("span", { class: "number", title: exact(curve.peak_reserved) }, bytes(curve.peak_reserved))
          : element("span", { class: "stops" }, say("stops")),
      );
      made.addEventListener("pointerenter", () => this.mark(i));
      made.addEventListener("focus", () => this.mark(i));
      list.append(element("li", {}, made));
    });
    return list;
  }

  private mark(curve: number): void {
    this.marked = curve;
    this.draw();
  }

  redraw(): void {
    this.draw();
  }

  private draw(): void {
    const { context, width, height } = fit(this.canvas);
    const { header, events } = this.series.recording;
    if (width === 0 || events === 0) return;
    // Lines that leave it at the top are marked there; they must not flatten the others.
    const most = Math.max(this.series.mostReserved, header.capacity.high, header.floor, header.packing) * 1.5;
    const x = (event: number) => LEFT + ((width - LEFT - 8) * event) / events;
    const y = (value: number) => TOP + (height - TOP - BOTTOM) * (1 - value / most);
    context.font = "11px system-ui, sans-serif";
    context.strokeStyle = colour("--rule");
    context.fillStyle = colour("--soft");
    context.textAlign = "right";
    for (let value = 0, step = axisStep(most, 4); value <= most; value += step) {
      context.beginPath();
      context.moveTo(LEFT, Math.round(y(value)) + 0.5);
      context.lineTo(width - 8, Math.round(y(value)) + 0.5);
      context.stroke();
      context.fillText(axisText(value, most), LEFT - 6, y(value) + 4);
    }
    const line = (points: Point[], style: string, wide: number, alpha: number) => {
      context.save();
      context.strokeStyle = style;
      context.lineWidth = wide;
      context.globalAlpha = alpha;
      context.beginPath();
      context.rect(LEFT, TOP, width - LEFT - 8, height - TOP);
      context.clip();
      context.beginPath();
      points.forEach(([at, value], i) => {
        if (i > 0) context.lineTo(x(at), y(points[i - 1][1]));
        context.lineTo(x(at), y(value));
      });
      context.stroke();
      context.restore();
    };
    const pointsOf = (curve: number): Point[] => {
      const { reserved, completed } = header.curves[curve];
      const points = reserved.map((value, i): Point => [header.curve_events[i], value]);
      if (completed && points.length > 0) points.push([events, points[points.length - 1][1]]);
      return points;
    };
    header.curves.forEach((_, i) => i !== this.marked && line(pointsOf(i), colour("--soft"), 1, 0.3));
    const recorded = Array.from(this.series.reservedEvent, (event, i): Point => [Math.max(event, 0), this.series.reservedBytes[i]]);
    recorded.push([events, this.series.reservedAt(events - 1)]);
    line(recorded, colour("--ink"), 1.25, 1);
    if (header.curves.length > 0) line(pointsOf(this.marked), colour("--accent"), 2, 1);
    const leaving = header.curves.map((_, i) => departure(pointsOf(i), most));
    const highest = leaving.reduce((best, each) => (each && each.most > (best?.most ?? 0) ? each : best), null);
    const own = leaving[this.marked] ?? null;
    for (const each of leaving) if (each) this.leave(context, x(each.event), colour("--soft"));
    if (own) this.leave(context, x(own.event), colour("--accent"), own.most);
    else if (highest) this.leave(context, x(highest.event), colour("--soft"), highest.most);
    this.bound(context, say("floor"), header.floor, y, width, true);
    this.bound(context, say("packing"), header.packing, y, width, false);
    const marked = header.curves[this.marked];
    const entries: [string, string][] = [[say("recorded"), "var(--ink)"]];
    if (marked) entries.push([marked.conf || say("defaults"), "var(--accent)"]);
    this.legend.replaceChildren(
      ...entries.map(([name, style]) => {
        const key = element("b", { class: "key" });
        key.style.background = style;
        return element("li", {}, key, name);
      }),
    );
  }

  /** A mark where a line goes out at the top, and how high it goes. */
  private leave(context: CanvasRenderingContext2D, x: number, style: string, most?: number): void {
    context.fillStyle = style;
    context.beginPath();
    context.moveTo(x, TOP - 7);
    context.lineTo(x - 5, TOP + 1);
    context.lineTo(x + 5, TOP + 1);
    context.fill();
    if (most === undefined) return;
    const isRight = x > this.canvas.clientWidth * 0.7;
    context.textAlign = isRight ? "right" : "left";
    context.fillText(say("leaves", { bytes: bytes(most) }), x + (isRight ? -9 : 9), TOP);
  }

  private bound(
    context: CanvasRenderingContext2D,
    name: string,
    value: number,
    y: (value: number) => number,
    width: number,
    isLeft: boolean,
  ): void {
    if (value <= 0) return;
    context.strokeStyle = colour("--good");
    context.setLineDash([5, 4]);
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(LEFT, y(value));
    context.lineTo(width - 8, y(value));
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = colour("--good");
    context.textAlign = isLeft ? "left" : "right";
    context.fillText(`${name} ${bytes(value)}`, isLeft ? LEFT + 6 : width - 10, y(value) - 4);
  }
}
