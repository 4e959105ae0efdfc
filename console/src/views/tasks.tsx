import { useEffect, useMemo, useState } from "preact/hooks";
import { live } from "../api/live.js";
import type { History, HistoryLine, Queue, Schedule, Status, Task, TaskList, Worker } from "../api/types.js";
import { isMissed, queueOf } from "../lib/findings.js";
import { count, duration, number } from "../lib/format.js";
import { series } from "../lib/history.js";
import { refine, route } from "../lib/navigation.js";
import { useObservable } from "../lib/observable.js";
import { usePaged } from "../lib/paged.js";
import { useRequest } from "../lib/request.js";
import { href } from "../lib/route.js";
import { ChangeButton, Empty, Loading, More, ProblemBox, Progress, Section, State, Table, Time } from "../parts/basics.js";
import { cancelTasks, changeSchedule, pauseQueue, resumeQueue, retryTasks } from "../parts/changes.js";
import { Chart } from "../parts/chart.js";
import { Filters } from "../parts/filters.js";

const EVERY_MS = 5000;

const STATES = [
  ["", "any but pending"],
  ["running", "running"],
  ["scheduled", "scheduled"],
  ["retrying", "retrying"],
  ["waiting", "waiting"],
  ["dead", "dead"],
  ["pending", "pending"],
] as const;

export function Tasks() {
  const { status } = useObservable(live);
  const { query } = useObservable(route);
  const loaded = status !== null;
  useEffect(() => {
    if (query["show"] && loaded) document.getElementById(query["show"])?.focus();
  }, [query["show"], loaded]);
  return (
    <>
      <h1>Tasks</h1>
      <p class="lead">Work that runs after a commit, done by the handlers of workers.</p>
      {status === null ? <Loading what="queues" /> : <Queues status={status} />}
      <TaskRows workers={status?.workers ?? []} />
      <Schedules />
      <Durations />
    </>
  );
}

/** Whether all, some or none of the subscriptions that deliver the queue are paused. */
function pausedOf(status: Status, queue: string): string | null {
  const parts = status.subscriptions.filter((one) => queueOf(one.name) === queue);
  const paused = parts.filter((one) => one.state === "paused");
  if (paused.length === 0) return null;
  return paused[0]?.reason ?? "";
}

function Queues({ status }: { status: Status }) {
  if (status.queues.length === 0) {
    return (
      <Section title="Queues">
        <Empty>
          <p>There is no queue: no task was ever enqueued, and no worker has started.</p>
          <p>
            Handlers can be a program, a request or a mail of the configuration: <code>outbox work</code>.
          </p>
        </Empty>
      </Section>
    );
  }
  const names = [...new Set(status.queues.map((one) => one.queue))];
  return (
    <Section title="Queues">
      <Table
        caption="Queues by type"
        head={[
          "Queue",
          "Type",
          "Ready",
          "Running",
          "Scheduled",
          "Retrying",
          "Waiting",
          "Dead",
          "Oldest",
          "p50 / p95 / p99",
          <span key="actions" class="hidden-text">
            Actions
          </span>,
        ]}
      >
        {names.map((queue) => {
          const reason = pausedOf(status, queue);
          const lines = status.queues.filter((one) => one.queue === queue);
          return lines.map((line, at) => <QueueRow key={queue + line.type} line={line} first={at === 0} rows={lines.length} paused={reason} />);
        })}
      </Table>
    </Section>
  );
}

