// Starts the viewer: the page stands already; each recording in it replaces its still picture by a live timeline.

import { decode, unpack } from "./decode";
import { element } from "./dom";
import { say, setWords } from "./format";
import { Moment } from "./moment";
import { Series, type By } from "./series";
import { Timeline } from "./timeline";
import { WhatIf } from "./whatif";

interface Viewed {
  series: Series;
  timeline: Timeline;
}
const viewed: Viewed[] = [];
const redraws: (() => void)[] = [];

/** "#event=4711&by=site&axis=time": a moment to show, and how. */
function wanted(): URLSearchParams {
  return new URLSearchParams(location.hash.slice(1));
}

function remember(timeline: Timeline): void {
  const hash = new URLSearchParams({ event: String(timeline.moment), by: timeline.by, axis: timeline.axis.mode });
  history.replaceState(null, "", `#${hash}`);
}

async function open(section: Element, text: string, isOnly: boolean): Promise<void> {
  const series = new Series(decode(await unpack(text)));
  if (series.recording.events === 0) {
    const state = new Moment(series, () => say("only-state"), () => {});
    section.append(state.root);
    state.show(-1);
    return;
  }
  let moment: Moment | null = null;
  const timeline = new Timeline(series, (event) => {
    moment?.show(event);
    if (isOnly) remember(timeline);
  });
  moment = new Moment(series, (event) => timeline.eventName(event), (event) => timeline.pick(event));
  section.querySelector(".still")?.replaceWith(timeline.root);
  section.append(moment.root);
  viewed.push({ series, timeline });
  redraws.push(() => {
    timeline.redraw();
    timeline.draw();
  });
  if (isOnly) {
    if (series.recording.header.curves.length > 0) {
      const whatIf = new WhatIf(series);
      (document.querySelector("#details") ?? section).before(whatIf.root);
      redraws.push(() => whatIf.redraw());
    }
    follow(timeline);
    addEventListener("hashchange", () => follow(timeline));
  }
  timeline.draw();
  const first = () => moment?.show(timeline.moment);
  "requestIdleCallback" in window ? requestIdleCallback(first, { timeout: 500 }) : setTimeout(first, 0);
}

function follow(timeline: Timeline): void {
  const hash = wanted();
  const by = hash.get("by");
  const axis = hash.get("axis");
  if (by === "site" || by === "category") timeline.setBy(by as By);
  if (axis === "time" || axis === "events") timeline.setAxis(axis);
  const event = Number(hash.get("event") ?? NaN);
  if (Number.isInteger(event) && event >= 0 && event !== timeline.moment) timeline.pick(event);
}

function startTheme(): void {
  const button = document.querySelector<HTMLButtonElement>("#theme");
  if (!button) return;
  const isDark = () =>
    (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const label = () => (button.textContent = say(isDark() ? "theme-light" : "theme-dark"));
  button.hidden = false;
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    label();
    for (const redraw of redraws) redraw();
  });
  // Paper is light.
  let before: string | undefined;
  addEventListener("beforeprint", () => {
    before = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = "light";
    for (const redraw of redraws) redraw();
  });
  addEventListener("afterprint", () => {
    if (before) document.documentElement.dataset.theme = before;
    else delete document.documentElement.dataset.theme;
    for (const redraw of redraws) redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redraws.forEach((redraw) => redraw()));
  label();
}

async function start(): Promise<void> {
  setWords(JSON.parse(document.querySelector("#words")?.textContent ?? "{}"));
  startTheme();
  const payloads = [...document.querySelectorAll("script.recording")];
  for (const section of document.querySelectorAll<HTMLElement>("section.view")) {
    const payload = payloads[Number(section.dataset.recording)];
    try {
      await open(section, payload.textContent ?? "", payloads.length === 1);
      payload.textContent = "";
    } catch (error) {
      section.append(element("p", { class: "bad" }, say("broken", { error: String(error) })));
    }
  }
  const most = Math.max(...viewed.map(({ timeline }) => timeline.mostBytes()));
  if (viewed.length > 1) for (const { timeline } of viewed) timeline.shareScale(most);
  document.documentElement.dataset.ready = "true";
  Object.assign(window, { oomscope: viewed }); // for tests
}

void start();
