// How fast a page is and what it costs: measure.mjs PAGE.html [RUNS]. Prints JSON, one object a run.
//
// First paint and ready (the full timeline is drawn) are milliseconds since navigation began. Memory is that of the
// page's process after a collection: its own resident bytes, as the system counts them, and JavaScript's heap in it.
import { readFileSync, readdirSync, existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [file, runs = "5"] = process.argv.slice(2);
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

/** Resident bytes that no other process shares, of the largest renderer below a process. */
function rendererBytes() {
  let most = { rss: 0, own: 0 };
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("--type=renderer")) continue;
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "latin1");
      const kib = (name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(rollup)?.[1] ?? 0) * 1024;
      const own = kib("Private_Clean") + kib("Private_Dirty");
      if (own > most.own) most = { rss: kib("Rss"), own };
    } catch {
      // it ended meanwhile, or is not ours to read
    }
  }
  return most;
}

for (let run = 0; run < Number(runs); run++) {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--enable-precise-memory-info"] });
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  await page.addInitScript(() => {
    new MutationObserver(() => {
      if (document.documentElement?.dataset.ready === "true" && !window.readyAt) {
        requestAnimationFrame(() => (window.readyAt = performance.now()));
      }
    }).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready"] });
  });
  await page.goto(pathToFileURL(resolve(file)).href);
  await page.waitForSelector("html[data-ready]", { state: "attached" });
  await page.evaluate(() => new Promise(requestAnimationFrame));
  const loading = rendererBytes();
  const times = await page.evaluate(() => ({
    first_paint_ms: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
    ready_ms: window.readyAt,
  }));
  const frames = await page.evaluate(async () => {
    const { timeline, series } = window.oomscope[0];
    const { events } = series.recording;
    const costs = [];
    for (let i = 0; i < 60; i++) {
      const width = Math.max(100, events * 0.92 ** i);
      timeline.zoomToEvents(events / 3 - width / 3, events / 3 + width / 2);
      const begin = performance.now();
      timeline.draw();
      costs.push(performance.now() - begin);
      await new Promise(requestAnimationFrame);
    }
    costs.sort((a, b) => a - b);
    return { median: costs[30], most: costs[59] };
  });
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const heap = await page.evaluate(() => performance.memory.usedJSHeapSize);
  const settled = rendererBytes();
  console.log(
    JSON.stringify({
      ...times,
      frame_ms_median: frames.median,
      frame_ms_most: frames.most,
      renderer_rss_loading: loading.rss,
      renderer_rss: settled.rss,
      renderer_own: settled.own,
      js_heap: heap,
    }),
  );
  await browser.close();
}