function QueueRow({ line, first, rows, paused }: { line: Queue; first: boolean; rows: number; paused: string | null }) {
  const { queue, type } = line;
  const cell = (value: number, state: string) => (
    <td class={`number ${state === "dead" && value > 0 ? "bad" : ""}`}>
      {value > 0 ? <a href={href(["tasks"], { queue, type, state })}>{number(value)}</a> : "0"}
    </td>
  );
  const time = (seconds: number | null) => (seconds === null ? "–" : duration(seconds));
  return (
    <tr>
      {first && (
        <th scope="rowgroup" rowSpan={rows}>
          <a href={href(["tasks"], { queue })}>{queue}</a>
          <div class="row-actions">
            {paused !== null && <State name="paused" />}
            {paused !== null ? (
              <ChangeButton onClick={() => resumeQueue(queue, null)} aria-label={`Resume queue ${queue}`}>
                Resume
              </ChangeButton>
            ) : (
              <ChangeButton onClick={() => pauseQueue(queue, null)} aria-label={`Pause queue ${queue}`}>
                Pause
              </ChangeButton>
            )}
          </div>
        </th>
      )}
      <td>
        {type ?? <span class="quiet">none yet</span>}
        {type && !line.has_handler && <div class="bad">no worker has a handler</div>}
      </td>
      {cell(line.ready, "pending")}
      {cell(line.running, "running")}
      {cell(line.scheduled, "scheduled")}
      {cell(line.retrying, "retrying")}
      {cell(line.waiting, "waiting")}
      {cell(line.dead, "dead")}
      <td class="number">{time(line.oldest_seconds)}</td>
      <td class="number">
        {time(line.p50_seconds)} / {time(line.p95_seconds)} / {time(line.p99_seconds)}
      </td>
      <td class="row-actions">
        {type && (
          <>
            <ChangeButton onClick={() => pauseQueue(queue, type)} aria-label={`Pause type ${type}`}>
              Pause type
            </ChangeButton>
            <ChangeButton onClick={() => resumeQueue(queue, type)} aria-label={`Resume type ${type}`}>
              Resume type
            </ChangeButton>
          </>
        )}
      </td>
    </tr>
  );
}

