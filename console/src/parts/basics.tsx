// The small things of which all views are made.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Problem as ProblemDocument } from "../api/client.js";
import { mayReadPayloads, refusal, session } from "../api/session.js";
import type { Role, Severity } from "../api/types.js";
import { clock } from "../lib/clock.js";
import { ago, moment, number, shortMoment } from "../lib/format.js";
import { useObservable } from "../lib/observable.js";
import { zone } from "../lib/preferences.js";

/** A time in the zone that the person has chosen, with the other one beside it or on hover. */
export function Time({ at, relative = false, both = false }: { at: string | null | undefined; relative?: boolean; both?: boolean }) {
  const chosen = useObservable(zone);
  if (!at) return <span class="quiet">–</span>;
  const date = new Date(at);
  const other = chosen === "utc" ? "local" : "utc";
  const names = { utc: "UTC", local: "local" };
  const title = `${moment(date, chosen)} ${names[chosen]} = ${moment(date, other)} ${names[other]}`;
  return (
    <time dateTime={at} title={title}>
      {both ? (
        <>
          {moment(date, chosen)} <span class="quiet">{names[chosen]}</span>
          <span class="other-zone">
            {moment(date, other)} {names[other]}
          </span>
        </>
      ) : (
        shortMoment(date, chosen, new Date())
      )}
      {relative && <Ago at={date} />}
    </time>
  );
}

function Ago({ at }: { at: Date }) {
  const now = useObservable(clock);
  return <span class="quiet"> {ago(at, new Date(now))}</span>;
}

const MARKS: Record<string, string> = {
  error: "M8 1.5 15 14.5H1z M8 6v4 M8 12v.6",
  warning: "M8 1.5 15 14.5H1z M8 6v4 M8 12v.6",
  note: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1z M8 7v4.5 M8 4.4v.6",
  ok: "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1z M4.8 8.2l2.2 2.2 4.2-4.6",
};

const SEVERITY_WORDS: Record<Severity, string> = { error: "Error", warning: "Warning", note: "Note", ok: "In order" };

export function SeverityMark({ severity }: { severity: Severity }) {
  return (
    <span class={`severity ${severity}`}>
      <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden="true" focusable="false">
        <path d={MARKS[severity] ?? ""} />
      </svg>
      {SEVERITY_WORDS[severity]}
    </span>
  );
}

export type Tone = "good" | "bad" | "warn" | "calm" | "busy";

const TONES: Record<string, Tone> = {
  active: "good",
  published: "good",
  completed: "good",
  done: "good",
  forwarding: "good",
  alive: "good",
  paused: "warn",
  trouble: "warn",
  retrying: "warn",
  missed: "warn",
  "not alive": "bad",
  stopped: "bad",
  dead: "bad",
  broken: "bad",
  running: "busy",
  ready: "busy",
  loading: "busy",
};

/** A state in a word, with a shape beside its colour. */
export function State({ name, tone }: { name: string; tone?: Tone }) {
  return <span class={`state ${tone ?? TONES[name] ?? "calm"}`}>{name}</span>;
}

export function Copy({ text, what = "command" }: { text: string; what?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    } catch {
      // A page without TLS has no clipboard: the text can be selected instead.
      setCopied(false);
    }
  };
  return (
    <button type="button" class="small" onClick={copy} aria-label={copied ? "Copied" : `Copy the ${what}`}>
      {copied ? "Copied" : "Copy"}
    </button>
  );
}

export function Command({ text }: { text: string }) {
  return (
    <span class="command">
      <code>{text}</code>
      <Copy text={text} />
    </span>
  );
}

