import { useEffect, useMemo } from "preact/hooks";
import { live, rates } from "../api/live.js";
import type { DoctorFinding, Queue, Relay, Schedule, Status, SubscriptionStatus, TaskList, Worker } from "../api/types.js";
import { clock } from "../lib/clock.js";
import { findings, queueOf } from "../lib/findings.js";
import { count, duration, number, rate as rateText } from "../lib/format.js";
import { useGradually } from "../lib/gradually.js";
import { memo } from "../lib/memo.js";
import { refine, route } from "../lib/navigation.js";
import { useObservable } from "../lib/observable.js";
import { recent, refreshRecent, type Recent } from "../lib/recent.js";
import { useRequest } from "../lib/request.js";
import { href } from "../lib/route.js";
import { Empty, Loading, ProblemBox, Section, SeverityMark, State, Table, Time } from "../parts/basics.js";
import { FindingList } from "../parts/findings.js";
import { Sparkline } from "../parts/chart.js";

/** The doctor also connects to each destination, so it is not asked more often than needed. */
const DOCTOR_EVERY_MS = 120_000;
const TASKS_EVERY_MS = 15_000;

export function Overview() {
  const { status, problem } = useObservable(live);
  const { query } = useObservable(route);
  useEffect(() => {
    void refreshRecent();
    const timer = setInterval(() => void refreshRecent(), 5000);
    return () => clearInterval(timer);
  }, []);
  useEffect(() => {
    if (query["show"] && status) document.getElementById(query["show"])?.focus();
  }, [query["show"], status === null]);
  return (
    <>
      <h1 class="hidden-text">Overview</h1>
      <Findings status={status} away={problem !== null} />
      {status === null ? (
        problem === null && <Loading what="the state of deliveries" />
      ) : (
        <>
          <Subscriptions status={status} />
          <Queues queues={status.queues} />
          <Relays relays={status.relays} workers={status.workers} />
        </>
      )}
    </>
  );
}

function Findings({ status, away }: { status: Status | null; away: boolean }) {
  const minute = useObservable(clock, (now) => Math.floor(now / 10_000));
  // What a paused or stopped store cannot answer is asked again when it is back.
  const doctor = useRequest<DoctorFinding[]>(away ? null : "/doctor", {}, DOCTOR_EVERY_MS);
  const runs = status?.queues.some((one) => one.running > 0) ?? false;
  const running = useRequest<TaskList>(runs ? "/tasks" : null, { state: "running", limit: 100 }, TASKS_EVERY_MS);
  const schedules = useRequest<{ schedules: Schedule[] }>(away ? null : "/schedules", {}, TASKS_EVERY_MS);
  const found = useMemo(() => {
    return findings({
      status,
      doctor: doctor.value,
      running: running.value?.tasks ?? [],
      schedules: schedules.value?.schedules ?? [],
      now: Date.now(),
    });
  }, [status, doctor.value, running.value, schedules.value, minute]);
  const again = () => {
    doctor.again();
    running.again();
    schedules.again();
  };
  const bad = found.filter((one) => one.severity !== "note");
  const well = found.length - bad.length === 0 ? "All that was looked at is in order." : "Nothing keeps events from being delivered.";
  return (
    <Section
      title="What is wrong"
      actions={
        <>
          <span class="quiet" role="status">
            {doctor.loading && !away ? (
              "The doctor looks …"
            ) : doctor.value ? (
              <>
                {count("check", doctor.value.filter((one) => one.severity === "ok").length)} in order, looked at <Time at={new Date(doctor.at).toISOString()} />
              </>
            ) : (
              ""
            )}
          </span>
          <button type="button" class="small" onClick={again} disabled={doctor.loading}>
            Look again
          </button>
        </>
      }
    >
      {doctor.problem && !away && <ProblemBox problem={{ ...doctor.problem, title: "the doctor could not look: " + doctor.problem.title }} again={doctor.again} />}
      {bad.length === 0 && status !== null && !away && (
        <p class="well">
          <SeverityMark severity="ok" /> <strong>{well}</strong>
        </p>
      )}
      {away && status === null && <p class="quiet">Nothing else could be looked at.</p>}
      {away && status !== null && found.length > 0 && <p class="quiet">As far as was known before:</p>}
      {found.length > 0 && <FindingList findings={found} onDone={again} />}
    </Section>
  );
}

