// What the page does when the console asks who somebody is, and does not let everybody do everything.
// The console behind it is a real one; what it says of the person is said by the server of the test,
// which also counts what the page asks.
import assert from "node:assert/strict";
import { assertAccessible, assertClean, openBrowser, openTab, screenshot, show } from "./browser.mjs";
import { openPage } from "./server.mjs";
import { outbox } from "./scenario.mjs";

const [scenario, facts] = [process.argv[2], JSON.parse(process.argv[3])];

const json = (response, status, body) => {
  response.writeHead(status, { "Content-Type": status < 400 ? "application/json; charset=utf-8" : "application/problem+json; charset=utf-8", "Cache-Control": "no-store" });
  response.end(JSON.stringify(body));
  return true;
};

const person = (role, more = {}) => ({ person: "anna", role, payloads: true, login: true, version: "0.0.0", store: "a store", ...more });

/** Answers /session as one who has this role, and everything else as the console does. */
const as = (session) => (request, response) => request.url === "/api/v1/session" && json(response, 200, session);

const scenarios = {
  /** The token goes to the console once, and is kept nowhere. */
  async login(open) {
    const state = { logged: false, tokens: [] };
    const tab = await open((request, response) => {
      const refuse = () => json(response, 401, { title: "nobody is logged in", hint: "log in", status: 401 });
      if (request.url === "/api/v1/login") {
        let body = "";
        request.on("data", (part) => (body += part));
        request.on("end", () => {
          const { token } = JSON.parse(body);
          state.tokens.push([token, request.headers["content-type"], request.headers["outbox-console"], request.method]);
          state.logged = token === "right";
          if (state.logged) json(response, 200, person("operator"));
          else refuse();
        });
        return true;
      }
      if (request.url === "/api/v1/logout") {
        state.logged = false;
        return json(response, 200, {});
      }
      if (!request.url.startsWith("/api/")) return false;
      if (!state.logged) return refuse();
      return request.url === "/api/v1/session" && json(response, 200, person("operator"));
    });
    const { page } = tab;
    await page.goto(`${tab.url}/#/parked`);
    await page.getByLabel("Token").waitFor();
    await screenshot(page, "login");
    await assertAccessible(page, "the login");
    await page.getByLabel("Token").fill("wrong");
    await page.keyboard.press("Enter");
    await page.getByText("This token is not known, or has expired.").waitFor();
    assert.equal(await page.getByLabel("Token").inputValue(), "", "it is not left in the field");
    await page.getByLabel("Token").fill("right");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("heading", { name: "Parked events" }).waitFor();
    assert.deepEqual(state.tokens, ["wrong", "right"].map((token) => [token, "application/json", "1", "POST"]));
    assert.ok(!(await page.evaluate(() => JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }) + document.cookie)).includes("right"));
    // A session that has ended elsewhere asks again.
    state.logged = false;
    await page.getByLabel("Token").waitFor({ timeout: 30_000 });
    await page.getByLabel("Token").fill("right");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("Token").waitFor();
    assert.equal(state.logged, false);
  },

  /** The console's own tokens: a viewer looks, an operator retries, and the audit has the operator's name. */
  async tokens(open) {
    const tab = await open();
    const { page } = tab;
    const login = async (token) => {
      await page.getByLabel("Token").fill(token);
      await page.getByRole("button", { name: "Log in" }).click();
    };
    const [dead] = (await outbox("parked", "list", "--subscription", "mails")).events;
    await page.goto(`${tab.url}/#/parked?subscription=mails`);
    await login("outbox_wrong");
    await page.getByText("This token is not known, or has expired.").waitFor();
    await login(facts.viewer);
    await page.getByRole("heading", { name: "Parked events" }).waitFor();
    assert.ok(await page.getByRole("button", { name: `Retry seq ${dead.seq}`, exact: true }).isDisabled());
    await page.locator(".pulse.live").waitFor();
    await page.goto(`${tab.url}/#/events/${dead.id}`);
    await page.getByText("You may not read payloads and headers.").waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await login(facts.operator);
    await page.goto(`${tab.url}/#/parked?subscription=mails`);
    await page.getByRole("button", { name: `Retry seq ${dead.seq}`, exact: true }).click();
    await page.locator("dialog .preview").waitFor();
    await page.locator("dialog").getByRole("button", { name: "Retry", exact: true }).click();
    await page.locator("dialog .done").waitFor();
    const [newest] = (await outbox("audit")).changes;
    assert.deepEqual([newest.verb, newest.person, newest.origin], ["parked retry", "otto", "console"]);
    await page.goto(`${tab.url}/#/audit`);
    await page.getByRole("row").filter({ hasText: "otto" }).filter({ hasText: "parked retry" }).waitFor();
  },

  /** A viewer sees the buttons, and why they do nothing. */
  async viewer(open) {
    const posts = [];
    const tab = await open((request, response) => {
      if (request.method === "POST") posts.push(request.url);
      return as(person("viewer", { payloads: false }))(request, response);
    });
    const { page } = tab;
    for (const view of ["#/parked", "#/tasks", "#/subscriptions/orders", "#/replay"]) {
      await show(page, tab.url, view);
      await page.getByText("Your role is viewer: you can look at everything, and change nothing.").waitFor();
      const buttons = page.getByRole("button", { name: /^(Retry|Discard|Edit|Pause|Resume|Remove|Cancel|Count)/ });
      assert.ok((await buttons.count()) > 0, view);
      for (const button of await buttons.all()) {
        assert.ok(await button.isDisabled(), `${view}: ${await button.textContent()}`);
        assert.match((await button.getAttribute("title")) ?? "", /Your role is viewer: only an/);
      }
      await assertAccessible(page, view);
    }
    const [event] = (await outbox("events", "--key", "order/1")).events;
    await show(page, tab.url, `#/events/${event.id}`);
    await page.getByText("You may not read payloads and headers.").waitFor();
    assert.equal(await page.getByText("not markup").count(), 0);
    await page.keyboard.press("/");
    await page.keyboard.type("pause");
    await page.getByRole("listbox").getByRole("option").first().waitFor();
    assert.equal(await page.getByRole("listbox").getByRole("option", { name: /^Pause/ }).count(), 0);
    assert.deepEqual(posts, []);
  },

  async operator(open) {
    const tab = await open(as(person("operator")));
    await show(tab.page, tab.url, "#/parked?subscription=mails");
    assert.ok(await tab.page.getByRole("button", { name: /^Retry seq/ }).first().isEnabled());
    const edit = tab.page.getByRole("button", { name: /^Edit seq/ }).first();
    assert.ok(await edit.isDisabled());
    assert.match(await edit.getAttribute("title"), /only an admin/);
    await show(tab.page, tab.url, "#/tasks");
    assert.ok(await tab.page.getByRole("button", { name: "Pause schedule nightly" }).isEnabled());
    assert.ok(await tab.page.getByRole("button", { name: "Remove schedule nightly" }).isDisabled());
  },

  /** What only an admin may do: correct an event, remove a schedule. */
  async admin(open) {
    const tab = await open(as(person("admin")));
    const { page } = tab;
    const dialog = page.locator("dialog[open]");
    const [dead] = (await outbox("parked", "list", "--subscription", "mails")).events;
    await show(page, tab.url, `#/events/${dead.id}`);
    await page.getByRole("button", { name: "Edit and retry" }).click();
    await dialog.getByLabel("Payload").fill('{"text":"better"}');
    await dialog.getByLabel(/^Headers/).fill("tenant=7");
    await dialog.getByLabel(/^Reason/).fill("the address was mistyped");
    await screenshot(page, "dialog-edit");
    await assertAccessible(page, "the dialog of a correction");
    await dialog.getByRole("button", { name: "Preview" }).click();
    await dialog.locator(".preview").waitFor();
    const life = async () => (await outbox("events", "--id", dead.id)).events[0].subscriptions.find((one) => one.subscription === "mails");
    assert.equal((await life()).state, "dead", "a preview changes nothing");
    await dialog.getByRole("button", { name: "Send the corrected copy" }).click();
    await page.locator("dialog .done").waitFor();
    const edited = await life();
    assert.deepEqual([edited.state, edited.reason], ["edited", "the address was mistyped"]);
    assert.match(edited.replaced_by, /^[0-9a-f-]{36}$/);
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByText("a copy took its place").waitFor();
    await show(page, tab.url, "#/tasks?show=schedules");
    await page.getByRole("button", { name: "Remove schedule nightly" }).click();
    await dialog.locator(".preview").filter({ hasText: "would remove nightly" }).waitFor();
    assert.equal((await outbox("tasks", "schedule", "list")).schedules.length, 1);
    await dialog.getByRole("button", { name: "Remove it" }).click();
    await dialog.locator(".done").waitFor();
    assert.deepEqual((await outbox("tasks", "schedule", "list")).schedules, []);
  },

  /** Lists have a button for the next page if the console says where that begins. */
  async pages(open) {
    const asked = [];
    const event = (seq) => ({
      seq,
      id: `0198c5b2-6d1f-7c3a-9d5e-${String(seq).padStart(12, "0")}`,
      aggregate_type: "order",
      aggregate_id: String(seq),
      event_type: "Placed",
      content_type: null,
      created_at: "2026-01-05T08:00:00Z",
      occurred_at: null,
      in_log: true,
      content_kept: true,
      subscriptions: [],
    });
    const tab = await open((request, response) => {
      const { pathname, searchParams } = new URL(request.url, "http://page");
      if (pathname !== "/api/v1/events") return false;
      const cursor = searchParams.get("cursor");
      asked.push(cursor);
      return json(response, 200, { events: [event(cursor ? 1 : 2)], more: !cursor, next: cursor ? null : "a cursor/+", complete: true });
    });
    await show(tab.page, tab.url, "#/events");
    await tab.page.getByRole("button", { name: "More" }).click();
    await tab.page.getByRole("link", { name: "order/1" }).waitFor();
    await tab.page.getByRole("link", { name: "order/2" }).waitFor();
    await tab.page.getByRole("button", { name: "More" }).waitFor({ state: "detached" });
    assert.deepEqual(asked, [null, "a cursor/+"]);
  },

  /** A list that cannot be had says why, and is asked for again; an inbox without messages says what fills it. */
  async inbox(open) {
    const state = { away: true };
    const tab = await open((request, response) => {
      const { pathname } = new URL(request.url, "http://page");
      if (!pathname.startsWith("/api/v1/inbox")) return false;
      if (state.away) return json(response, 503, { title: "the store is locked", hint: "ask again", status: 503 });
      return json(response, 200, pathname.endsWith("/messages") ? { messages: [], more: false, next: null } : { consumers: [] });
    });
    await show(tab.page, tab.url, "#/inbox");
    assert.equal(await tab.page.getByText("The store is locked.").count(), 2);
    await screenshot(tab.page, "inbox-away");
    await assertAccessible(tab.page, "an inbox that cannot be read");
    state.away = false;
    await tab.page.getByRole("button", { name: "Try again" }).first().click();
    await tab.page.getByText("no consumer has received a message").waitFor();
    await tab.page.getByRole("button", { name: "Try again" }).click();
    await tab.page.getByText("No message was received.").waitFor();
    await screenshot(tab.page, "inbox-empty");
  },

  /** 200 subscriptions that all change each second: the time between frames is measured, and decides nothing. */
  async many(open) {
    const names = Array.from({ length: 200 }, (_, i) => `subscription-${String(i).padStart(3, "0")}`);
    let number = 0;
    const status = (history) => ({
      store: "a store",
      at: new Date().toISOString(),
      subscriptions: names.map((name, i) => ({
        name,
        state: i % 50 === 7 ? "paused" : "active",
        reason: i % 50 === 7 ? "a test" : null,
        trouble: null,
        trouble_since: null,
        sink: "null",
        stopped_event: null,
        pending: (number * (i + 3)) % 40,
        pending_is_more: false,
        delivered: number * (i + 1),
        filtered: 0,
        parked: { retrying: 0, waiting: 0, dead: i % 40 === 3 ? 1 : 0 },
        held_back: { parts: 0, bytes: 0 },
        generation: 1,
        config_version: 1,
        last_settled_at: new Date().toISOString(),
        oldest_pending_at: new Date().toISOString(),
        lag_seconds: (number % 7) / 10,
        matches_nothing: false,
        replay: null,
      })),
      relays: [{ id: "1", name: "a:1", owner: true, alive: true, lanes: "default 64", generation: 1, heartbeat_at: new Date().toISOString() }],
      queues: [],
      workers: [],
      adoptions: [],
      problems: [],
      history,
    });
    const minute = Math.floor(Date.now() / 60_000) * 60_000;
    const history = () => ({
      seconds: 3600,
      step_seconds: 60,
      lines: names.map((subscription) => ({
        subscription,
        queue: null,
        type: null,
        delivered: 1000,
        failed: 0,
        parked: 0,
        dead: 0,
        per_second: 1,
        p50_seconds: 0.01,
        p99_seconds: 0.2,
        most_pending: 3,
        oldest_seconds: 0,
        points: Array.from({ length: 60 }, (_, i) => ({
          at: new Date(minute - i * 60_000).toISOString(),
          delivered: (i * 7) % 31,
          failed: 0,
          parked: 0,
          dead: 0,
          pending: 1,
          oldest_seconds: 0,
          p50_seconds: 0.01,
          p99_seconds: 0.2,
        })),
      })),
    });
    const tab = await open((request, response) => {
      const { pathname } = new URL(request.url, "http://page");
      if (pathname === "/api/v1/live") {
        ++number;
        response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
        response.end(`retry: 1000\nevent: status\nid: ${number}\ndata: ${JSON.stringify(status(null))}\n\n`);
        return true;
      }
      if (pathname === "/api/v1/status") return json(response, 200, status(history()));
      if (pathname === "/api/v1/doctor") return json(response, 200, []);
      return pathname === "/api/v1/schedules" && json(response, 200, { schedules: [] });
    });
    const { page } = tab;
    await show(page, tab.url, "#/");
    await page.waitForFunction(() => document.querySelectorAll(".card").length === 200);
    await page.waitForFunction(() => document.querySelectorAll(".sparkline path").length > 0);
    await screenshot(page, "many");
    await browser.startTracing(page, { categories: ["devtools.timeline", "toplevel", "disabled-by-default-devtools.timeline"] });
    const measured = await page.evaluate(
      () =>
        new Promise((resolve) => {
          const frames = [];
          const tasks = [];
          new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration))).observe({ type: "longtask" });
          let before = performance.now();
          const end = before + 8000;
          const step = (now) => {
            frames.push(now - before);
            before = now;
            if (now < end) requestAnimationFrame(step);
            else resolve({ frames, tasks });
          };
          requestAnimationFrame(step);
        }),
    );
    const sorted = measured.frames.sort((a, b) => a - b);
    const at = (share) => sorted[Math.floor(sorted.length * share)]?.toFixed(1);
    const late = sorted.filter((one) => one > 17.5).length;
    console.log(`200 subscriptions: ${sorted.length} frames in 8 s, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(0.9999)} ms, ${late} later than 17.5 ms, ${measured.tasks.length} long tasks`);
    const trace = JSON.parse((await browser.stopTracing()).toString());
    const main = trace.traceEvents.find((one) => one.name === "thread_name" && one.args.name === "CrRendererMain");
    // Beside other programs a task waits for the processor; the time that it used is its own.
    const used = trace.traceEvents
      .filter((one) => one.ph === "X" && one.tid === main?.tid && one.pid === main?.pid && one.name === "RunTask")
      .map((one) => (one.tdur ?? one.dur) / 1000)
      .sort((a, b) => b - a);
    console.log(`200 subscriptions: the longest tasks of the page's thread used ${used.slice(0, 5).map((one) => one.toFixed(1)).join(", ")} ms of the processor`);
    await page.getByLabel("Name contains").fill("199");
    await page.waitForFunction(() => document.querySelectorAll(".card").length === 1);
    assert.match(page.url(), /name=199/);
  },
};

const browser = await openBrowser();
const opened = [];
const tabs = [];
try {
  await scenarios[scenario](async (answers) => {
    const page = await openPage(facts.url, answers);
    opened.push(page);
    const tab = { ...(await openTab(browser, page.url)), url: page.url };
    tabs.push(tab);
    return tab;
  });
  for (const tab of tabs) await assertClean(tab);
} catch (error) {
  for (const [at, tab] of tabs.entries()) await screenshot(tab.page, `failed-${scenario}-${at}`).catch(() => {});
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser.close();
  for (const page of opened) await page.close();
}