function TaskRows({ workers }: { workers: readonly Worker[] }) {
  const { query } = useObservable(route);
  const { queue, type, state, key } = query;
  const page = usePaged<TaskList, Task>("/tasks", { queue, type, state, key, limit: 100 }, (one) => one.tasks, EVERY_MS);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const rows = page.rows;
  const chosen = useMemo(() => rows.filter((one) => selected.has(one.id)), [rows, selected]);
  const queues = useObservable(live, (one) => [...new Set((one.status?.queues ?? []).map((each) => each.queue))].join("\n"));
  const names = queues === "" ? [] : queues.split("\n");
  const filter = { queue, type, state, key };
  const filtered = Object.values(filter).some((value) => value);
  const done = () => {
    setSelected(new Set());
    page.again();
  };
  const toggle = (id: string) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    setSelected(next);
  };
  const unless = chosen.length === 0 ? "Select tasks first." : null;
  const whole = !filtered ? "Choose a queue, type or state first." : state === "pending" ? "Tasks that only wait in the log have no row to change." : null;
  const all = rows.length > 0 && chosen.length === rows.length;
  return (
    <Section
      title="Tasks that have a row"
      actions={
        <>
          <span class="quiet" role="status">
            {chosen.length > 0 ? `${number(chosen.length)} selected` : ""}
          </span>
          <ChangeButton unless={unless} onClick={() => retryTasks(count("selected task", chosen.length), { ids: chosen.map((one) => one.id) }, done)}>
            Retry selected
          </ChangeButton>
          <ChangeButton danger unless={unless} onClick={() => cancelTasks(count("selected task", chosen.length), { ids: chosen.map((one) => one.id) }, done)}>
            Cancel selected …
          </ChangeButton>
          <ChangeButton unless={whole} onClick={() => retryTasks("all that match the filter", filter, done)}>
            Retry all that match
          </ChangeButton>
          <ChangeButton danger unless={whole} onClick={() => cancelTasks("all that match the filter", filter, done)}>
            Cancel all that match …
          </ChangeButton>
        </>
      }
    >
      <Filters
        filters={[
          { name: "queue", label: "Queue", options: [["", "all"], ...(queue && !names.includes(queue) ? [queue, ...names] : names).map((name) => [name, name] as const)] },
          { name: "type", label: "Type" },
          { name: "state", label: "State", options: STATES },
          { name: "key", label: "Key" },
        ]}
      />
      {page.problem && <ProblemBox problem={page.problem} again={page.again} />}
      {page.loading && page.first === null && <Loading what="tasks" />}
      {page.first !== null && rows.length === 0 && (
        <Empty>
          <p>{filtered ? "No task matches." : "No task runs for longer than a second, waits for a run, or is dead."}</p>
          <p>Tasks that end within a second have no row. An id finds any task: its event says what became of it.</p>
        </Empty>
      )}
      {rows.length > 0 && (
        <Table
          caption="Tasks"
          head={[
            <input key="all" type="checkbox" aria-label="Select all that are shown" checked={all} onChange={() => setSelected(all ? new Set() : new Set(rows.map((one) => one.id)))} />,
            "State",
            "Type",
            "Queue",
            "Key",
            "Attempts",
            "How far",
            "Worker and heartbeat",
            "Enqueued",
            "Next run",
            "Error",
          ]}
        >
          {rows.map((one) => {
            const worker = workers.find((each) => each.name === one.worker);
            return (
              <tr key={one.id} class={selected.has(one.id) ? "selected" : ""}>
                <td>
                  <input type="checkbox" aria-label={`Select task ${one.id}`} checked={selected.has(one.id)} onChange={() => toggle(one.id)} />
                </td>
                <td>
                  <State name={one.state} />
                </td>
                <td>
                  <a href={href(["tasks", one.id])}>{one.type}</a>
                </td>
                <td>{one.queue}</td>
                <td>{one.key ?? <span class="quiet">none</span>}</td>
                <td class="number">{one.attempts ?? 0}</td>
                <td>
                  {one.state === "running" ? (
                    <>
                      {one.percent != null && <Progress done={one.percent} all={100} label={`Progress of task ${one.id}`} />}
                      {one.progress && <div class="quiet">{one.progress}</div>}
                      {one.percent == null && !one.progress && <span class="quiet">its handler says nothing</span>}
                    </>
                  ) : (
                    "–"
                  )}
                </td>
                <td>
                  {one.worker ? (
                    <>
                      {one.worker}
                      <div class={worker && !worker.alive ? "bad" : "quiet"}>
                        {worker ? `seen ${duration(worker.seen_seconds)} ago${worker.alive ? "" : ", not alive"}` : "not known any more"}
                        {one.running_since && (
                          <>
                            ; runs since <Time at={one.running_since} />
                          </>
                        )}
                      </div>
                    </>
                  ) : (
                    "–"
                  )}
                </td>
                <td>
                  <Time at={one.enqueued_at} />
                </td>
                <td>
                  <Time at={one.next_attempt_at} />
                </td>
                <td class="wrap error-text">{one.error ?? "–"}</td>
              </tr>
            );
          })}
        </Table>
      )}
      <More more={page.more} loading={page.loading} shown={rows.length} />
      {!page.more && page.first?.more && <p class="quiet">The first {number(rows.length)} are shown. Narrow the filter to see others.</p>}
    </Section>
  );
}