/** Those that need somebody come first. */
function urgency(one: SubscriptionStatus): number {
  if (one.state === "stopped") return 0;
  if (one.trouble !== null) return 1;
  if (one.parked.dead > 0) return 2;
  if (one.state === "paused") return 3;
  return 4;
}

const GROUP = 10;

function Subscriptions({ status }: { status: Status }) {
  const { query } = useObservable(route);
  const name = query["name"] ?? "";
  const past = useObservable(recent);
  // All that a card shows goes through the groups: a card that followed the rates by itself would be
  // rendered in the same frame as all others.
  const shown = useMemo(
    () =>
      status.subscriptions
        .filter((one) => queueOf(one.name) === null && one.name.includes(name))
        .sort((a, b) => urgency(a) - urgency(b) || (a.name < b.name ? -1 : 1))
        .map((one): CardProps => ({ one, now: rateText(rates.value.get(one.name) ?? 0), past: past.get(one.name) })),
    [status, name, past],
  );
  const groups = useGradually(shown, GROUP);
  const all = status.subscriptions.filter((one) => queueOf(one.name) === null).length;
  return (
    <Section
      title="Subscriptions"
      actions={
        all > 8 ? (
          <label class="inline-field">
            <span>Name contains</span>
            <input value={name} onInput={(event) => refine({ name: event.currentTarget.value })} autoComplete="off" />
          </label>
        ) : undefined
      }
    >
      {all === 0 ? (
        <Empty>
          <p>{status.subscriptions.length > 0 ? "There are queues of tasks, and no subscription that delivers events elsewhere." : "No subscription delivers events yet, so events are kept for nobody."}</p>
          <p>
            Describe one in the configuration and run <code>outbox subscription apply</code>.
          </p>
        </Empty>
      ) : shown.length === 0 ? (
        <Empty>
          <p>No subscription has “{name}” in its name.</p>
        </Empty>
      ) : (
        <ul class="cards">
          {groups.map((group, at) => (
            <CardGroup key={at} group={group} />
          ))}
        </ul>
      )}
    </Section>
  );
}

interface CardProps {
  one: SubscriptionStatus;
  now: string;
  past: Recent | undefined;
}

const CardGroup = memo(
  ({ group }: { group: readonly CardProps[] }) => (
    <>
      {group.map((props) => (
        <Card key={props.one.name} {...props} />
      ))}
    </>
  ),
  (before, after) => before.group === after.group,
);

const Card = memo(
  CardBody,
  (before, after) =>
    before.now === after.now &&
    before.past === after.past &&
    before.one.state === after.one.state &&
    before.one.trouble === after.one.trouble &&
    before.one.pending === after.one.pending &&
    before.one.lag_seconds === after.one.lag_seconds &&
    before.one.parked.dead === after.one.parked.dead &&
    before.one.parked.retrying === after.one.parked.retrying &&
    before.one.parked.waiting === after.one.parked.waiting &&
    before.one.replay?.id === after.one.replay?.id,
);

