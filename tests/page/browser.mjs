// A browser whose pages fail the test when they do what the page of the console must not do: ask
// another host, break the policy, or throw.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(new URL("../../console/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const WIDTHS = [360, 1280, 2560];
const OUTPUT = process.env.OUTBOX_TEST_OUTPUT ?? "page-screenshots";
mkdirSync(OUTPUT, { recursive: true });

export async function openBrowser() {
  return chromium.launch({
    executablePath: process.env.OUTBOX_TEST_CHROMIUM ?? "/usr/bin/chromium",
    args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
  });
}

/** A page and what it did wrong; `url` is the only origin that it may ask. */
export async function openTab(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, timezoneId: "Europe/Berlin", locale: "en-GB", ...options });
  const page = await context.newPage();
  const faults = [];
  const origin = new URL(url).origin;
  page.on("request", (request) => {
    const asked = new URL(request.url());
    if (asked.protocol !== "data:" && asked.origin !== origin) faults.push(`asked ${request.url()}`);
  });
  page.on("pageerror", (error) => faults.push(`threw ${error.stack ?? error}`));
  page.on("console", (message) => {
    // What the server refuses is shown on the page; the browser writes it down, too.
    if (message.type() === "error" && !/Failed to load resource|ERR_|EventSource/.test(message.text())) faults.push(`said ${message.text()}`);
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  return { page, context, faults };
}

/** What the page has done wrong so far is a failure. */
export async function assertClean({ page, faults }) {
  const violations = await page.evaluate(() => window.violations ?? []);
  assert.deepEqual([...faults, ...violations], []);
}

/** Opens a view and waits until nothing of it is being asked for. */
export async function show(page, url, hash) {
  await page.goto(`${url}/${hash}`, { waitUntil: "load" });
  await settled(page);
}

export async function settled(page) {
  await page.waitForSelector("header .pulse.live, header .pulse.stale, main.first h1");
  await page.waitForFunction(() => !document.querySelector("main .loading"));
}

export async function screenshot(page, name) {
  await page.screenshot({ path: path.join(OUTPUT, name + ".png"), fullPage: true });
}

/** No view needs to be scrolled sideways: tables scroll inside themselves. */
export async function assertFits(page, what) {
  const { wide, parts } = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    parts: [...document.querySelectorAll("main *")]
      .filter((one) => one.getBoundingClientRect().right > innerWidth + 1 && !one.closest(".scrolls, .output, .hidden-text, .u-wrap"))
      .slice(0, 3)
      .map((one) => one.outerHTML.slice(0, 120)),
  }));
  assert.ok(wide <= 0, `${what} is ${wide} px too wide: ${parts.join("; ")}`);
}

export async function assertAccessible(page, what) {
  // Given as a function of the test and not as a tag of the page, which its policy forbids.
  await page.evaluate(AXE + "; void 0");
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const text = found.violations.map((one) => `${one.id}: ${one.help}\n` + one.nodes.map((node) => `    ${node.target}: ${node.failureSummary}`).join("\n"));
  assert.deepEqual(text, [], what);
}

/** A condition that another process makes true. */
export async function until(condition, what, seconds = 30) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    assert.ok(Date.now() < end, `not within ${seconds} s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
