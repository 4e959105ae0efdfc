// What is wrong, in words, with what it means for events and what mends it. Pure.
//
// The live document is a second old, and the doctor's answer may be minutes old; so whatever the
// live document can tell is told from it, and the doctor adds the rest.
import type { DoctorFinding, Schedule, Severity, Status, SubscriptionStatus, Task } from "../api/types.js";
import { bytes, count, duration, number } from "./format.js";
import { href } from "./route.js";

/** A change that the API can make to mend what was found. */
export interface Remedy {
  kind: "resume-subscription" | "resume-queue" | "cancel-task";
  name: string;
}

export interface Finding {
  /** The check and its subject: what is found twice is shown once. */
  key: string;
  severity: Severity;
  /** The subscription, queue or part of the store in question; empty if it is all of it. */
  subject: string;
  what: string;
  meaning: string;
  /** What to do, in words. */
  advice: string;
  /** What to copy into a shell or into the database; empty if there is nothing. */
  command: string;
  links: { text: string; to: string }[];
  /** A moment that says more, with the words before it. */
  when?: { text: string; at: string };
  remedy?: Remedy;
}

const ORDER: Record<Severity, number> = { error: 0, warning: 1, note: 2, ok: 3 };

/** A run that takes longer than this is shown as stuck: it is the default deadline of a run. */
export const STUCK_SECONDS = 30 * 60;
/** A tick that is later than this was missed: workers look at least that often. */
export const MISSED_SECONDS = 60;
/** Events that are pending for longer are late. */
export const LATE_SECONDS = 60;

/** The queue of a subscription that delivers tasks: "task.reports" or "task3.reports!sms". */
export function queueOf(subscription: string): string | null {
  const found = /^task\d?\.([^!]+)/.exec(subscription);
  return found?.[1] ?? null;
}