function CardBody({ one, now, past }: CardProps) {
  const parked = one.parked.dead + one.parked.retrying + one.parked.waiting;
  const state = one.state === "active" && one.trouble !== null ? "trouble" : one.state;
  return (
    <li class={`card ${state}`}>
      <div class="card-head">
        <h3>
          <a href={href(["subscriptions", one.name])}>{one.name}</a>
        </h3>
        <State name={state === "trouble" ? "in trouble" : state} tone={state === "trouble" ? "warn" : state === "active" ? "good" : state === "paused" ? "warn" : "bad"} />
      </div>
      {past ? (
        <Sparkline values={past.rate} label={`Last hour: ${count("event", past.delivered)} delivered, ${number(past.failed)} failed sends`} />
      ) : (
        <div class="sparkline" />
      )}
      <dl class="figures">
        <div>
          <dt>Rate</dt>
          <dd>{now}</dd>
        </div>
        <div>
          <dt>Last hour</dt>
          <dd>{past ? number(past.delivered) : "–"}</dd>
        </div>
        <div>
          <dt>p50 / p99</dt>
          <dd>
            {past?.p50 != null ? duration(past.p50) : "–"} / {past?.p99 != null ? duration(past.p99) : "–"}
          </dd>
        </div>
        <div class={one.pending > 0 ? "some" : ""}>
          <dt>Pending</dt>
          <dd>
            {one.pending_is_more ? ">" : ""}
            {number(one.pending)}
          </dd>
        </div>
        <div>
          <dt>Oldest</dt>
          <dd>{one.lag_seconds === null ? "–" : duration(one.lag_seconds)}</dd>
        </div>
        <div class={one.parked.dead > 0 ? "bad" : parked > 0 ? "some" : ""}>
          <dt>Parked</dt>
          <dd>
            {parked > 0 ? (
              <a href={href(["parked"], { subscription: one.name })}>
                {number(parked)}
                {one.parked.dead > 0 ? `, ${number(one.parked.dead)} dead` : ""}
              </a>
            ) : (
              "0"
            )}
          </dd>
        </div>
      </dl>
      {one.replay && <p class="quiet">Replay {one.replay.id} runs; live delivery waits for it.</p>}
    </li>
  );
}

function Queues({ queues }: { queues: Queue[] }) {
  const names = [...new Set(queues.map((one) => one.queue))];
  if (names.length === 0) return null;
  const sum = (queue: string, member: "ready" | "running" | "scheduled" | "retrying" | "waiting" | "dead") =>
    queues.filter((one) => one.queue === queue).reduce((all, one) => all + one[member], 0);
  return (
    <Section title="Task queues">
      <Table caption="Task queues" head={["Queue", "Ready", "Running", "Scheduled", "Retrying", "Waiting", "Dead"]}>
        {names.map((queue) => (
          <tr key={queue}>
            <th scope="row">
              <a href={href(["tasks"], { queue })}>{queue}</a>
            </th>
            {(["ready", "running", "scheduled", "retrying", "waiting", "dead"] as const).map((member) => (
              <td key={member} class={`number ${member === "dead" && sum(queue, member) > 0 ? "bad" : ""}`}>
                {sum(queue, member) > 0 ? <a href={href(["tasks"], { queue, state: member === "ready" ? "pending" : member })}>{number(sum(queue, member))}</a> : "0"}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </Section>
  );
}

function Relays({ relays, workers }: { relays: Relay[]; workers: Worker[] }) {
  return (
    <Section title="Relays and workers" id="relays">
      {relays.length === 0 ? (
        <Empty>
          <p>There is no relay and no worker, so nothing is delivered. Nothing is lost: events wait in the log.</p>
          <p>
            Start one: <code>outbox relay</code>
          </p>
        </Empty>
      ) : (
        <Table caption="Relays and workers" head={["Name", "State", "Lanes", "Heartbeat", "Tasks running", "Handlers"]}>
          {relays.map((relay) => {
            const worker = workers.find((one) => one.name === relay.name);
            return (
              <tr key={relay.id}>
                <th scope="row">{relay.name}</th>
                <td>
                  <State name={relay.alive ? "alive" : "not alive"} />
                </td>
                <td>{relay.lanes ?? <span class="quiet">none{relay.alive ? ": stands by" : ""}</span>}</td>
                <td>
                  <Time at={relay.heartbeat_at} relative />
                </td>
                <td class="number">{worker ? number(worker.running) : "–"}</td>
                <td>{worker ? Object.entries(worker.queues).map(([queue, types]) => `${queue}: ${types.join(", ")}`).join("; ") : "–"}</td>
              </tr>
            );
          })}
        </Table>
      )}
    </Section>
  );
}