/** A button for a change. Whoever may not do it sees the button, and why it does nothing. */
export function ChangeButton({
  children,
  needs = "operator",
  payloads = false,
  unless,
  danger,
  small = true,
  ...rest
}: {
  children: ComponentChildren;
  needs?: Role;
  /** Whether it also shows what events contain. */
  payloads?: boolean;
  /** Why it cannot be done now. */
  unless?: string | null;
  danger?: boolean;
  small?: boolean;
  onClick: (event: MouseEvent) => void;
  "aria-label"?: string;
}) {
  const state = useObservable(session);
  const id = useId();
  const unread = payloads && !mayReadPayloads(state) ? "You may not read payloads, and so not correct them." : null;
  const why = refusal(state, needs) ?? unread ?? unless ?? null;
  return (
    <>
      <button
        type="button"
        class={`${small ? "small" : ""} ${danger ? "danger" : ""}`}
        disabled={why !== null}
        title={why ?? undefined}
        aria-describedby={why ? id : undefined}
        {...rest}
      >
        {children}
      </button>
      {why && (
        <span id={id} class="hidden-text">
          {why}
        </span>
      )}
    </>
  );
}

export function ProblemBox({ problem, again }: { problem: ProblemDocument; again?: () => void }) {
  return (
    <div class="box problem" role="alert">
      <p class="strong">{sentence(problem.title)}</p>
      <p>{sentence(problem.hint)}</p>
      {again && (
        <p>
          <button type="button" onClick={again}>
            Try again
          </button>
        </p>
      )}
    </div>
  );
}

/** What the store says begins with a small letter; on the page it is a sentence. */
export function sentence(text: string): string {
  if (text === "") return "";
  // The name of a setting or of a program stays as it is written: "http: cannot connect".
  if (/^\S*[.:/_]\S*( |$)/.test(text)) return text + (/[.!?:;…]$/.test(text) ? "" : ".");
  return text[0]!.toUpperCase() + text.slice(1) + (/[.!?:;…]$/.test(text) ? "" : ".");
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="box empty">{children}</div>;
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      <span class="spinner" aria-hidden="true" />
      Asking for {what} …
    </p>
  );
}

/** A part of a view with a heading, which is a landmark. */
export function Section({
  title,
  children,
  actions,
  id,
}: {
  title: string;
  children: ComponentChildren;
  actions?: ComponentChildren;
  id?: string;
}) {
  const heading = useId();
  return (
    <section aria-labelledby={heading} id={id} class="section" tabIndex={id ? -1 : undefined}>
      <div class="section-head">
        <h2 id={heading}>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </div>
      {children}
    </section>
  );
}

/** A table that scrolls inside itself where the screen is narrow. */
export function Table({
  caption,
  head,
  children,
  hideCaption = true,
}: {
  caption: string;
  head: ComponentChildren[];
  children: ComponentChildren;
  hideCaption?: boolean;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [scrolls, setScrolls] = useState(false);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => setScrolls(element.scrollWidth > element.clientWidth + 1);
    const observer = new ResizeObserver(look);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return (
    <div class="scrolls" ref={box} {...(scrolls ? { tabIndex: 0, role: "region", "aria-label": `Table: ${caption}` } : {})}>
      <table>
        <caption class={hideCaption ? "hidden-text" : ""}>{caption}</caption>
        <thead>
          <tr>
            {head.map((cell, at) => (
              <th key={at} scope="col">
                {cell}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function Progress({ done, all, label }: { done: number; all: number; label: string }) {
  const percent = all > 0 ? Math.min(100, Math.round((done / all) * 100)) : 0;
  return (
    <span class="progress">
      <progress max={100} value={percent} aria-label={label} />
      <span>{percent} %</span>
    </span>
  );
}

export function Fact({ name, children, wide = false }: { name: string; children: ComponentChildren; wide?: boolean }) {
  return (
    <div class={wide ? "fact wide" : "fact"}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

export function More({ more, loading, shown }: { more: (() => void) | null; loading: boolean; shown: number }) {
  if (!more) return null;
  return (
    <p class="more">
      <button type="button" onClick={more} disabled={loading}>
        More
      </button>
      <span class="quiet">{number(shown)} shown</span>
    </p>
  );
}