/** A word of a shell, quoted if it needs to be. */
export function shellWord(word: string): string {
  return /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Divides what stands in a store or a log, "what (hint: what to do)". */
export function withoutHint(text: string): { text: string; hint: string } {
  const found = /^(.*?) \(hint: (.*)\)$/s.exec(text);
  return found ? { text: found[1] ?? "", hint: found[2] ?? "" } : { text, hint: "" };
}

/** Whether a remedy can be pasted as it is, or is advice in words. */
export function isCommand(text: string): boolean {
  return /^(outbox|outbox-\w+|chmod|chown|systemctl|df|psql|sudo) /.test(text) || /^[A-Z]{4,}[ (].*;$/s.test(text);
}

function remedyText(text: string | null): { advice: string; command: string } {
  if (!text) return { advice: "", command: "" };
  if (isCommand(text)) return { advice: "", command: text };
  const found = /^(.*?)[;:] (outbox .*)$/s.exec(text);
  return found ? { advice: found[1] ?? "", command: found[2] ?? "" } : { advice: text, command: "" };
}

function ofSubscription(one: SubscriptionStatus, status: Status): Finding[] {
  const found: Finding[] = [];
  const queue = queueOf(one.name);
  const noun = queue ? "task" : "event";
  const link = queue
    ? { text: `Queue ${queue}`, to: href(["tasks"], { queue }) }
    : { text: `Subscription ${one.name}`, to: href(["subscriptions", one.name]) };
  const resume: Remedy = { kind: "resume-subscription", name: one.name };
  const resumeCommand = `outbox subscription resume ${shellWord(one.name)}`;
  if (one.state === "stopped") {
    const links = [link];
    if (one.stopped_event) links.unshift({ text: "The event at which it stopped", to: href(["events", one.stopped_event.id]) });
    found.push({
      key: `subscriptions:${one.name}`,
      severity: "error",
      subject: one.name,
      what: `it has stopped: ${one.reason ?? "no reason is recorded"}`,
      meaning: "None of its events is delivered until a person acts. None is lost: they stay in the log.",
      advice: "Mend the cause, then resume it. It goes on at the event at which it stopped.",
      command: resumeCommand,
      links,
      remedy: resume,
    });
  } else if (one.state === "paused") {
    found.push({
      key: `subscriptions:${one.name}`,
      severity: "note",
      subject: queue ?? one.name,
      what: `it is paused: ${one.reason ?? "no reason is recorded"}`,
      meaning: `Its ${noun}s wait, and hold history back. None is lost.`,
      advice: "Resume it when the reason is gone. It goes on where it was paused.",
      command: queue ? `outbox tasks resume ${shellWord(queue)}` : resumeCommand,
      links: [link],
      remedy: queue ? { kind: "resume-queue", name: queue } : resume,
    });
  } else if (one.trouble !== null) {
    const { text, hint } = withoutHint(one.trouble);
    found.push({
      key: `subscriptions:${one.name}`,
      severity: "warning",
      subject: one.name,
      what: `its destination does not take events: ${text}`,
      meaning: "Its events stay pending; none is lost. Delivery goes on by itself as soon as the destination answers.",
      advice: hint === "" ? "Look at the destination." : hint[0]?.toUpperCase() + hint.slice(1) + ".",
      command: `outbox sinks ${shellWord(one.name)}`,
      links: [link],
      ...(one.trouble_since ? { when: { text: "Since", at: one.trouble_since } } : {}),
    });
  }
  if (one.parked.dead > 0) {
    found.push({
      key: `parked:${one.name}`,
      severity: "warning",
      subject: queue ?? one.name,
      what: one.parked.dead === 1 ? `a ${noun} is dead` : `${number(one.parked.dead)} ${noun}s are dead`,
      meaning: queue
        ? "A dead task does not run again until a person retries or cancels it."
        : "A dead event is not sent again until a person retries, corrects or discards it.",
      advice: "See why, mend the cause, then retry.",
      command: queue
        ? `outbox tasks list --queue ${shellWord(queue)} --state dead`
        : `outbox parked list --subscription ${shellWord(one.name)} --state dead`,
      links: [
        queue
          ? { text: "See and retry dead tasks", to: href(["tasks"], { queue, state: "dead" }) }
          : { text: "See and retry dead events", to: href(["parked"], { subscription: one.name, state: "dead" }) },
      ],
    });
  }
  if (one.state === "active" && one.trouble === null && one.pending > 0 && (one.lag_seconds ?? 0) > LATE_SECONDS) {
    found.push({
      key: `pending:${one.name}`,
      severity: "warning",
      subject: one.name,
      what: `${one.pending_is_more ? "more than " : ""}${count(noun, one.pending)} pending, the oldest for ${duration(one.lag_seconds ?? 0)}`,
      meaning: "They are late. None is lost.",
      advice: "See whether a relay delivers it, and whether its destination keeps up.",
      command: "",
      links: [link],
    });
  }
  if (one.held_back.bytes > 0) {
    const over = status.problems.some((text) => text.startsWith(`history ${one.name}: `));
    const rests = one.state !== "active";
    found.push({
      key: `history:${one.name}`,
      severity: over ? "error" : "note",
      subject: one.name,
      what: `holds back ${bytes(one.held_back.bytes)} of history that could be removed${over ? ", more than relay.quota" : ""}`,
      meaning: "The log grows until this subscription has delivered that. Nothing undelivered is removed.",
      advice: rests
        ? `It is ${one.state}. Resume it; or, if nobody needs its events any more, drop it: outbox subscription drop ${shellWord(one.name)}`
        : "It catches up by itself if its destination takes events.",
      command: rests ? resumeCommand : "outbox prune",
      links: [link],
      ...(rests && !queue ? { remedy: resume } : {}),
    });
  }
  if (one.matches_nothing && !queue) {
    found.push({
      key: `filter:${one.name}`,
      severity: "warning",
      subject: one.name,
      what: `its filter has matched none of ${count("event", one.filtered)}`,
      meaning: "It delivers nothing: the filter is probably wrong.",
      advice: "Compare its filter with the types of your events.",
      command: "outbox subscription list",
      links: [link],
    });
  }
  return found;
}

function ofRelays(status: Status): Finding[] {
  const alive = status.relays.filter((relay) => relay.alive);
  const links = [{ text: "Relays and workers", to: href([], { show: "relays" }) }];
  const seen = status.relays.map((relay) => relay.heartbeat_at).filter((at) => at !== null).sort();
  const last = seen[seen.length - 1];
  if (alive.length === 0) {
    const onlyQueues = status.subscriptions.length > 0 && status.subscriptions.every((one) => queueOf(one.name) !== null);
    return [
      {
        key: "relays:",
        severity: "error",
        subject: "",
        what: onlyQueues ? "no worker is alive" : "no relay is alive",
        meaning: onlyQueues
          ? "No task is done. Nothing is lost: tasks wait in the log."
          : "Nothing is delivered. Nothing is lost: events wait in the log, and a relay that starts goes on where the last one was.",
        advice: "Start one, or see in the log of the service why it ended.",
        command: onlyQueues ? "outbox work" : "outbox relay",
        links,
        ...(last ? { when: { text: "The last heartbeat was at", at: last } } : {}),
      },
    ];
  }
  if (!alive.some((relay) => relay.owner)) {
    return [
      {
        key: "relays:",
        severity: "warning",
        subject: "",
        what: `no live relay has lanes; ${count("relay", alive.length)} wait for them`,
        meaning: "Nothing is delivered until the lease of the former owner ends.",
        advice: "Wait for half a minute. If it stays so, see the relays' logs.",
        command: "",
        links,
      },
    ];
  }
  return [];
}

function ofQueues(status: Status): Finding[] {
  return status.queues
    .filter((line) => {
      const waits = line.ready + line.scheduled + line.retrying + line.waiting > 0;
      return !line.has_handler && waits && status.workers.some((worker) => worker.alive && line.queue in worker.queues);
    })
    .map((line) => ({
      key: `queues:${line.queue}`,
      severity: "warning" as const,
      subject: line.queue,
      what: `no worker has a handler for type ${line.type ?? "-"}, and ${count("task", line.ready + line.scheduled + line.retrying + line.waiting)} of it wait`,
      meaning: "They wait until a worker has a handler. None is lost.",
      advice: "Start a worker that has one.",
      command: `outbox tasks list --queue ${shellWord(line.queue)} --type ${shellWord(line.type ?? "")}`,
      links: [{ text: `Queue ${line.queue}`, to: href(["tasks"], { queue: line.queue }) }],
    }));
}

/** Problems that only the store's own words tell: "verify orders: ...; ... (hint: ...)". */
function ofProblems(status: Status, covered: ReadonlySet<string>): Finding[] {
  const found: Finding[] = [];
  for (const problem of status.problems) {
    const { text, hint } = withoutHint(problem);
    const parts = /^(\w+)(?: (.+?))?: (.*?)(?:; (.*))?$/s.exec(text);
    if (!parts) continue;
    const [, check = "", subject = "", what = "", reason = ""] = parts;
    if (covered.has(`${check}:${subject}`) || (check === "relays" && covered.has("relays:"))) continue;
    // What a destination in trouble or a missing relay explains is no finding of its own.
    if (check === "pending" && (covered.has(`subscriptions:${subject}`) || covered.has("relays:"))) continue;
    found.push(ofDoctor({ check, subject, severity: check === "verify" ? "error" : "warning", what, reason, command: hint }));
  }
  return found;
}

const CAPITAL = (text: string): string => (text === "" ? "" : text[0]!.toUpperCase() + text.slice(1) + (/[.!?;]$/.test(text) ? "" : "."));

export function ofDoctor(one: DoctorFinding): Finding {
  const subject = one.subject ?? "";
  const links: Finding["links"] = [];
  if (one.check === "verify") links.push({ text: "Compare now", to: href(["verify"], { subscription: subject }) });
  else if (one.check === "consumer") links.push({ text: `Messages of ${subject}`, to: href(["inbox"], { consumer: subject }) });
  else if (["sink", "subscriptions", "difference", "history", "pending", "relays"].includes(one.check) && subject !== "" && queueOf(subject) === null)
    links.push({ text: `Subscription ${subject}`, to: href(["subscriptions", subject]) });
  return {
    key: `${one.check}:${subject}`,
    severity: one.severity,
    subject: subject === "" ? one.check : subject,
    what: one.what,
    meaning: CAPITAL(one.reason ?? ""),
    ...remedyText(one.command),
    links,
  };
}

export function findingsOfTasks(tasks: readonly Task[], status: Pick<Status, "workers">, now: number): Finding[] {
  const found: Finding[] = [];
  for (const task of tasks) {
    if (task.state !== "running" || !task.running_since) continue;
    const ran = (now - Date.parse(task.running_since)) / 1000;
    const worker = status.workers.find((one) => one.name === task.worker);
    const gone = worker !== undefined && !worker.alive;
    if (ran < STUCK_SECONDS && !gone) continue;
    found.push({
      key: `stuck:${task.id}`,
      severity: "warning",
      subject: task.queue,
      what: `task ${task.type} has run for ${duration(ran)}${task.worker ? ` on ${task.worker}` : ""}${gone ? ", and that worker is not alive" : ""}`,
      meaning: "It is stuck, or slower than expected; later tasks of its key wait behind it.",
      advice: gone ? "Another worker takes it over within half a minute, if one runs." : "See how far it is; cancel it if it does nothing any more.",
      command: gone ? `outbox work --queue ${shellWord(task.queue)}` : `outbox tasks cancel ${task.id} --reason "stuck"`,
      links: [{ text: "This task", to: href(["tasks", task.id]) }],
      when: { text: "It runs since", at: task.running_since },
      remedy: { kind: "cancel-task", name: task.id },
    });
  }
  return found;
}

export const isMissed = (one: Schedule, now: number): boolean =>
  !one.paused && one.next_at !== null && now - Date.parse(one.next_at) > MISSED_SECONDS * 1000;

export function findingsOfSchedules(schedules: readonly Schedule[], now: number): Finding[] {
  return schedules
    .filter((one) => isMissed(one, now))
    .map((one) => ({
      key: `schedule:${one.name}`,
      severity: "warning" as const,
      subject: one.queue,
      what: `schedule ${one.name} missed its tick`,
      ...(one.next_at ? { when: { text: "The tick was due at", at: one.next_at } } : {}),
      meaning:
        one.missed === "skip"
          ? "Its task was not enqueued, and a tick that is more than a minute late is skipped."
          : "Its task was not enqueued. A worker that starts makes up for it.",
      advice: `No worker of queue ${one.queue} runs that ticks. Start one.`,
      command: `outbox work --queue ${shellWord(one.queue)}`,
      links: [{ text: "Schedules", to: href(["tasks"], { show: "schedules" }) }],
    }));
}

export interface Seen {
  status: Status | null;
  doctor: readonly DoctorFinding[] | null;
  running: readonly Task[];
  schedules: readonly Schedule[];
  now: number;
}

/** All findings, the worst first. */
export function findings({ status, doctor, running, schedules, now }: Seen): Finding[] {
  const all: Finding[] = [];
  if (status) {
    all.push(...ofRelays(status));
    for (const one of status.subscriptions) all.push(...ofSubscription(one, status));
    all.push(...ofQueues(status));
    all.push(...findingsOfTasks(running, status, now));
    // Ticks are missed because no relay or worker runs; both are worth reading.
    all.push(...findingsOfSchedules(schedules, now));
    all.push(...ofProblems(status, new Set(all.map((one) => one.key))));
  }
  // The doctor's commands also say which store they are for.
  for (const one of all) {
    const same = doctor?.find((each) => `${each.check}:${each.subject ?? ""}` === one.key && each.severity !== "ok");
    if (one.command !== "" && same?.command?.startsWith(one.command + " ")) one.command = same.command;
  }
  const covered = new Set(all.map((one) => one.key));
  const live = status ? ["relays", "subscriptions", "pending", "parked", "queues", "history"] : [];
  for (const one of doctor ?? []) {
    if (one.severity === "ok") continue;
    const found = ofDoctor(one);
    if (covered.has(found.key)) continue;
    if (live.includes(one.check) && !(one.what.startsWith("not checked") || one.what.includes("since"))) continue;
    if (live.includes(one.check) && covered.has(`subscriptions:${one.subject ?? ""}`)) continue;
    // The live document names the same outage in the relay's words.
    if (one.check === "sink" && one.severity === "error" && covered.has(`subscriptions:${one.subject ?? ""}`)) continue;
    all.push(found);
  }
  return all
    .map((one, at) => ({ one, at }))
    .sort((a, b) => ORDER[a.one.severity] - ORDER[b.one.severity] || a.at - b.at)
    .map(({ one }) => one);
}
