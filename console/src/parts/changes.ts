// The changes that a person can make, each with what it means.
import { segment } from "../api/client.js";
import { number } from "../lib/format.js";
import { begin } from "./change.js";

type Done = () => void;
type Members = Record<string, unknown>;

export function pauseSubscription(name: string, onDone?: Done): void {
  begin({
    title: `Pause ${name}`,
    meaning: "Its relays send nothing more until somebody resumes it. Its events wait in the log and hold history back; none is lost. Other subscriptions go on.",
    path: `/subscriptions/${segment(name)}/pause`,
    members: {},
    preview: false,
    reason: "optional",
    verb: "Pause it",
    danger: true,
    ...(onDone ? { onDone } : {}),
  });
}

export function resumeSubscription(name: string, onDone?: Done): void {
  begin({
    title: `Resume ${name}`,
    meaning: "It goes on where it was paused or stopped, within a second. Nothing is skipped, and nothing is sent twice.",
    path: `/subscriptions/${segment(name)}/resume`,
    members: {},
    preview: false,
    verb: "Resume it",
    ...(onDone ? { onDone } : {}),
  });
}

export function retryParked(what: string, members: Members, onDone?: Done): void {
  begin({
    title: `Retry ${what}`,
    meaning: "They are sent again now, or when it is their key's turn, with the attempts counted from 0.",
    path: "/parked/retry",
    members,
    preview: true,
    verb: "Retry",
    ...(onDone ? { onDone } : {}),
  });
}

export function discardParked(what: string, members: Members, onDone?: Done): void {
  begin({
    title: `Discard ${what}`,
    meaning: "They are given up for good: the destination never gets them. Later events of their keys go on.",
    path: "/parked/discard",
    members,
    preview: true,
    reason: "required",
    verb: "Discard for good",
    danger: true,
    ...(onDone ? { onDone } : {}),
  });
}

export function retryTasks(what: string, members: Members, onDone?: Done): void {
  begin({
    title: `Retry ${what}`,
    meaning: "They run again now, with the attempts counted from 0.",
    path: "/tasks/retry",
    members,
    preview: true,
    verb: "Retry",
    ...(onDone ? { onDone } : {}),
  });
}

export function cancelTasks(what: string, members: Members, onDone?: Done): void {
  begin({
    title: `Cancel ${what}`,
    meaning: "They do not run any more. The handler of one that runs is told to stop within ten seconds; what it has done by then stays done.",
    path: "/tasks/cancel",
    members,
    preview: true,
    reason: "required",
    verb: "Cancel for good",
    danger: true,
    ...(onDone ? { onDone } : {}),
  });
}

export function pauseQueue(queue: string, type: string | null, onDone?: Done): void {
  begin({
    title: type ? `Pause ${type} of ${queue}` : `Pause queue ${queue}`,
    meaning: "No task of it is begun until somebody resumes it. Those that run go on.",
    path: `/queues/${segment(queue)}/pause`,
    members: type ? { type } : {},
    preview: false,
    reason: "optional",
    verb: "Pause it",
    danger: true,
    ...(onDone ? { onDone } : {}),
  });
}

export function resumeQueue(queue: string, type: string | null, onDone?: Done): void {
  begin({
    title: type ? `Resume ${type} of ${queue}` : `Resume queue ${queue}`,
    meaning: type ? "Its tasks are begun again." : "Its tasks are begun again, those of all its types.",
    path: `/queues/${segment(queue)}/resume`,
    members: type ? { type } : {},
    preview: false,
    verb: "Resume it",
    ...(onDone ? { onDone } : {}),
  });
}

export function changeSchedule(name: string, how: "pause" | "resume" | "remove", onDone?: Done): void {
  const meaning = {
    pause: "It has no ticks from now on, and misses none: when it is resumed it goes on with its next one.",
    resume: "It goes on with its next tick from now on.",
    remove: "It has no ticks any more. A worker whose configuration has it writes it again when it starts.",
  }[how];
  begin({
    title: `${how[0]?.toUpperCase()}${how.slice(1)} schedule ${name}`,
    meaning,
    path: `/schedules/${segment(name)}/${how}`,
    members: {},
    preview: how === "remove",
    verb: { pause: "Pause it", resume: "Resume it", remove: "Remove it" }[how],
    danger: how !== "resume",
    ...(onDone ? { onDone } : {}),
  });
}

export function stopReplay(id: number, subscription: string, onDone?: Done): void {
  begin({
    title: `Stop replay ${id} of ${subscription}`,
    meaning: "Live delivery goes on at once. What was sent was sent; the replay can be resumed where it was stopped.",
    path: `/replays/${id}/stop`,
    members: {},
    preview: false,
    verb: "Stop it",
    danger: true,
    ...(onDone ? { onDone } : {}),
  });
}

export function resumeReplay(id: number, subscription: string, onDone?: Done): void {
  begin({
    title: `Resume replay ${id} of ${subscription}`,
    meaning: "It goes on where it was stopped. Live delivery of the subscription waits until it is done.",
    path: `/replays/${id}/resume`,
    members: {},
    preview: false,
    verb: "Resume it",
    ...(onDone ? { onDone } : {}),
  });
}

export function acknowledge(subscription: string | null, differences: number | null, onDone?: Done): void {
  begin({
    title: subscription ? `Acknowledge differences of ${subscription}` : "Acknowledge differences",
    meaning: `Sets the number of known differences${differences === null ? "" : `, ${number(differences)},`} back to 0. Do this when their cause is known: a new difference is found again, these are not.`,
    path: "/verify/acknowledge",
    members: subscription ? { subscription } : {},
    preview: false,
    verb: "Acknowledge",
    danger: true,
    ...(onDone ? { onDone } : {}),
  });
}
