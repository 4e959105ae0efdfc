// What somebody sees who is woken at night: the cause and the remedy on the first screen, or one
// click from it. Each scenario has a fault of its own, which the test has made.
import assert from "node:assert/strict";
import { assertAccessible, screenshot, show, until } from "./browser.mjs";
import { main, outbox } from "./scenario.mjs";

const dialog = (page) => page.locator("dialog[open]");
const finding = (page, text) => page.locator(".findings > li").filter({ hasText: text });

/** Waits for the finding on the first screen: what is the case, what it means, and the command. */
async function found(page, url, name, text, { meaning, command, severity }) {
  await page.goto(`${url}/`);
  const one = finding(page, text).first();
  await one.waitFor();
  if (meaning) await one.getByText(meaning).waitFor();
  if (command) assert.ok((await one.locator("code").allTextContents()).some((code) => command.test(code)), `no command like ${command}: ${await one.textContent()}`);
  if (severity) await one.getByText(severity, { exact: true }).waitFor();
  // It is above everything else: seen without scrolling.
  const box = await one.boundingBox();
  assert.ok(box.y < 900, `${name} is at ${box.y}`);
  await screenshot(page, `fault-${name}`);
  await assertAccessible(page, name);
  return one;
}

await main({
  async destination({ page, url }) {
    const one = await found(page, url, "destination", "Its destination does not take events", {
      meaning: "Its events stay pending; none is lost.",
      command: /^outbox sinks mails/,
      severity: "Warning",
    });
    await one.getByText("What to do").waitFor();
    await one.getByRole("link", { name: "Subscription mails" }).click();
    await page.getByRole("heading", { name: "mails", level: 1 }).waitFor();
    await page.getByText("Oldest pending").waitFor();
  },

  async relay({ page, url }) {
    const one = await found(page, url, "relay", "No relay is alive", { meaning: "Nothing is delivered.", command: /^outbox relay/, severity: "Error" });
    await one.getByRole("link", { name: "Relays and workers" }).click();
    await page.waitForFunction(() => document.activeElement?.id === "relays");
  },

  async dead({ page, url }) {
    const one = await found(page, url, "dead", "A dead event is not sent again", { command: /parked list --subscription orders --state dead/, severity: "Warning" });
    await one.getByRole("link", { name: "See and retry dead events" }).click();
    await page.getByText("Too large.").waitFor();
    await page.getByRole("button", { name: "Retry 1 event of orders" }).waitFor();
  },

  async paused({ page, url }) {
    const one = await found(page, url, "paused", "It is paused: the night", { meaning: "Its events wait, and hold history back.", command: /subscription resume orders/, severity: "Note" });
    await one.getByRole("button", { name: "Resume orders" }).click();
    await dialog(page).getByRole("button", { name: "Resume it" }).click();
    await dialog(page).locator(".done").waitFor();
    assert.equal((await outbox("subscription", "list")).subscriptions[0].state, "active");
    await dialog(page).getByRole("button", { name: "Close" }).click();
    await one.waitFor({ state: "detached" });
  },

  async history({ page, url }) {
    const one = await found(page, url, "history", "history that could be removed", { meaning: "The log grows until", command: /subscription resume slow/, severity: "Error" });
    await one.getByRole("button", { name: "Resume slow" }).click();
    await dialog(page).getByRole("button", { name: "Resume it" }).click();
    await dialog(page).locator(".done").waitFor();
    assert.equal((await outbox("subscription", "list")).subscriptions.find((each) => each.name === "slow").state, "active");
  },

  async ledger({ page, url, facts }) {
    const one = await found(page, url, "ledger", "The ledger differs from the log", { meaning: /events may be lost/i, command: /outbox verify --subscription orders/, severity: "Error" });
    await one.getByRole("link", { name: "Compare now" }).click();
    await page.getByRole("heading", { name: "Verify", level: 1 }).waitFor();
    await page.getByText("orders: The ledger differs").or(page.getByText("The ledger differs from the log")).first().waitFor();
    await page.getByRole("button", { name: "Compare now" }).click();
    if (facts.compares) {
      await page.getByRole("heading", { name: "Differences of orders" }).waitFor();
      await page.getByRole("rowheader", { name: "counts" }).waitFor();
    } else {
      await page.getByText("outbox verify --subscription orders").first().waitFor();
    }
    await screenshot(page, "fault-ledger-verify");
  },

  async task_dead({ page, url }) {
    const one = await found(page, url, "task-dead", "A task is dead", { command: /tasks list --queue reports --state dead/, severity: "Warning" });
    await one.getByRole("link", { name: "See and retry dead tasks" }).click();
    await page.getByText("the program ended with status 65: no such month").waitFor();
    await page.getByRole("button", { name: "Retry all that match" }).click();
    await dialog(page).locator(".preview").filter({ hasText: "would run again reports" }).waitFor();
  },

  async task_stuck({ page, url }) {
    const one = await found(page, url, "task-stuck", "task report.long has run for 2 h", { meaning: "It is stuck, or slower than expected", command: /^outbox tasks cancel/, severity: "Warning" });
    await one.getByRole("button", { name: "Cancel it" }).click();
    await dialog(page).getByLabel(/^Reason/).fill("it is stuck");
    await dialog(page).getByRole("button", { name: "Cancel for good" }).click();
    await dialog(page).locator(".done").waitFor();
    await until(async () => (await outbox("tasks", "list")).tasks.every((each) => each.state !== "running"), "its handler was told to stop", 60);
  },

  async schedule({ page, url }) {
    const one = await found(page, url, "schedule", "Schedule nightly missed its tick", { meaning: "Its task was not enqueued.", command: /^outbox work --queue reports/, severity: "Warning" });
    await one.getByRole("link", { name: "Schedules" }).click();
    await page.getByText("missed: no worker of reports ticks").waitFor();
  },

  /** The console goes while the page is open, and comes back: the page says so, and goes on. */
  async console({ page, url, facts }) {
    const { writeFile } = await import("node:fs/promises");
    await show(page, url, "#/subscriptions/orders");
    await page.locator(".pulse.live").waitFor();
    await writeFile(facts.away, "");
    const box = page.locator(".away");
    await box.getByText(/The console does not answer since \d\d:\d\d:\d\d/).waitFor({ timeout: 60_000 });
    await box.getByText("Deliveries do not depend on the console").waitFor();
    await box.getByText(/What you see below is of \d\d:\d\d:\d\d/).waitFor();
    await writeFile(facts.back, "");
    await page.locator(".pulse.live").waitFor({ timeout: 60_000 });
    await box.waitFor({ state: "detached" });
  },

  /** The database goes while the page is open, and comes back. The test is told by files when to act. */
  async database({ page, url, facts }) {
    const { writeFile } = await import("node:fs/promises");
    await show(page, url, "#/");
    await page.locator(".pulse.live").waitFor();
    await writeFile(facts.away, "");
    await page.locator(".pulse.stale").waitFor({ timeout: 60_000 });
    const box = page.locator(".away");
    await box.getByText(/The database is away since \d\d:\d\d:\d\d/).waitFor();
    await box.getByText(/What you see below is of \d\d:\d\d:\d\d/).waitFor();
    await box.getByText("What was committed is not lost").waitFor();
    await box.getByText("outbox doctor").waitFor();
    await screenshot(page, "fault-database");
    await assertAccessible(page, "the database is away");
    // A page that is opened now says the same.
    await page.reload();
    await box.getByText("Nothing can be shown until it is back.").waitFor({ timeout: 60_000 });
    await writeFile(facts.back, "");
    await page.locator(".pulse.live").waitFor({ timeout: 60_000 });
    await box.waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "orders" }).waitFor();
  },
});
