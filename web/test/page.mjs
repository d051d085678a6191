// The page in a real browser, from a file: page.mjs PROGRAM [SCREENSHOT_FOLDER]
//
// Makes reports of recordings in the repository, opens them in Chromium and holds them to what they promise: no request,
// no error, the numbers of --json, the same maximum at every zoom, and everything by mouse, keyboard and link.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [program, pictures] = process.argv.slice(2);
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
if (!browserPath) {
  console.log("Chromium is not installed: skipped");
  process.exit(77);
}
const root = fileURLToPath(new URL("../..", import.meta.url));
const data = join(root, "tests/data");
const folder = mkdtempSync(join(tmpdir(), "oomscope-page-"));
if (pictures) mkdirSync(pictures, { recursive: true });

function report(name, evidence, language = "en") {
  const file = join(folder, `${name}.html`);
  execFileSync(program, ["report", ...evidence, "-o", file, "--lang", language]);
  return file;
}
function json(...words) {
  return JSON.parse(execFileSync(program, [...words, "--json"], { maxBuffer: 1 << 28 }));
}

const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
let failed = 0;

async function check(name, file, act, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => !/^(file|data|blob):/.test(request.url()) && problems.push(request.url()));
  try {
    const [path, hash = ""] = file.split("#");
    await page.goto(`${pathToFileURL(path).href}#${hash}`);
    if (options.javaScriptEnabled !== false) await page.waitForSelector("html[data-ready]", { state: "attached" });
    await act(page);
    assert.deepEqual(problems, []);
    console.log(`ok   ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}\n     ${error.stack ?? error}`);
    if (pictures) await page.screenshot({ path: join(pictures, "failed.png") });
  }
  await context.close();
}

/** The buttons of the n-th timeline that are pressed. */
const pressed = (page, index = 0) => page.locator(".timeline").nth(index).locator("[aria-pressed=true]").allInnerTexts();

/** The address follows what is shown a moment later. */
const address = (page, part) => page.waitForFunction((wanted) => location.hash.includes(wanted), part, { timeout: 2000 });

async function onFirstScreen(page, selectors) {
  const { height } = page.viewportSize();
  for (const selector of selectors) {
    const box = await page.locator(selector).first().boundingBox();
    assert.ok(box && box.y + box.height <= height, `${selector} is on the first screen`);
  }
}

const focusedName = (page) => page.evaluate(() => document.activeElement.getAttribute("aria-label"));

async function picture(page, name) {
  if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
}

const oom = join(data, "demo_oom.pickle.zst");
const oomPage = report("oom", [oom]);
const oomWhy = json("why", oom);

await check("the first screen stands without a script", oomPage, async (page) => {
  const text = await page.innerText("body");
  assert.ok(text.includes(oomWhy.findings[0]?.claim ?? oomWhy.sentence));
  assert.ok(text.includes("0 mismatches"));
  const shown = await page.$$eval(".balance tbody td.number", (cells) => cells.map((cell) => cell.title));
  const bytes = shown.filter((each) => each !== "?").map((each) => Number(each.replace(/[, B]/g, "")));
  assert.deepEqual(bytes, oomWhy.balance.filter((row) => row.bytes !== null).map((row) => row.bytes));
  assert.equal(bytes.reduce((a, b) => a + b, 0), oomWhy.balance_total);
  await onFirstScreen(page, [".verdict", ".balance", ".changes", ".trust"]);
  await picture(page, "no-script");
}, { javaScriptEnabled: false });

await check("the numbers are those of show --json", oomPage, async (page) => {
  const { instant, events } = await page.evaluate(() => ({
    instant: window.oomscope[0].series.recording.header.instant.event,
    events: window.oomscope[0].series.recording.events,
  }));
  for (const event of [0, instant, Math.floor(events / 3), events - 1]) {
    const shown = json("show", oom, "--at", String(event), "--by", "category");
    const got = await page.evaluate((at) => {
      const { series } = window.oomscope[0];
      const layers = new Float64Array(series.layerCount("category"));
      series.layersAt(at, "category", layers);
      const { categories } = series.recording.header;
      return {
        totals: series.totalsAt(at),
        reserved: series.reservedAt(at),
        active: series.activeAt(at),
        layers: Object.fromEntries(categories.map((category, i) => [category.id, layers[i]])),
      };
    }, event);
    assert.equal(got.active, shown.totals.active, `active at ${event}`);
    assert.equal(got.totals.allocated, shown.totals.allocated);
    assert.equal(got.totals.requested, shown.totals.requested);
    assert.equal(got.reserved, shown.totals.reserved);
    for (const row of shown.rows) assert.equal(got.layers[row.key], row.bytes, `${row.key} at ${event}`);
  }
});

await check("the free space of the failed request is that of why --json", oomPage, async (page) => {
  await page.getByRole("tab", { name: "Driver requests" }).click();
  const row = page.locator("[role=tabpanel] tr.bad").last();
  const exact = await row.locator("td.number").evaluateAll((cells) => cells.map((cell) => cell.title));
  const number = (text) => Number(text.replace(/[, B]/g, ""));
  assert.equal(number(exact[2]), oomWhy.numbers.request);
  assert.equal(number(exact[3]), oomWhy.numbers.free.usable + oomWhy.numbers.free.oversize);
  assert.equal(number(exact[4]), oomWhy.numbers.free.largest_usable);
});

