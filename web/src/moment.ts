// One moment in detail: the call tree of what was live, the segments, the driver requests, the largest blocks.

import { button, colour, element, fit, hideTip, onWidth, rows, showTip } from "./dom";
import type { Recording } from "./decode";
import { Flame } from "./flame";
import { bytes, count, exact, hex, say } from "./format";
import { driverRequests, freeSpaceFor, isSmallRequest, liveAt, segmentsAt, type DriverRequest, type Segment } from "./segments";
import type { Series } from "./series";

type Tab = "flame" | "segments" | "driver" | "blocks";
const TABS: Tab[] = ["flame", "segments", "driver", "blocks"];
const MOST_SEGMENTS = 48;
const MOST_REQUESTS = 120;
const MOST_BLOCKS = 100;
const ROW = 15;
const LABEL = 150;

export class Moment {
  readonly root = element("div", { class: "moment" });
  private readonly title = element("p", { "aria-live": "polite" });
  private readonly totals = element("p", { class: "dim totals" });
  private readonly panels: Record<Tab, HTMLElement>;
  private readonly tabs = new Map<Tab, HTMLButtonElement>();
  private readonly flame: Flame;
  private readonly recording: Recording;
  private tab: Tab = "flame";
  private event = 0;
  private live: Uint32Array = new Uint32Array(0);
  private readonly stale = new Set<Tab>(TABS);

  constructor(
    private readonly series: Series,
    private readonly name: (event: number) => string,
    private readonly onPick: (event: number) => void,
  ) {
    this.recording = series.recording;
    this.flame = new Flame(this.recording);
    this.panels = { flame: this.flame.root, segments: element("div"), driver: element("div", { class: "scroll" }), blocks: element("div", { class: "scroll" }) };
    const list = element("div", { class: "tools", role: "tablist" });
    for (const tab of TABS) {
      const made = button(say(tab), () => this.choose(tab));
      made.setAttribute("role", "tab");
      this.tabs.set(tab, made);
      list.append(made);
      this.panels[tab].setAttribute("role", "tabpanel");
      this.panels[tab].setAttribute("aria-label", say(tab));
    }
    this.root.append(this.title, this.totals, list, ...TABS.map((tab) => this.panels[tab]));
    onWidth(this.root, () => this.tab === "segments" && this.drawSegments());
    this.choose("flame");
  }

  show(event: number): void {
    this.event = event;
    this.live = liveAt(this.recording, event);
    this.title.textContent = say("moment", {
      event: this.name(event),
      bytes: bytes(this.series.activeAt(event)),
      blocks: count(this.live.length),
    });
    this.title.title = exact(this.series.activeAt(event));
    const { allocated, requested } = this.series.totalsAt(event);
    const parts: [string, number][] = [["reserved", this.series.reservedAt(event)], ["allocated", allocated], ["requested", requested]];
    this.totals.replaceChildren(
      ...parts.flatMap(([name, size], i) => [i > 0 ? ", " : "", element("span", { title: exact(size) }, `${say(name)} ${bytes(size)}`)]),
    );
    for (const tab of TABS) if (tab !== "driver") this.stale.add(tab);
    this.fill();
  }

  private choose(tab: Tab): void {
    this.tab = tab;
    for (const [each, made] of this.tabs) {
      made.setAttribute("aria-selected", String(each === tab));
      this.panels[each].hidden = each !== tab;
    }
    this.fill();
  }

  private fill(): void {
    if (!this.stale.has(this.tab) || !this.root.isConnected) return;
    this.stale.delete(this.tab);
    if (this.tab === "flame") this.flame.show(this.live);
    if (this.tab === "segments") this.drawSegments();
    if (this.tab === "driver") this.listRequests();
    if (this.tab === "blocks") this.listBlocks();
  }

  private siteOf(life: number): string {
    const { lives, kinds, header } = this.recording;
    return header.sites[kinds.site[lives.kind[life]]][0] || say("no-frames");
  }

  // ---- segments

  private drawSegments(): void {
    const segments = segmentsAt(this.recording, this.event, this.live);
    const groups = new Map<string, Segment[]>();
    for (const segment of segments) {
      const name = this.poolName(segment);
      groups.set(name, [...(groups.get(name) ?? []), segment]);
    }
    this.panels.segments.replaceChildren(...[...groups].map(([name, group]) => this.poolMap(name, group)));
    for (const canvas of this.panels.segments.querySelectorAll("canvas")) canvas.dispatchEvent(new Event("draw"));
  }

