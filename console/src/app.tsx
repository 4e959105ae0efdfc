import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { live } from "./api/live.js";
import { askSession, logout, session } from "./api/session.js";
import type { Session } from "./api/types.js";
import { clock } from "./lib/clock.js";
import { duration, shortMoment } from "./lib/format.js";
import { route } from "./lib/navigation.js";
import { useObservable } from "./lib/observable.js";
import { theme, zone, type Theme } from "./lib/preferences.js";
import { href, type Route } from "./lib/route.js";
import { Command, Empty, ProblemBox, SeverityMark, sentence } from "./parts/basics.js";
import { ChangeDialog, said } from "./parts/change.js";
import { Palette, paletteOpen } from "./parts/palette.js";
import { Audit } from "./views/audit.js";
import { EditDialog } from "./views/edit.js";
import { EventView } from "./views/event.js";
import { Events } from "./views/events.js";
import { Inbox } from "./views/inbox.js";
import { Login } from "./views/login.js";
import { Overview } from "./views/overview.js";
import { Parked } from "./views/parked.js";
import { ReplayView } from "./views/replay.js";
import { Subscription } from "./views/subscription.js";
import { TaskView } from "./views/task.js";
import { Tasks } from "./views/tasks.js";
import { VerifyView } from "./views/verify.js";

const VIEWS = [
  ["", "Overview"],
  ["events", "Events"],
  ["parked", "Parked"],
  ["replay", "Replay"],
  ["tasks", "Tasks"],
  ["inbox", "Inbox"],
  ["verify", "Verify"],
  ["audit", "Audit"],
] as const;

function view({ path }: Route): { title: string; content: ComponentChildren } {
  const [name = "", one] = path;
  switch (name) {
    case "":
      return { title: "Overview", content: <Overview /> };
    case "subscriptions":
      return one === undefined ? { title: "Overview", content: <Overview /> } : { title: one, content: <Subscription key={one} name={one} /> };
    case "events":
      return one === undefined ? { title: "Events", content: <Events /> } : { title: "Event", content: <EventView key={one} id={one} /> };
    case "parked":
      return { title: "Parked", content: <Parked /> };
    case "replay":
      return { title: "Replay", content: <ReplayView /> };
    case "tasks":
      return one === undefined ? { title: "Tasks", content: <Tasks /> } : { title: "Task", content: <TaskView key={one} id={one} /> };
    case "inbox":
      return { title: "Inbox", content: <Inbox /> };
    case "verify":
      return { title: "Verify", content: <VerifyView /> };
    case "audit":
      return { title: "Audit", content: <Audit /> };
    default:
      return {
        title: "Not found",
        content: (
          <>
            <h1>There is no such view</h1>
            <Empty>
              <p>
                The address names a view that this page does not have. <a href={href([])}>Go to the overview</a>
              </p>
            </Empty>
          </>
        ),
      };
  }
}

export function App() {
  const state = useObservable(session);
  switch (state.kind) {
    case "asking":
      return (
        <main class="first">
          <h1>outbox console</h1>
          <p role="status">Asking the console who you are …</p>
        </main>
      );
    case "login":
      return <Login />;
    case "failed":
      return (
        <main class="first">
          <h1>outbox console</h1>
          <ProblemBox problem={state.problem} again={() => void askSession()} />
        </main>
      );
    case "open":
      return <Shell who={state.session} />;
  }
}

