// The command palette: "/" anywhere, then a few letters of where to go or what to do.
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { live } from "../api/live.js";
import { refusal, session } from "../api/session.js";
import { queueOf } from "../lib/findings.js";
import { go } from "../lib/navigation.js";
import { Observable, useObservable } from "../lib/observable.js";
import { href } from "../lib/route.js";
import { theme, zone } from "../lib/preferences.js";
import { pauseQueue, pauseSubscription, resumeQueue, resumeSubscription } from "./changes.js";
import { Dialog } from "./dialog.js";

export const paletteOpen = new Observable(false);

interface Entry {
  text: string;
  kind: string;
  act: () => void;
}

const SHOWN = 12;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const to = (text: string, address: string, kind = "Go to"): Entry => ({
  text,
  kind,
  act: () => {
    location.hash = address;
  },
});

/** What fits the letters: all words of them, in any order. */
function matches(entry: Entry, words: readonly string[]): boolean {
  const text = `${entry.kind} ${entry.text}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

function useEntries(typed: string): Entry[] {
  const status = useObservable(live, (one) => one.status);
  const who = useObservable(session);
  return useMemo(() => {
    const text = typed.trim();
    const found: Entry[] = [];
    if (UUID.test(text)) {
      const id = text.toLowerCase();
      found.push(to(`Event ${text}`, href(["events", id])), to(`Task ${text}`, href(["tasks", id])), to(`Message ${text}`, href(["inbox"], { id: text })));
    }
    if (/^[^\s/]+\/\S+$/.test(text)) found.push(to(`Events of key ${text}`, href(["events"], { key: text })));
    const all: Entry[] = [
      to("Overview", href([])),
      to("Events", href(["events"])),
      to("Parked events", href(["parked"])),
      to("Dead events", href(["parked"], { state: "dead" })),
      to("Replay", href(["replay"])),
      to("Tasks", href(["tasks"])),
      to("Dead tasks", href(["tasks"], { state: "dead" })),
      to("Running tasks", href(["tasks"], { state: "running" })),
      to("Schedules", href(["tasks"], { show: "schedules" })),
      to("Inbox", href(["inbox"])),
      to("Relays and workers", href([], { show: "relays" })),
      to("Verify", href(["verify"])),
      to("Audit", href(["audit"])),
    ];
    for (const one of status?.subscriptions ?? []) {
      if (queueOf(one.name) !== null) continue;
      all.push(to(one.name, href(["subscriptions", one.name]), "Subscription"));
      all.push(to(`events of ${one.name}`, href(["parked"], { subscription: one.name }), "Parked"));
      all.push(to(`events of ${one.name}`, href(["replay"], { subscription: one.name }), "Replay"));
    }
    const queues = [...new Set((status?.queues ?? []).map((one) => one.queue))];
    for (const queue of queues) all.push(to(queue, href(["tasks"], { queue }), "Queue"));
    if (refusal(who, "operator") === null) {
      for (const one of status?.subscriptions ?? []) {
        if (queueOf(one.name) !== null) continue;
        if (one.state === "active") all.push({ text: one.name, kind: "Pause", act: () => pauseSubscription(one.name) });
        else all.push({ text: one.name, kind: "Resume", act: () => resumeSubscription(one.name) });
      }
      for (const queue of queues) {
        all.push({ text: `queue ${queue}`, kind: "Pause", act: () => pauseQueue(queue, null) });
        all.push({ text: `queue ${queue}`, kind: "Resume", act: () => resumeQueue(queue, null) });
      }
    }
    all.push(
      { text: "dark", kind: "Colours", act: () => theme.set("dark") },
      { text: "light", kind: "Colours", act: () => theme.set("light") },
      { text: "as the system has them", kind: "Colours", act: () => theme.set("system") },
      { text: "UTC", kind: "Times in", act: () => zone.set("utc") },
      { text: "local time", kind: "Times in", act: () => zone.set("local") },
    );
    const words = text.toLowerCase().split(/\s+/).filter((word) => word !== "");
    found.push(...all.filter((entry) => matches(entry, words)));
    if (text !== "" && !UUID.test(text)) {
      found.push({ text: `Events of type ${text}`, kind: "Go to", act: () => go(["events"], { type: text }) });
      found.push({ text: `Message ${text} of the inbox`, kind: "Go to", act: () => go(["inbox"], { id: text }) });
    }
    return found.slice(0, SHOWN);
  }, [typed, status?.subscriptions.length, who]);
}

export function Palette() {
  return useObservable(paletteOpen) ? <Open /> : null;
}

function Open() {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const entries = useEntries(typed);
  const ids = useId();
  const active = Math.min(at, entries.length - 1);
  useLayoutEffect(() => input.current?.focus(), []);
  useEffect(() => {
    document.getElementById(`${ids}-${active}`)?.scrollIntoView({ block: "nearest" });
  }, [active]);
  const close = () => paletteOpen.set(false);
  const act = (entry: Entry | undefined) => {
    if (!entry) return;
    close();
    // The dialog gives the focus back when it closes; what is opened takes it after that.
    setTimeout(entry.act, 0);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt((active + 1) % Math.max(1, entries.length));
    else if (event.key === "ArrowUp") setAt((active - 1 + entries.length) % Math.max(1, entries.length));
    else if (event.key === "Enter") act(entries[active]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Go to, find or do" onClose={close}>
      <input
        ref={input}
        class="palette-input"
        role="combobox"
        aria-label="What to go to, find or do"
        aria-expanded="true"
        aria-controls={ids + "-list"}
        aria-activedescendant={entries.length > 0 ? `${ids}-${active}` : undefined}
        aria-autocomplete="list"
        placeholder="A view, a subscription, an event id, a key such as order/42 …"
        value={typed}
        autoComplete="off"
        spellcheck={false}
        onInput={(event) => {
          setTyped(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul class="palette" role="listbox" id={ids + "-list"} aria-label="Matches">
        {entries.map((entry, index) => (
          <li key={`${entry.kind}/${entry.text}`} id={`${ids}-${index}`} role="option" aria-selected={index === active} onMouseDown={(event) => event.preventDefault()} onClick={() => act(entry)}>
            <span class="kind">{entry.kind}</span> {entry.text}
          </li>
        ))}
      </ul>
      <p class="quiet">Up and down to choose, Enter to open, Escape to close.</p>
    </Dialog>
  );
}
