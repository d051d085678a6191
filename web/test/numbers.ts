// The page's own arithmetic against the program's: numbers.js PROGRAM RECORDING...
//
// Of each recording the report is made and decoded as the page does it; at some events the sums of layers, blocks,
// segments and free space must be those that show and why print.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decode, unpack } from "../src/decode";
import { freeSpaceFor, isSmallRequest, liveAt, segmentsAt } from "../src/segments";
import { Series } from "../src/series";

const [program, ...files] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "oomscope-numbers-"));
let checked = 0;
let wrong = 0;

function run(...words: string[]): string {
  return execFileSync(program, words, { maxBuffer: 1 << 29, stdio: ["ignore", "pipe", "pipe"] }).toString();
}

function same(where: string, ours: Record<string, number>, theirs: Record<string, number>): void {
  checked += 1;
  for (const [name, value] of Object.entries(theirs)) {
    if (ours[name] === value) continue;
    wrong += 1;
    console.log(`FAIL ${where}: ${name} is ${ours[name]}, not ${value}`);
  }
}

for (const file of files) {
  const page = join(folder, "page.html");
  run("report", file, "--no-sweep", "-o", page);
  const payload = /class="recording">([^<]*)</.exec(readFileSync(page, "latin1"));
  if (!payload) continue;
  const recording = decode(await unpack(payload[1]));
  const { events, header } = recording;
  if (events === 0) continue;
  const series = new Series(recording);
  const peak = header.peak_allocated.event ?? 0;
  for (const event of new Set([0, peak, Math.floor(events / 2), Math.floor(events * 0.77), events - 1])) {
    const words = ["show", file, "--at", String(event), "--by", "category", "--device", String(header.device), "--json"];
    const shown = JSON.parse(run(...words));
    const { events: _, peak_requested, peak_allocated, peak_reserved, ...totals } = shown.totals;
    const segments = segmentsAt(recording, event, liveAt(recording, event));
    const held = segments.reduce((sum, each) => sum + each.size, 0);
    const free = segments.reduce((sum, each) => sum + each.free, 0);
    const { active, allocated, requested } = series.totalsAt(event);
    same(`${file} at ${event}`, { active, allocated, requested, reserved: series.reservedAt(event) }, totals);
    same(`${file} at ${event}, the line`, { active: series.activeAt(event) }, { active: totals.active });
    same(`${file} at ${event}, segments`, { held, live: held - free }, { held: totals.reserved, live: totals.active });
    const layers = new Float64Array(series.layerCount("category"));
    series.layersAt(event, "category", layers);
    const rows = Object.fromEntries(shown.rows.map((row: { key: string; bytes: number }) => [row.key, row.bytes]));
    same(`${file} at ${event}`, Object.fromEntries(header.categories.map((each, i) => [each.id, layers[i]])), rows);
    same(file, { peak: header.peak_allocated.bytes, reserved: series.mostReserved }, { peak: peak_allocated, reserved: peak_reserved });
  }
  const failure = header.failures.find((each) => header.instant.failed && each.event === header.instant.event);
  if (!failure) continue;
  const { free } = JSON.parse(run("why", file, "--no-sweep", "--json")).numbers;
  const before = failure.event - 1;
  const segments = segmentsAt(recording, before, liveAt(recording, before));
  const space = freeSpaceFor(segments, failure.stream, failure.pool, isSmallRequest(failure.size));
  same(
    `${file}, free at the failure`,
    { usable: space.usable, otherClass: space.otherClass, otherStream: space.otherStream, otherPool: space.otherPool },
    {
      usable: free.usable + free.oversize,
      otherClass: free.other_class,
      otherStream: free.other_stream,
      otherPool: free.private_pool + free.default_pool,
    },
  );
}
rmSync(folder, { recursive: true });
console.log(`${checked} comparisons of ${files.length} recordings, ${wrong} wrong`);
process.exit(wrong === 0 ? 0 : 1);
