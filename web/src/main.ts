// Starts the viewer: the page stands already; each recording in it replaces its still picture by a live timeline.

import { decode, unpack } from "./decode";
import { element } from "./dom";
import { say, setWords } from "./format";
import { hashOf, wantedIn, type Shown } from "./link";
import { Moment } from "./moment";
import { Series } from "./series";
import { Timeline } from "./timeline";
import { WhatIf } from "./whatif";

interface Viewed {
  index: number; // of the recording in the page
  series: Series;
  timeline: Timeline;
}
const viewed: Viewed[] = [];
const chosen: (Shown | undefined)[] = []; // by recording, as the address has it
const ADDRESS_MS = 100; // browsers refuse a new address for every repeat of a held key
let addressTimer = 0;
const redraws: (() => void)[] = [];

async function open(section: Element, text: string, index: number, isOnly: boolean): Promise<void> {
  const series = new Series(decode(await unpack(text)));
  if (series.recording.events === 0) {
    const state = new Moment(series, () => say("only-state"), () => {});
    section.append(state.root);
    state.show(-1);
    return;
  }
  let moment: Moment | null = null;
  let detailed = -1; // the event whose details stand there
  const detail = () => {
    const { event } = timeline.shown;
    if (event !== detailed) moment?.show((detailed = event));
  };
  const timeline = new Timeline(series, () => {
    detail();
    chosen[index] = timeline.shown;
    clearTimeout(addressTimer);
    addressTimer = setTimeout(() => history.replaceState(null, "", hashOf(chosen)), ADDRESS_MS);
  });
  moment = new Moment(series, (event) => timeline.eventName(event), (event) => timeline.pick(event));
  section.querySelector(".still")?.replaceWith(timeline.root);
  section.append(moment.root);
  viewed.push({ index, series, timeline });
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
  }
  timeline.draw();
  "requestIdleCallback" in window ? requestIdleCallback(detail, { timeout: 500 }) : setTimeout(detail, 0);
}

function follow(): void {
  for (const { index, timeline } of viewed) {
    const wanted = wantedIn(location.hash, index);
    if (Object.keys(wanted).length > 0) timeline.set(wanted);
  }
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
    const index = Number(section.dataset.recording);
    const payload = payloads[index];
    try {
      await open(section, payload.textContent ?? "", index, payloads.length === 1);
      payload.textContent = "";
    } catch (error) {
      section.append(element("p", { class: "bad" }, say("broken", { error: String(error) })));
    }
  }
  const most = Math.max(...viewed.map(({ timeline }) => timeline.mostBytes()));
  if (viewed.length > 1) for (const { timeline } of viewed) timeline.shareScale(most);
  follow();
  addEventListener("hashchange", follow);
  document.documentElement.dataset.ready = "true";
  Object.assign(window, { oomscope: viewed }); // for tests
}

void start();