await check("no zoom level hides or invents a peak", oomPage, async (page) => {
  const wrong = await page.evaluate(async () => {
    const { timeline, series } = window.oomscope[0];
    const { events } = series.recording;
    let state = 11;
    const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
    for (const axis of ["events", "time"]) {
      timeline.set({ axis });
      for (let round = 0; round < 200; round++) {
        const begin = Math.floor(random() * events);
        const width = Math.max(1, Math.floor(random() ** 4 * events));
        timeline.zoomToEvents(begin, Math.min(events, begin + width));
        const [first, last] = timeline.axis.eventsInView();
        let most = 0;
        for (let event = first; event < last; event++) most = Math.max(most, series.active[event]);
        if (timeline.shownMost() !== most) return { axis, first, last, most, shown: timeline.shownMost() };
      }
    }
    timeline.set({ axis: "events" });
    timeline.zoomToEvents(0, events);
    return timeline.shownMost() === Math.max(...series.active) ? null : "whole";
  });
  assert.equal(wrong, null);
});

await check("mouse, keyboard and links", oomPage, async (page) => {
  const plot = page.locator(".plot").first();
  await plot.scrollIntoViewIfNeeded();
  const box = await plot.boundingBox();
  const moment = () => page.evaluate(() => window.oomscope[0].timeline.shown.event);
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  const picked = await moment();
  await address(page, `event=${picked}`);
  await plot.focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await moment(), picked + 1);
  await page.keyboard.press("f");
  assert.equal(await moment(), oomWhy.findings[0].instant.event);
  await page.getByRole("button", { name: "zoom in" }).click();
  const [begin, end] = await page.evaluate(() => window.oomscope[0].timeline.axis.eventsInView());
  assert.ok(end - begin < (await page.evaluate(() => window.oomscope[0].series.recording.events)));
  await page.mouse.move(box.x + 200, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + 500, box.y + 120, { steps: 4 });
  await page.mouse.up();
  await page.getByRole("button", { name: "Show all" }).click();
  for (const name of ["Segments", "Driver requests", "Largest blocks", "Call tree"]) {
    await page.getByRole("tab", { name }).click();
    await picture(page, `tab-${name.replace(" ", "-").toLowerCase()}`);
  }
  await page.getByRole("tab", { name: "Segments" }).click();
  await page.locator(".pool canvas").first().hover({ position: { x: 300, y: 6 } });
  assert.match(await page.locator(".tip").innerText(), /0x[0-9a-f]+.*event/s);
  await page.getByRole("tab", { name: "Call tree" }).click();
  const settings = page.locator(".what-if .lines button");
  assert.equal(await settings.count(), oomWhy.runs.length);
  await settings.nth(3).hover();
  assert.ok((await page.locator(".what-if .legend").innerText()).includes(oomWhy.runs[3].conf));
  await page.getByRole("button", { name: "line of code" }).click();
  await page.getByLabel("Find in the tree").fill("forward");
  await page.locator(".flame [tabindex='0']").focus();
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-level")), "2");
  await page.evaluate(() => (location.hash = "#event=42&by=category&axis=time"));
  for (let i = 0; i < 50 && (await moment()) !== 42; i++) await page.waitForTimeout(20);
  assert.equal(await moment(), 42);
  assert.deepEqual(await pressed(page), ["what it is", "wall clock"]);
});

await check("a link opens what it says, the buttons show it, and the address follows them", `${oomPage}#event=42&by=site&axis=time`, async (page) => {
  assert.deepEqual(await pressed(page), ["line of code", "wall clock"]);
  assert.deepEqual(await page.evaluate(() => window.oomscope[0].timeline.shown), { event: 42, by: "site", axis: "time" });
  await page.getByRole("button", { name: "what it is" }).click();
  await address(page, "event=42&by=category&axis=time");
  await page.getByRole("button", { name: "events", exact: true }).click();
  await address(page, "axis=events");
  assert.deepEqual(await pressed(page), ["what it is", "events"]);
  await page.evaluate(() => (location.hash = "#event=-3&by=<b>&axis=none"));
  await page.waitForTimeout(50);
  assert.deepEqual(await page.evaluate(() => window.oomscope[0].timeline.shown), { event: 42, by: "category", axis: "events" });
});