  private poolName(segment: Segment): string {
    const { header } = this.recording;
    const values = {
      class: say(segment.isSmall ? "small" : "large"),
      stream: count(header.streams[segment.stream] ?? 0),
      pool: (header.pools[segment.pool] ?? [0, 0]).join(","),
    };
    return say(segment.pool === 0 ? "pool" : "private", values);
  }

  /** Segments that live blocks pin most come first: free bytes that nobody can give back. */
  private poolMap(name: string, segments: Segment[]): HTMLElement {
    const harm = (segment: Segment) => (segment.free < segment.size ? segment.free : 0);
    segments.sort((a, b) => harm(b) - harm(a) || b.size - a.size);
    const shown = segments.slice(0, MOST_SEGMENTS);
    const sum = (of: (segment: Segment) => number) => segments.reduce((total, each) => total + of(each), 0);
    const line = say("segment-line", {
      free: bytes(sum((each) => each.free)),
      size: bytes(sum((each) => each.size)),
      count: count(segments.length),
      pinned: bytes(sum(harm)),
    });
    const canvas = element("canvas", { role: "img", "aria-label": `${name}: ${line}` });
    canvas.style.height = `${shown.length * ROW}px`;
    canvas.addEventListener("draw", () => this.paint(canvas, shown));
    canvas.addEventListener("pointermove", (event) => this.tipFor(canvas, shown, event));
    canvas.addEventListener("pointerleave", hideTip);
    const box = element("div", { class: "pool" }, element("h3", {}, name), element("p", { class: "dim" }, line), canvas);
    if (segments.length > shown.length) box.append(element("p", { class: "dim" }, `+ ${count(segments.length - shown.length)}`));
    return box;
  }

  private paint(canvas: HTMLCanvasElement, segments: Segment[]): void {
    const { context, width } = fit(canvas);
    const { lives, kinds, header } = this.recording;
    const largest = segments.reduce((most, each) => Math.max(most, each.size), 1);
    context.font = "11px system-ui, sans-serif";
    segments.forEach((segment, row) => {
      const top = row * ROW;
      const scale = (width - LABEL) / largest;
      context.fillStyle = colour("--soft");
      context.textAlign = "right";
      context.fillText(`${bytes(segment.free)} / ${bytes(segment.size)}`, LABEL - 8, top + 11);
      context.fillStyle = colour("--rule");
      context.fillRect(LABEL, top + 1, Math.max(segment.size * scale, 1), ROW - 3);
      for (const piece of segment.pieces) {
        if (piece.life < 0) continue;
        const isPending = lives.freeRequested[piece.life] <= this.event;
        context.fillStyle = header.categories[kinds.category[lives.kind[piece.life]]].colour;
        context.globalAlpha = isPending ? 0.5 : 1;
        const left = LABEL + (piece.address - segment.address) * scale;
        const wide = piece.size * scale;
        context.fillRect(left, top + 1, Math.max(wide - (wide > 4 ? 0.5 : 0), 0.5), ROW - 3);
        context.globalAlpha = 1;
      }
    });
  }

  private tipFor(canvas: HTMLCanvasElement, segments: Segment[], event: PointerEvent): void {
    const box = canvas.getBoundingClientRect();
    const segment = segments[Math.floor((event.clientY - box.top) / ROW)];
    if (!segment) return hideTip();
    const { lives, kinds, header } = this.recording;
    const largest = segments.reduce((most, each) => Math.max(most, each.size), 1);
    const address = segment.address + ((event.clientX - box.left - LABEL) / (box.width - LABEL)) * largest;
    const piece = segment.pieces.find((each) => address >= each.address && address < each.address + each.size);
    const about = say("segment-tip", { address: hex(segment.address), size: bytes(segment.size), free: exact(segment.free) });
    if (!piece) return showTip(event.clientX, event.clientY, about);
    if (piece.life < 0) {
      const free = say("free-tip", { size: exact(piece.size), address: hex(piece.address) });
      return showTip(event.clientX, event.clientY, free, element("div", { class: "dim" }, about));
    }
    const born = lives.begin[piece.life];
    const text = say("block-tip", {
      size: exact(piece.size),
      address: hex(piece.address),
      site: this.siteOf(piece.life),
      category: header.categories[kinds.category[lives.kind[piece.life]]].name,
      event: born < 0 ? say("start") : count(born),
      age: count(this.event - Math.max(born, 0)),
    });
    const parts: Node[] = [element("div", {}, text), element("div", { class: "dim" }, about), this.stackOf(piece.life)];
    if (lives.freeRequested[piece.life] <= this.event) parts.unshift(element("div", { class: "warn" }, say("pending-tip")));
    showTip(event.clientX, event.clientY, ...parts);
  }

