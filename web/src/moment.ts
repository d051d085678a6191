// One moment in detail: the call tree of what was live, the segments, the driver requests, the largest blocks.

import { button, element, onWidth } from "./dom";
import type { Recording } from "./decode";
import { Flame } from "./flame";
import { bytes, count, exact, say } from "./format";
import { SegmentMap, siteOf } from "./segment_map";
import { driverRequests, freeSpaceFor, isSmallRequest, liveAt, segmentsAt, type DriverRequest, type Segment } from "./segments";
import type { Series } from "./series";

type Tab = "flame" | "segments" | "driver" | "blocks";
const TABS: Tab[] = ["flame", "segments", "driver", "blocks"];
const MOST_REQUESTS = 120;
const MOST_BLOCKS = 100;
let moments = 0; // in the page

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
    this.root.append(this.title, this.totals, this.makeTabs(), ...TABS.map((tab) => this.panels[tab]));
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

  private makeTabs(): HTMLElement {
    const list = element("div", { class: "tools", role: "tablist" });
    const prefix = `moment-${++moments}`;
    for (const tab of TABS) {
      const made = button(say(tab), () => this.choose(tab));
      const panel = this.panels[tab];
      Object.assign(made, { id: `${prefix}-tab-${tab}`, role: "tab" });
      Object.assign(panel, { id: `${prefix}-${tab}`, role: "tabpanel" });
      made.setAttribute("aria-controls", panel.id);
      panel.setAttribute("aria-labelledby", made.id);
      this.tabs.set(tab, made);
      list.append(made);
    }
    list.addEventListener("keydown", (event) => this.onTabKey(event));
    return list;
  }

  /** Only the chosen tab is in the order of Tab; arrows go to the others, round the ends. */
  private onTabKey(event: KeyboardEvent): void {
    const at = TABS.indexOf(this.tab);
    const last = TABS.length - 1;
    const next = { ArrowLeft: at === 0 ? last : at - 1, ArrowRight: at === last ? 0 : at + 1, Home: 0, End: last }[event.key];
    if (next === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.choose(TABS[next]);
    this.tabs.get(this.tab)!.focus();
  }

  private choose(tab: Tab): void {
    this.tab = tab;
    for (const [each, made] of this.tabs) {
      made.setAttribute("aria-selected", String(each === tab));
      made.tabIndex = each === tab ? 0 : -1;
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

  // ---- segments

  private drawSegments(): void {
    const segments = segmentsAt(this.recording, this.event, this.live);
    const groups = new Map<string, Segment[]>();
    for (const segment of segments) {
      const name = this.poolName(segment);
      groups.set(name, [...(groups.get(name) ?? []), segment]);
    }
    const maps = [...groups].map(([name, group]) => new SegmentMap(this.recording, this.event, name, group));
    this.panels.segments.replaceChildren(...maps.map((map) => map.root));
    for (const map of maps) map.draw();
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
          element("td", {}, siteOf(this.recording, life)),
          element("td", { class: "dim" }, header.reasons[kinds.reason[kind]]),
        ),
      );
    }
    const heads = ["block-size", "block-age", "block-category", "block-site", "block-reason"];
    const head = element("tr", {}, ...heads.map((each, i) => element("th", { class: i < 2 ? "number" : "" }, say(each))));
    this.panels.blocks.replaceChildren(element("table", {}, element("thead", {}, head), body));
  }
}