function Schedules() {
  const found = useRequest<{ schedules: Schedule[] }>("/schedules", {}, EVERY_MS);
  const now = Date.now();
  return (
    <Section title="Schedules" id="schedules">
      {found.problem && <ProblemBox problem={found.problem} again={found.again} />}
      {!found.value && found.loading && <Loading what="schedules" />}
      {found.value?.schedules.length === 0 && (
        <Empty>
          <p>
            There is none. A schedule is a <code>[schedule.NAME]</code> of a worker's configuration.
          </p>
        </Empty>
      )}
      {found.value && found.value.schedules.length > 0 && (
        <Table
          caption="Schedules"
          head={[
            "Name",
            "State",
            "When",
            "Next tick",
            "Last tick",
            "Missed ticks",
            "Task",
            <span key="actions" class="hidden-text">
              Actions
            </span>,
          ]}
        >
          {found.value.schedules.map((one) => {
            const missed = isMissed(one, now);
            return (
              <tr key={one.name}>
                <th scope="row">{one.name}</th>
                <td>
                  <State name={one.paused ? "paused" : missed ? "missed" : "active"} />
                </td>
                <td>
                  <code>{one.cron ?? one.every ?? "–"}</code> {one.time_zone && <span class="quiet">{one.time_zone}</span>}
                </td>
                <td>
                  <Time at={one.next_at} relative />
                  {missed && <div class="bad">missed: no worker of {one.queue} ticks</div>}
                </td>
                <td>
                  <Time at={one.last_at} />
                  {one.last_task && (
                    <>
                      {" "}
                      <a href={href(["tasks", one.last_task])} aria-label={`Last task of ${one.name}`}>
                        its task
                      </a>
                    </>
                  )}
                </td>
                <td>{{ one: "one task for all", skip: "are skipped", all: "one task for each" }[one.missed] ?? one.missed}</td>
                <td>
                  {one.type} <span class="quiet">in {one.queue}</span>
                </td>
                <td class="row-actions">
                  {one.paused ? (
                    <ChangeButton onClick={() => changeSchedule(one.name, "resume", found.again)} aria-label={`Resume schedule ${one.name}`}>
                      Resume
                    </ChangeButton>
                  ) : (
                    <ChangeButton onClick={() => changeSchedule(one.name, "pause", found.again)} aria-label={`Pause schedule ${one.name}`}>
                      Pause
                    </ChangeButton>
                  )}
                  <ChangeButton needs="admin" danger onClick={() => changeSchedule(one.name, "remove", found.again)} aria-label={`Remove schedule ${one.name}`}>
                    Remove
                  </ChangeButton>
                </td>
              </tr>
            );
          })}
        </Table>
      )}
    </Section>
  );
}

const perMinute = (perSecond: number): number => perSecond * 60;

function Durations() {
  const { query } = useObservable(route);
  const past = useRequest<Status>("/status", { since: "1d" }, 60_000);
  const history: History | null = past.value?.history ?? null;
  const lines = useMemo(() => (history?.lines ?? []).filter((line) => line.type !== null && (!query["queue"] || line.queue === query["queue"])), [history, query["queue"]]);
  const busiest = lines.reduce<HistoryLine | undefined>((best, one) => (best && best.delivered >= one.delivered ? best : one), undefined);
  const line = lines.find((one) => one.type === query["chart"]) ?? busiest;
  const drawn = useMemo(() => (history && line ? series(line, history, past.at) : null), [history, line]);
  return (
    <Section
      title="How long runs took over the day"
      actions={
        lines.length > 1 ? (
          <label class="inline-field">
            <span>Type</span>
            <select value={line?.type ?? ""} onChange={(event) => refine({ chart: event.currentTarget.value })}>
              {lines.map((one) => (
                <option key={`${one.queue}/${one.type}`} value={one.type ?? ""}>
                  {one.type}
                </option>
              ))}
            </select>
          </label>
        ) : undefined
      }
    >
      {past.problem && <ProblemBox problem={past.problem} again={past.again} />}
      {!history && past.loading && <Loading what="the last day" />}
      {history && !line && (
        <Empty>
          <p>No task has run within the last day.</p>
        </Empty>
      )}
      {drawn && line && (
        <>
          <p>
            <strong>{line.type}</strong>: {count("run", line.delivered)} completed, {number(line.failed)} failed and tried again, {number(line.dead)} dead.
          </p>
          <div class="charts">
            <Chart
              title="Duration of runs"
              at={drawn.at}
              unit="seconds"
              curves={[
                { name: "p50", values: drawn.p50, color: "ink-busy" },
                { name: "p99", values: drawn.p99, color: "ink-warn", dash: [6, 3] },
              ]}
            />
            <Chart
              title="Runs per minute"
              at={drawn.at}
              unit="per-minute"
              curves={[
                { name: "completed", values: drawn.rate.map(perMinute), color: "ink-good", fill: true },
                { name: "failed", values: drawn.failed.map(perMinute), color: "ink-bad", dash: [6, 3] },
              ]}
            />
          </div>
        </>
      )}
    </Section>
  );
}
