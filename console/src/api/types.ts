// The documents of the API, as docs/reference/json describes them. Only what the page reads is
// named: later versions may add members.

export type Role = "viewer" | "operator" | "admin";

export interface Session {
  person: string;
  role: Role;
  /** Whether payloads and headers may be read; consoles without roles do not say. */
  payloads?: boolean;
  /** Whether the console asks for tokens; consoles without roles do not say. */
  login?: boolean;
  version: string;
  store: string;
}

export interface ParkedCounts {
  retrying: number;
  waiting: number;
  dead: number;
}

export interface RunningReplay {
  id: number;
  sent: number;
  skipped: number;
  position: number;
  first_seq: number;
  last_seq: number;
}

export interface SubscriptionStatus {
  name: string;
  state: "active" | "paused" | "stopped";
  reason: string | null;
  trouble: string | null;
  trouble_since: string | null;
  sink: string;
  stopped_event: { id: string; seq: number } | null;
  pending: number;
  pending_is_more: boolean;
  delivered: number;
  filtered: number;
  parked: ParkedCounts;
  held_back: { parts: number; bytes: number };
  generation: number;
  config_version: number;
  last_settled_at: string | null;
  oldest_pending_at: string | null;
  lag_seconds: number | null;
  matches_nothing: boolean;
  replay: RunningReplay | null;
  /** What continuous verification has compared; null: nothing yet. */
  verified: { at: string; events: number; differences: number } | null;
}

export interface Relay {
  id: string;
  name: string;
  owner: boolean;
  alive: boolean;
  lanes: string | null;
  generation: number;
  heartbeat_at: string | null;
}

export interface Queue {
  queue: string;
  type: string | null;
  ready: number;
  running: number;
  scheduled: number;
  retrying: number;
  waiting: number;
  dead: number;
  more: boolean;
  oldest_seconds: number | null;
  p50_seconds: number | null;
  p95_seconds: number | null;
  p99_seconds: number | null;
  has_handler: boolean;
}

export interface Worker {
  name: string;
  alive: boolean;
  queues: Record<string, string[]>;
  running: number;
  seen_seconds: number;
}

export interface Adoption {
  table: string;
  state: "copying" | "draining" | "forwarding" | "broken";
  since: string;
  waiting: number;
  waiting_is_more: boolean;
  trouble: string | null;
}

export interface Point {
  at: string;
  delivered: number;
  failed: number;
  parked: number;
  dead: number;
  pending: number;
  oldest_seconds: number;
  p50_seconds: number | null;
  p99_seconds: number | null;
}

export interface HistoryLine {
  subscription: string;
  queue: string | null;
  type: string | null;
  delivered: number;
  failed: number;
  parked: number;
  dead: number;
  per_second: number;
  p50_seconds: number | null;
  p99_seconds: number | null;
  most_pending: number;
  oldest_seconds: number;
  points: Point[];
}

export interface History {
  seconds: number;
  step_seconds: number;
  lines: HistoryLine[];
}

export interface Status {
  store: string;
  at: string;
  subscriptions: SubscriptionStatus[];
  relays: Relay[];
  queues: Queue[];
  workers: Worker[];
  adoptions: Adoption[];
  history: History | null;
  /** What keeps events from being delivered: "check subject: what; reason (hint: command)". */
  problems: string[];
}

export type Severity = "error" | "warning" | "note" | "ok";

export interface DoctorFinding {
  check: string;
  subject: string | null;
  severity: Severity;
  what: string;
  reason: string | null;
  command: string | null;
}

export interface SubscriptionSpec {
  name: string;
  state: "active" | "paused" | "stopped";
  reason: string | null;
  config_version: number;
  sink: string;
  group: string;
  event_types: string[];
  aggregate_types: string[];
  match_headers: Record<string, string>;
  format: string;
  topic: string;
  key: string;
  headers: Record<string, string>;
  rate: string;
  on_reject: string;
  on_dead: string;
  max_attempts: number;
  delays: string[];
  retry_base: string;
  retry_cap: string;
  max_waiting: number;
  sink_settings: Record<string, unknown>;
}

export type LifeState =
  | "pending"
  | "published"
  | "filtered"
  | "skipped"
  | "retrying"
  | "waiting"
  | "dead"
  | "running"
  | "ready"
  | "discarded"
  | "edited";

export interface Life {
  subscription: string;
  state: LifeState;
  published_by: string | null;
  attempts: number | null;
  next_attempt_at: string | null;
  error: string | null;
  waiting_for: string | null;
  waiting_for_seq: number | null;
  ended_by: string | null;
  reason: string | null;
  replaced_by: string | null;
}

