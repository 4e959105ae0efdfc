// Each view at three widths, dark and light: a picture, nothing for axe to find, nothing wider than
// the screen; and what a person sees of the store.
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { assertAccessible, assertClean, assertFits, openTab, screenshot, settled, show, WIDTHS } from "./browser.mjs";
import { main, outbox } from "./scenario.mjs";

async function views() {
  const [order] = (await outbox("events", "--key", "order/1")).events;
  const [dead] = (await outbox("parked", "list", "--subscription", "mails")).events;
  const tasks = (await outbox("tasks", "list")).tasks;
  const running = tasks.find((one) => one.state === "running");
  return {
    overview: "#/",
    subscription: "#/subscriptions/orders?since=1h",
    events: "#/events",
    event: `#/events/${order.id}`,
    "event-dead": `#/events/${dead.id}`,
    parked: "#/parked",
    replay: "#/replay?subscription=orders",
    tasks: "#/tasks",
    task: `#/tasks/${running.id}`,
    inbox: "#/inbox",
    "inbox-nothing": "#/inbox?id=no-such",
    verify: "#/verify",
    audit: "#/audit",
    nothing: "#/events?key=no%2Fsuch",
    unknown: "#/somewhere",
  };
}

await main({
  async pictures({ browser, url }) {
    const all = await views();
    for (const width of WIDTHS) {
      for (const colorScheme of ["light", "dark"]) {
        const tab = await openTab(browser, url, { viewport: { width, height: 900 }, colorScheme });
        for (const [name, hash] of Object.entries(all)) {
          await show(tab.page, url, hash);
          const what = `${name}-${width}-${colorScheme}`;
          await screenshot(tab.page, what);
          await assertFits(tab.page, what);
          await assertAccessible(tab.page, what);
        }
        await assertClean(tab);
        await tab.context.close();
      }
    }
  },

  async dialogs({ page, url }) {
    await show(page, url, "#/parked");
    await page.getByRole("button", { name: /^Discard … 3 events of mails/ }).click();
    await page.getByText("would discard").first().waitFor();
    await screenshot(page, "dialog-discard");
    await assertAccessible(page, "the dialog of a change");
    // The focus stays in the dialog, and goes back to the button when Escape closes it.
    for (let i = 0; i < 8; ++i) {
      await page.keyboard.press("Tab");
      assert.ok(await page.evaluate(() => document.activeElement === document.body || document.activeElement.closest("dialog") !== null), "the focus has left the dialog");
    }
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^Discard/);
    await page.keyboard.press("/");
    await page.getByRole("combobox", { name: "What to go to" }).waitFor();
    await screenshot(page, "palette");
    await assertAccessible(page, "the palette");
  },

  async seen({ page, url }) {
    await show(page, url, "#/");
    await page.getByRole("listitem").filter({ hasText: "5 events are dead" }).waitFor();
    await page.getByRole("heading", { name: "orders" }).waitFor();
    assert.equal(await page.locator(".card").count(), 3, "a card for each subscription, none for the parts of a queue");
    // A payload is text, whatever is in it.
    const [order] = (await outbox("events", "--key", "order/1")).events;
    await show(page, url, `#/events/${order.id}`);
    await page.getByLabel("Payload").getByText("<b>not markup</b>").waitFor();
    assert.equal(await page.locator("pre b").count(), 0);
    await page.getByText("delivered", { exact: true }).waitFor();
    // The other events of its request and of its key.
    await page.getByRole("button", { name: "Find its other events" }).click();
    await page.getByRole("table", { name: "Events of the same correlation id" }).waitFor();
    assert.equal(await page.getByRole("table", { name: "Events of the same correlation id" }).getByRole("link").count(), 5);
    await page.getByRole("link", { name: "order/1: all events of this key" }).click();
    await page.getByRole("table", { name: "Events, the newest first" }).waitFor();
    assert.equal(new URL(page.url()).hash, "#/events?key=order%2F1");
    await settled(page);
    assert.equal(await page.locator("tbody tr").count(), 1);
    // A filter that is typed is in the address, and the address shows the same again.
    await page.getByLabel("Key", { exact: true }).fill("");
    await page.getByLabel("Type").fill("MailWanted");
    await page.getByLabel("Type").press("Enter");
    await page.waitForURL(/#\/events\?type=MailWanted$/);
    await page.reload();
    await page.waitForFunction(() => document.querySelectorAll("tbody tr").length === 6);
    // A subscription: its filter, its destination, who delivers.
    await show(page, url, "#/subscriptions/orders");
    for (const text of ["orders.jsonl", "file:orders"]) await page.getByText(text).first().waitFor();
    await page.getByRole("table", { name: "Relays that deliver it" }).waitFor();
    // Times are local, with UTC beside them or instead of them.
    const local = await page.locator("time").first().getAttribute("title");
    assert.match(local, / local = .* UTC$/);
    await page.getByLabel("Zone of times").selectOption("utc");
    assert.match(await page.locator("time").first().getAttribute("title"), / UTC = .* local$/);
    // The colours are chosen, and stay chosen.
    await page.getByLabel("Colours").selectOption("dark");
    await page.reload();
    await settled(page);
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
  },

  /** From the palette to a message and the task that it became, without a mouse. */
  async inbox({ page, url }) {
    await show(page, url, "#/");
    await page.keyboard.press("/");
    await page.keyboard.type("inbox");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/inbox$/);
    const messages = page.getByRole("table", { name: "Messages, the newest first" });
    await messages.waitFor();
    assert.equal(await messages.locator("tbody tr").count(), 4);
    const consumers = page.getByRole("table", { name: "Consumers" });
    assert.match(await consumers.getByRole("row", { name: /^mails/ }).textContent(), /^mails2/);
    await consumers.getByRole("link", { name: "billing" }).focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/inbox\?consumer=billing$/);
    await settled(page);
    assert.deepEqual(await messages.locator("tbody code").allTextContents(), ["b-2", "b-1"]);
    // The address shows the same again; an id is searched for in the inbox of every consumer.
    await page.reload();
    await settled(page);
    assert.equal(await page.getByLabel("Consumer", { exact: true }).inputValue(), "billing");
    assert.equal(await messages.locator("tbody tr").count(), 2);
    await page.getByLabel("Consumer", { exact: true }).fill("");
    await page.getByLabel("Id", { exact: true }).fill("b-1");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/inbox\?id=b-1$/);
    await settled(page);
    assert.deepEqual(await messages.locator("tbody tr td:nth-child(2)").allTextContents(), ["mails", "billing"]);
    await messages.getByText("applied by a program").waitFor();
    await messages.getByRole("link", { name: "its task, of message b-1" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "report.long" }).waitFor();
  },

  async size({ page, url }) {
    const bodies = [];
    page.on("response", async (response) => {
      if (!response.url().includes("/api/")) bodies.push(response.body().then((body) => gzipSync(body).length));
    });
    await show(page, url, "#/");
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    const size = (await Promise.all(bodies)).reduce((all, one) => all + one, 0);
    console.log(`page: ${(size / 1024).toFixed(1)} KiB compressed, first paint after ${paint?.toFixed(0)} ms`);
    assert.ok(size < 120 * 1024, `the page has ${size} bytes`);
  },
});
