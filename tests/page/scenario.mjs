// What all scenarios have in common: the address of the page, a browser, and the command line.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { assertClean, openBrowser, openTab } from "./browser.mjs";
import { openPage } from "./server.mjs";

const run = promisify(execFile);

/** Runs a verb of the command line in the folder of the test; its answer, read from JSON. */
export async function outbox(...words) {
  const { stdout } = await run(process.env.OUTBOX_BINARY, [...words, "--json"]);
  return JSON.parse(stdout);
}

/**
 * Runs the scenario that the arguments name.
 * @param {Record<string, (given: object) => Promise<void>>} scenarios
 */
export async function main(scenarios) {
  const [name, facts] = [process.argv[2], JSON.parse(process.argv[3] ?? "{}")];
  const scenario = scenarios[name];
  if (!scenario) throw new Error(`there is no scenario ${name}`);
  const browser = await openBrowser();
  const opened = [];
  try {
    const page = await openPage(facts.url);
    opened.push(page);
    const tab = await openTab(browser, page.url);
    await scenario({ browser, tab, page: tab.page, url: page.url, facts });
    await assertClean(tab);
  } catch (error) {
    for (const context of browser.contexts()) for (const page of context.pages()) await page.screenshot({ path: `${process.env.OUTBOX_TEST_OUTPUT ?? "."}/failed-${name}.png` }).catch(() => {});
    console.error(error);
    process.exitCode = 1;
  } finally {
    await browser.close();
    for (const page of opened) await page.close();
  }
}
