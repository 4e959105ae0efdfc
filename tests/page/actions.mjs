// Each change that the page can make, from its button to what the command line then finds.
import assert from "node:assert/strict";
import { show, until } from "./browser.mjs";
import { main, outbox } from "./scenario.mjs";

const subscription = async (name) => (await outbox("subscription", "list")).subscriptions.find((one) => one.name === name);
const parked = async (...words) => (await outbox("parked", "list", ...words)).events;
const changes = async (verb) => (await outbox("audit")).changes.filter((one) => one.verb === verb && one.origin === "console");
const dialog = (page) => page.locator("dialog[open]");

/** Waits for the preview, gives a reason if one is asked for, and does it. */
async function confirm(page, verb, { preview, reason } = {}) {
  await dialog(page).waitFor();
  if (preview) await dialog(page).locator(".preview").filter({ hasText: preview }).waitFor();
  if (reason) await dialog(page).getByLabel(/^Reason/).fill(reason);
  await dialog(page).getByRole("button", { name: verb, exact: true }).click();
  await dialog(page).locator(".done").waitFor();
  await dialog(page).getByRole("button", { name: "Close" }).click();
  await dialog(page).waitFor({ state: "detached" });
}

await main({
  async pause({ page, url }) {
    await show(page, url, "#/subscriptions/orders");
    await page.getByRole("button", { name: "Pause" }).click();
    assert.equal((await subscription("orders")).state, "active", "the dialog alone changes nothing");
    await confirm(page, "Pause it", { reason: "the shop is closed" });
    const paused = await subscription("orders");
    assert.deepEqual([paused.state, paused.reason], ["paused", "the shop is closed"]);
    // What was done is seen without a reload, here and as a finding with its button.
    await page.getByRole("button", { name: "Resume", exact: true }).first().waitFor();
    await show(page, url, "#/");
    await page.getByRole("button", { name: "Resume orders" }).click();
    await confirm(page, "Resume it");
    assert.equal((await subscription("orders")).state, "active");
    await page.getByText("paused: the shop is closed").waitFor({ state: "detached" });
  },

  async parked({ page, url }) {
    const before = await parked();
    assert.equal(before.filter((one) => one.subscription === "mails").length, 5);
    await show(page, url, "#/parked?subscription=mails");
    // One: discarded with a reason.
    const [one] = before.filter((each) => /address/.test(each.error));
    await page.getByRole("button", { name: `Discard seq ${one.seq}`, exact: true }).click();
    await dialog(page).locator(".preview").filter({ hasText: `would discard mails seq ${one.seq}` }).waitFor();
    assert.equal((await parked()).length, before.length, "a preview changes nothing");
    await dialog(page).getByRole("button", { name: "Discard for good" }).click();
    assert.equal(await dialog(page).locator(".done").count(), 0, "not without a reason");
    await confirm(page, "Discard for good", { reason: "a test order" });
    const [life] = (await outbox("events", "--id", one.id)).events[0].subscriptions.filter((each) => each.subscription === "mails");
    assert.deepEqual([life.state, life.reason], ["discarded", "a test order"]);
    // A selection: retried. The destination still rejects them, so they are dead again, with a new attempt.
    const amounts = before.filter((each) => /amount/.test(each.error));
    for (const each of amounts.slice(0, 2)) await page.getByLabel(`Select seq ${each.seq} of mails`).check();
    await page.getByRole("button", { name: "Retry selected" }).click();
    await confirm(page, "Retry", { preview: "2 events; nothing was changed" });
    assert.deepEqual((await changes("parked retry")).map((each) => each.count), [2]);
    await until(async () => (await parked("--state", "dead", "--subscription", "mails")).length === 4, "they are dead again");
    // A whole group: discarded.
    await show(page, url, "#/parked?subscription=mails");
    await page.getByRole("button", { name: /^Discard … 3 events of mails/ }).click();
    await confirm(page, "Discard for good", { preview: "3 events; nothing was changed", reason: "the amounts were wrong" });
    assert.deepEqual((await parked("--subscription", "mails")).map((each) => /address/.test(each.error)), [true]);
    await page.getByText("amount").first().waitFor({ state: "detached" });
  },

  async edit({ page, url, facts }) {
    const [dead] = await parked("--subscription", "mails");
    await show(page, url, `#/events/${dead.id}`);
    const button = page.getByRole("button", { name: "Edit and retry" });
    if (await button.isDisabled()) {
      // A console without roles lets nobody edit through the page: the API is tried all the same.
      assert.equal(facts.role, "operator");
      assert.match(await button.getAttribute("title"), /only an admin/);
      return;
    }
    await button.click();
    await dialog(page).getByLabel("Payload").fill('{"text":"better"}');
    await dialog(page).getByLabel(/^Reason/).fill("the address was mistyped");
    await dialog(page).getByRole("button", { name: "Preview" }).click();
    await dialog(page).locator(".preview").waitFor();
    assert.equal((await parked("--subscription", "mails")).some((one) => one.id === dead.id), true, "a preview changes nothing");
    await dialog(page).getByRole("button", { name: "Send the corrected copy" }).click();
    await dialog(page).locator(".done").waitFor();
    const life = (await outbox("events", "--id", dead.id)).events[0].subscriptions.find((one) => one.subscription === "mails");
    assert.equal(life.state, "edited");
    await dialog(page).getByRole("button", { name: "Close" }).click();
    await page.getByText("a copy took its place").waitFor();
  },

  async replay({ page, url }) {
    await show(page, url, "#/replay");
    await page.getByLabel("Subscription", { exact: true }).selectOption("orders");
    await page.getByLabel("Key").fill("order/1");
    await page.getByRole("button", { name: "Count them" }).click();
    await dialog(page).locator(".preview").filter({ hasText: "would send 1 event again to orders" }).waitFor();
    assert.equal(new URL(page.url()).hash.includes("key=order%2F1"), true, "the choice is in the address");
    assert.deepEqual((await outbox("replay", "--list")).replays, [], "the count sends nothing");
    await confirm(page, "Send them again", { preview: "1 event" });
    await until(async () => (await outbox("replay", "--list")).replays[0]?.state === "done", "it is done");
    assert.equal((await outbox("replay", "--list")).replays[0].sent, 1);
    await page.getByRole("row").filter({ hasText: "done" }).filter({ hasText: "orders" }).waitFor();
  },

  async stop({ page, url }) {
    // The rate of the subscription makes it take hours.
    await show(page, url, "#/replay?subscription=slow");
    await page.getByRole("button", { name: "Count them" }).click();
    await confirm(page, "Send them again", { preview: "events again to slow" });
    await page.getByRole("button", { name: /^Stop replay/ }).click();
    await confirm(page, "Stop it");
    const [one] = (await outbox("replay", "--list")).replays;
    assert.equal(one.state, "stopped");
    await page.getByRole("button", { name: /^Resume replay/ }).click();
    await confirm(page, "Resume it");
    assert.notEqual((await outbox("replay", "--list")).replays[0].state, "stopped");
    await page.getByRole("button", { name: /^Stop replay/ }).click();
    await confirm(page, "Stop it");
  },

  async tasks({ page, url }) {
    const task = async (id) => outbox("tasks", "show", id);
    const all = (await outbox("tasks", "list")).tasks;
    const [dead, running] = ["dead", "running"].map((state) => all.find((one) => one.state === state));
    await show(page, url, "#/tasks?state=dead");
    await page.getByLabel(`Select task ${dead.id}`).check();
    await page.getByRole("button", { name: "Retry selected" }).click();
    await confirm(page, "Retry", { preview: `would run again reports report.bad ${dead.id}` });
    await until(async () => (await changes("tasks retry")).length === 1, "it is in the audit");
    await until(async () => (await task(dead.id)).state === "dead", "it has died again");
    await page.getByRole("button", { name: "Cancel all that match" }).click();
    await confirm(page, "Cancel for good", { preview: "1 task; nothing was changed", reason: "nobody wants it" });
    assert.deepEqual([(await task(dead.id)).state, (await task(dead.id)).reason], ["cancelled", "nobody wants it"]);
    // The one that runs is told to stop.
    await show(page, url, `#/tasks/${running.id}`);
    await page.getByRole("button", { name: "Cancel …" }).click();
    await confirm(page, "Cancel for good", { reason: "it takes too long" });
    await until(async () => (await task(running.id)).state === "cancelled", "the running one is cancelled", 60);
    await page.locator(".view-head .state", { hasText: "cancelled" }).waitFor();
  },

  async queues({ page, url }) {
    const state = async () => (await outbox("subscription", "list")).subscriptions.filter((one) => /^task\d?\.reports/.test(one.name)).map((one) => one.state);
    await show(page, url, "#/tasks");
    await page.getByRole("button", { name: "Pause queue reports" }).click();
    await confirm(page, "Pause it", { reason: "the printer" });
    assert.ok((await state()).every((one) => one === "paused"));
    await page.getByRole("button", { name: "Resume queue reports" }).click();
    await confirm(page, "Resume it");
    assert.ok((await state()).every((one) => one === "active"));
  },

  async schedules({ page, url }) {
    const nightly = async () => (await outbox("tasks", "schedule", "list")).schedules.find((one) => one.name === "nightly");
    await show(page, url, "#/tasks?show=schedules");
    await page.getByRole("button", { name: "Pause schedule nightly" }).click();
    await confirm(page, "Pause it");
    assert.equal((await nightly()).paused, true);
    await page.getByRole("button", { name: "Resume schedule nightly" }).click();
    await confirm(page, "Resume it");
    assert.equal((await nightly()).paused, false);
  },

  /** From the first screen to a dead event that is sent again, without a mouse. */
  async keyboard({ page, url }) {
    const dead = await parked("--subscription", "mails", "--state", "dead");
    await page.goto(`${url}/`);
    await page.getByRole("listitem").filter({ hasText: "events are dead" }).waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
    const tabTo = async (wanted, most = 80) => {
      for (let i = 0; i < most; ++i) {
        await page.keyboard.press("Tab");
        const name = await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "");
        if (wanted.test(name)) return;
      }
      assert.fail(`the Tab key does not reach ${wanted}`);
    };
    // The first stop skips what is on every view.
    await page.keyboard.press("Tab");
    assert.match(await focused(), /Skip to the content/);
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
    await tabTo(/See and retry dead events/);
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/parked\?subscription=mails&state=dead$/);
    await page.getByRole("heading", { name: "Parked events" }).waitFor();
    await page.getByRole("button", { name: `Retry seq ${dead[0].seq}`, exact: true }).waitFor();
    await tabTo(new RegExp(`^Retry seq ${dead[0].seq}$`));
    await page.keyboard.press("Enter");
    await dialog(page).locator(".preview").waitFor();
    await tabTo(/^Retry$/, 10);
    await page.keyboard.press("Enter");
    await dialog(page).locator(".done").filter({ hasText: "1 event is sent again" }).waitFor();
    await page.keyboard.press("Escape");
    await until(async () => (await parked("--subscription", "mails")).length === dead.length - 1, "it is delivered");
    // The palette goes anywhere.
    await page.keyboard.press("/");
    await page.keyboard.type("audit");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/audit$/);
    await page.getByRole("rowheader", { name: "parked retry" }).first().waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("order/1");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/events\?key=order%2F1$/);
    await page.keyboard.press("/");
    await page.keyboard.type("pause orders");
    await page.keyboard.press("Enter");
    await dialog(page).getByRole("heading", { name: "Pause orders" }).waitFor();
    await page.keyboard.press("Escape");
    assert.equal((await subscription("orders")).state, "active");
  },

  async verify({ page, url, facts }) {
    await show(page, url, "#/verify?subscription=orders");
    await page.getByRole("button", { name: "Compare now" }).click();
    if (facts.compares) {
      const row = page.getByRole("row").filter({ hasText: "orders" });
      await row.getByText("adds up").waitFor();
    } else {
      await page.getByText("outbox verify --subscription orders").waitFor();
    }
  },
});
