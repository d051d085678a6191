// A picture of a page: picture.mjs PAGE.html OUT.png [WIDTH HEIGHT] [dark]
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const [file, out, width = "1280", height = "800", scheme = "light"] = process.argv.slice(2);
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const viewport = { width: Number(width), height: Number(height) };
const page = await (await browser.newContext({ viewport, colorScheme: scheme })).newPage();
await page.goto(pathToFileURL(resolve(file)).href);
await page.waitForSelector("html[data-ready]", { state: "attached" });
await page.waitForTimeout(700); // the moment's details follow when the browser is idle
await page.screenshot({ path: out });
await browser.close();