/** Whether letters that are typed now are meant for a field. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function Shell({ who }: { who: Session }) {
  const at = useObservable(route);
  const main = useRef<HTMLElement>(null);
  const first = useRef(true);
  const { title, content } = view(at);
  const place = at.path.join("/");
  useEffect(() => {
    document.title = `${title} – outbox console`;
    // A new view is read from its beginning; the first one leaves the focus where the browser has it.
    if (!first.current) main.current?.focus({ preventScroll: true });
    if (!first.current && !at.query["show"]) window.scrollTo(0, 0);
    first.current = false;
  }, [place]);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent) => {
      const palette = (event.key === "/" && !isTyping(event.target) && !event.ctrlKey && !event.metaKey && !event.altKey) || (event.key === "k" && (event.ctrlKey || event.metaKey));
      if (!palette || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      paletteOpen.set(true);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  const here = at.path[0] === "subscriptions" ? "" : (at.path[0] ?? "");
  const skip = (event: Event) => {
    event.preventDefault();
    main.current?.focus();
  };
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header>
        <a class="brand" href={href([])}>
          outbox
        </a>
        <span class="store" title={who.store}>
          {who.store}
        </span>
        <button type="button" class="search" onClick={() => paletteOpen.set(true)} aria-keyshortcuts="/">
          <span>Go to, find, do</span> <kbd>/</kbd>
        </button>
        <Pulse />
        <Choices who={who} />
      </header>
      <nav aria-label="Views">
        <ul>
          {VIEWS.map(([name, text]) => (
            <li key={name}>
              <a href={href(name === "" ? [] : [name])} aria-current={here === name ? "page" : undefined}>
                {text}
              </a>
            </li>
          ))}
        </ul>
      </nav>
      <main id="main" ref={main} tabIndex={-1}>
        <Away />
        {who.role === "viewer" && <p class="box note">Your role is viewer: you can look at everything, and change nothing.</p>}
        {content}
      </main>
      <Said />
      <ChangeDialog />
      <EditDialog />
      <Palette />
    </>
  );
}

/** Whether what is shown is of this second. */
function Pulse() {
  const { problem, status } = useObservable(live);
  const word = problem ? "stale" : status ? "live" : "connecting";
  return (
    <span class={`pulse ${word}`} title={problem ? problem.title : "Changes are shown within a second or two"}>
      {word}
    </span>
  );
}

const THEMES: readonly (readonly [Theme, string])[] = [
  ["system", "System colours"],
  ["light", "Light"],
  ["dark", "Dark"],
];

function Choices({ who }: { who: Session }) {
  const colours = useObservable(theme);
  const times = useObservable(zone);
  return (
    <div class="choices">
      <select aria-label="Zone of times" value={times} onChange={(event) => zone.set(event.currentTarget.value === "utc" ? "utc" : "local")}>
        <option value="local">Local time</option>
        <option value="utc">UTC</option>
      </select>
      <select aria-label="Colours" value={colours} onChange={(event) => theme.set(event.currentTarget.value as Theme)}>
        {THEMES.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
      <span class="who" title={`version ${who.version}`}>
        {who.person} <span class="quiet">{who.role}</span>
      </span>
      {who.login && (
        <button type="button" class="small" onClick={() => void logout()}>
          Log out
        </button>
      )}
    </div>
  );
}

/** Says since when nothing newer is known, and what to do. */
function Away() {
  const { problem, awaySince, status, at } = useObservable(live);
  const now = useObservable(clock);
  const chosen = useObservable(zone);
  if (!problem || awaySince === null) return null;
  const since = shortMoment(new Date(awaySince), chosen, new Date(now));
  const silent = problem.status === 0;
  const seconds = Math.floor((now - awaySince) / 1000);
  return (
    <div class="box problem away" role="alert">
      <p class="strong">
        <SeverityMark severity="error" /> {silent ? "The console does not answer" : "The database is away"} since {since}
        {/* What changes each second is not read out each second. */}
        {seconds > 0 && (
          <span class="quiet" aria-hidden="true">
            {" "}
            for {duration(seconds)}
          </span>
        )}
      </p>
      {!silent && <p>{sentence(problem.title)}</p>}
      <p>
        <span class="quiet">What it means: </span>
        {silent
          ? "Deliveries do not depend on the console: relays and workers go on."
          : "Relays deliver nothing while they cannot reach it, and services cannot commit. What was committed is not lost, and relays go on by themselves when it is back."}
      </p>
      <p>
        <span class="quiet">What to do: </span>
        {problem.hint === "" ? "Look at the database server and the network." : sentence(problem.hint)}
      </p>
      <p>
        {status ? `What you see below is of ${shortMoment(new Date(at), chosen, new Date(now))}; changes are refused until it is back. ` : "Nothing can be shown until it is back. "}
        The page goes on by itself.
      </p>
      {!silent && (
        <p>
          <Command text="outbox doctor" />
        </p>
      )}
    </div>
  );
}

function Said() {
  const text = useObservable(said);
  return (
    <div class="hidden-text" aria-live="polite">
      {text}
    </div>
  );
}