export interface OutboxEvent {
  seq: number;
  id: string;
  aggregate_type: string;
  aggregate_id: string;
  event_type: string | null;
  content_type: string | null;
  created_at: string;
  occurred_at: string | null;
  in_log: boolean;
  /** False for a corrected copy that was delivered or discarded: only its outcome is kept. */
  content_kept: boolean;
  subscriptions: Life[];
  headers?: Record<string, string> | null;
  payload?: string | null;
}

/** What lists have in common: `next` is the cursor of the next page, if the console knows pages. */
export interface Page {
  more: boolean;
  next?: string | null;
}

export interface EventList extends Page {
  events: OutboxEvent[];
  complete: boolean;
}

export interface ParkedEvent {
  subscription: string;
  seq: number;
  id: string;
  state: "retrying" | "waiting" | "dead" | "running" | "ready";
  attempts: number;
  error: string | null;
  aggregate_type: string;
  aggregate_id: string;
  event_type: string;
  parked_at: string;
  next_attempt_at: string | null;
}

export interface ParkedList extends Page {
  events: ParkedEvent[];
}

export interface ParkedError {
  subscription: string;
  error: string | null;
  events: number;
  dead: number;
  first_parked_at: string;
  newest: ParkedEvent;
}

export interface ParkedErrors extends Page {
  errors: ParkedError[];
}

export interface WholeParkedEvent extends ParkedEvent {
  content_type: string | null;
  headers: Record<string, string>;
  payload: string;
}

export interface Replay {
  id: number;
  subscription: string;
  state: "loading" | "running" | "stopped" | "done" | "removed";
  reason: string | null;
  first_seq: number;
  last_seq: number;
  position: number;
  filter: Record<string, unknown>;
  archived: boolean;
  sent: number;
  skipped: number;
  started_by: string;
  started_at: string | null;
  ended_at: string | null;
}

export type TaskState =
  | "pending"
  | "scheduled"
  | "running"
  | "retrying"
  | "waiting"
  | "completed"
  | "dead"
  | "cancelled";

export interface Task {
  id: string;
  queue: string;
  type: string;
  key: string | null;
  state: TaskState;
  attempts?: number;
  enqueued_at: string | null;
  next_attempt_at?: string | null;
  error?: string | null;
  worker?: string | null;
  running_since?: string | null;
  percent?: number | null;
  progress?: string | null;
}

export interface TaskList extends Page {
  tasks: Task[];
}

export interface WholeTask extends Task {
  ended_at: string | null;
  waiting_for: string | null;
  ended_by: string | null;
  reason: string | null;
  /** Left out, like headers and payload, for those who may not read what events contain. */
  result?: string | null;
  content_type: string | null;
  headers?: Record<string, string>;
  payload?: string;
}

export interface Schedule {
  name: string;
  queue: string;
  type: string;
  key: string | null;
  cron: string | null;
  every: string | null;
  time_zone: string | null;
  missed: string;
  paused: boolean;
  next_at: string | null;
  last_at: string | null;
  last_task: string | null;
}

export interface InboxConsumer {
  name: string;
  /** At most 10,000 are counted. */
  messages: number;
  messages_is_more: boolean;
  oldest_received_at: string;
  last_received_at: string;
}

export interface ConsumerList {
  consumers: InboxConsumer[];
}

export interface Message {
  consumer: string;
  id: string;
  /** Null, like place and task, for a message of receive(). */
  type: string | null;
  place: string | null;
  task: string | null;
  received_at: string;
  arrivals: number;
}

export interface MessageList extends Page {
  messages: Message[];
}

export interface Change {
  id: number;
  at: string;
  person: string;
  origin: string;
  verb: string;
  subscription: string | null;
  queue: string | null;
  filter: Record<string, unknown>;
  count: number;
  reason: string | null;
}

export interface ChangeList extends Page {
  changes: Change[];
}

export interface Fault {
  kind: string;
  settlement: { id: number; at: string } | null;
  lanes: number[];
  seqs: { first: number; last: number } | null;
  text: string;
}

export interface VerifiedSubscription {
  name: string;
  ok: boolean;
  enqueued: number;
  delivered: number;
  filtered: number;
  pending: number;
  parked: number;
  discarded: number;
  skipped: number;
  settlements: number;
  settlements_unchecked: number;
  settlements_void: number;
  fault_count: number;
  faults: Fault[];
}

export interface Verified {
  ok: boolean;
  subscriptions: VerifiedSubscription[];
}