await check("tabs, blocks and frames by keyboard, each with a name", oomPage, async (page) => {
  const tab = (name) => page.getByRole("tab", { name });
  await tab("Call tree").focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await tab("Segments").getAttribute("aria-selected"), "true");
  const panel = page.locator(`#${await tab("Segments").getAttribute("aria-controls")}`);
  assert.equal(await panel.getAttribute("role"), "tabpanel");
  assert.equal(await page.locator("[role=tablist] [tabindex='0']").count(), 1);
  await panel.locator(".map button").first().waitFor();
  await page.keyboard.press("Tab");
  const names = new Set();
  for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "End", "ArrowUp", "Home", "ArrowRight", "ArrowRight", "ArrowRight"]) {
    await page.keyboard.press(key);
    names.add(await focusedName(page));
  }
  assert.ok(names.size > 4, "the keys go from piece to piece");
  const block = [...names].find((name) => / events\)/.test(name));
  assert.match(block, /B at 0x[0-9a-f]+.*since event.*\(.* events\); .*\.py:\d+.*segment 0x/, "a block's name tells its age and stack");
  assert.equal(await page.locator(".tip").isVisible(), true);
  await picture(page, "segments-by-keyboard");
  await tab("Segments").focus();
  await page.keyboard.press("End");
  assert.equal(await tab("Largest blocks").getAttribute("aria-selected"), "true");
  const reasons = await page.locator("[role=tabpanel]:visible tbody td:last-child").allInnerTexts();
  assert.ok(reasons.length > 0 && reasons.every((each) => !/^[a-z]+(-[a-z]+)+$/.test(each)), "reasons are words");
  await page.keyboard.press("ArrowRight");
  assert.equal(await tab("Call tree").getAttribute("aria-selected"), "true");
  const boxes = await page.locator(".flame button").evaluateAll((all) => all.map((box) => [box.textContent, box.getAttribute("aria-label")]));
  const placeOf = new Map();
  for (const [text, label] of boxes) {
    const place = label.replace(/, [^,]+, [^,]+$/, "");
    assert.equal(placeOf.get(text) ?? place, place, `"${text}" stands for one place`);
    placeOf.set(text, place);
  }
});

await check("dark, and on a phone", oomPage, async (page) => {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 390, `nothing is wider than the phone (${wide})`);
  await onFirstScreen(page, [".proof", ".balance"]);
  for (const cell of await page.locator("#sites tbody td:last-child, #steps tbody td:last-child").all()) {
    const box = await cell.boundingBox();
    if (box) assert.ok(box.x >= 0 && box.x + box.width <= 390 && box.width >= 120, "lines of code and notes are in sight");
  }
  await page.locator("#sites").scrollIntoViewIfNeeded();
  await picture(page, "phone-sites");
  await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
  await picture(page, "phone-dark");
}, { viewport: { width: 390, height: 844 }, colorScheme: "dark" });

const state = join(folder, "state.pickle");
execFileSync("python3", ["-c", "import json, pickle, sys; pickle.dump(json.load(open(sys.argv[1])), open(sys.argv[2], 'wb'))",
  join(root, "tests/golden/no-history/state.pickle.json"), state]);
const healthy = join(data, "causes/none_vit.pickle.zst");
await check("a recording in which nothing failed", report("healthy", [healthy]), async (page) => {
  await picture(page, "healthy");
  await page.locator(".what-if").scrollIntoViewIfNeeded();
  const settings = await page.locator(".what-if code").evaluateAll((all) => all.map((each) => [each.innerText, each.scrollWidth <= each.clientWidth]));
  assert.equal(new Set(settings.map(([text]) => text)).size, settings.length);
  assert.ok(settings.every(([, isWhole]) => isWhole), "no setting is cut");
  await picture(page, "what-if");
});
await check("the ranks of a job", report("ranks", [join(data, "ranks/copy_on_rank0")]), async (page) => {
  assert.equal(await page.locator("figure.rank").count(), 4);
  await onFirstScreen(page, ["h1", ".proof", ".balance", ".changes li"]);
  const last = (await page.locator(".timeline").count()) - 1;
  await page.locator(".timeline").nth(last).getByRole("button", { name: "line of code" }).click();
  await address(page, last === 0 ? "by=site" : `by.${last + 1}=site`);
  await picture(page, "ranks");
});
await check("two recordings", report("two", [oom, healthy]), async (page) => {
  assert.equal(await page.locator(".timeline").count(), 2);
  await page.evaluate(() => (location.hash = "#event=7&event.2=42&by.2=site&axis.2=time"));
  await page.waitForFunction(() => window.oomscope[1].timeline.shown.event === 42);
  assert.deepEqual(await pressed(page, 0), ["what it is", "events"]);
  assert.deepEqual(await pressed(page, 1), ["line of code", "wall clock"]);
  await page.locator(".timeline").first().getByRole("button", { name: "line of code" }).click();
  await address(page, "event=7&by=site&axis=events&event.2=42&by.2=site&axis.2=time");
  await picture(page, "two");
});
await check("a snapshot without history", report("state", [state]), async (page) => {
  assert.equal(await page.locator(".timeline").count(), 0);
  await page.getByRole("tab", { name: "Segments" }).click();
  assert.ok((await page.locator(".pool canvas").count()) > 0);
  await picture(page, "no-history");
});
await check("a log alone", report("log", ["CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 24.00 GiB of which 1.00 GiB is free."]), async (page) => {
  assert.ok((await page.innerText("h1")).length > 10);
  await picture(page, "log");
});
await check("Chinese", report("zh", [oom], "zh"), async (page) => {
  assert.equal(await page.getAttribute("html", "lang"), "zh");
});

await browser.close();
rmSync(folder, { recursive: true });
console.log(failed === 0 ? "all good" : `${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