  /** The innermost frames of a block's stack. */
  private stackOf(life: number): HTMLElement {
    const { lives, kinds, header, nodes, stackNode } = this.recording;
    const lines: [string, string][] = [];
    let node = stackNode[kinds.stack[lives.kind[life]]];
    for (; node !== 0 && lines.length < 8; node = nodes.parent[node]) {
      const [name, file, line] = header.frames[nodes.frame[node]];
      lines.push([name, line > 0 ? `${file.split("/").pop()}:${line}` : ""]);
    }
    return rows(lines);
  }

  // ---- driver requests

  private listRequests(): void {
    const all = driverRequests(this.recording);
    const shown = [...all].sort((a, b) => Number(b.isRefused) - Number(a.isRefused) || b.size - a.size).slice(0, MOST_REQUESTS);
    shown.sort((a, b) => a.event - b.event);
    const heads = ["driver-event", "driver-asked", "driver-for", "driver-usable", "driver-largest", "driver-other", "driver-why"];
    const body = element("tbody");
    for (const request of shown) body.append(this.requestRow(request));
    const table = element(
      "table",
      {},
      element("thead", {}, element("tr", {}, ...heads.map((head, i) => element("th", { class: i < 6 ? "number" : "" }, say(head))))),
      body,
    );
    this.panels.driver.replaceChildren(table);
    if (all.length > shown.length) {
      const text = say("more-driver", { count: count(shown.length), total: count(all.length) });
      this.panels.driver.append(element("p", { class: "dim" }, text));
    }
  }

  private requestRow(request: DriverRequest): HTMLElement {
    const before = request.event - 1;
    const segments = segmentsAt(this.recording, before, liveAt(this.recording, before));
    const space = freeSpaceFor(segments, request.stream, request.pool, isSmallRequest(request.wanted || request.size));
    const elsewhere = space.otherClass + space.otherStream + space.otherPool;
    const why = space.usable === 0 ? "why-none" : space.largest < request.wanted ? "why-small" : "why-fits";
    const cell = (size: number) => element("td", { class: "number", title: exact(size) }, bytes(size));
    const go = button(count(request.event), () => this.onPick(request.event));
    return element(
      "tr",
      { class: request.isRefused ? "bad" : "" },
      element("td", { class: "number" }, go),
      request.isRefused ? element("td", { class: "number" }, say("refused")) : cell(request.size),
      cell(request.wanted),
      cell(space.usable),
      cell(space.largest),
      cell(elsewhere),
      element("td", {}, say(why)),
    );
  }

  // ---- blocks

  private listBlocks(): void {
    const { lives, kinds, header } = this.recording;
    const sizeOf = (life: number) => kinds.size[lives.kind[life]];
    const largest = Array.from(this.live).sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, MOST_BLOCKS);
    const body = element("tbody");
    for (const life of largest) {
      const kind = lives.kind[life];
      const born = lives.begin[life];
      body.append(
        element(
          "tr",
          {},
          element("td", { class: "number", title: exact(kinds.size[kind]) }, bytes(kinds.size[kind])),
          element("td", { class: "number" }, born < 0 ? say("start") : count(this.event - born)),
          element("td", {}, header.categories[kinds.category[kind]].name),
          element("td", {}, this.siteOf(life)),
          element("td", { class: "dim" }, header.reasons[kinds.reason[kind]]),
        ),
      );
    }
    const heads = ["block-size", "block-age", "block-category", "block-site", "block-reason"];
    const head = element("tr", {}, ...heads.map((each, i) => element("th", { class: i < 2 ? "number" : "" }, say(each))));
    this.panels.blocks.replaceChildren(element("table", {}, element("thead", {}, head), body));
  }
}
