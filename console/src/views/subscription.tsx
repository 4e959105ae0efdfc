import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { live, rates } from "../api/live.js";
import type { Relay, Status, SubscriptionSpec, SubscriptionStatus } from "../api/types.js";
import { findings } from "../lib/findings.js";
import { bytes, count, duration, number, rate as rateText } from "../lib/format.js";
import { lineOf, series } from "../lib/history.js";
import { refine, route } from "../lib/navigation.js";
import { useObservable } from "../lib/observable.js";
import { useRequest } from "../lib/request.js";
import { href } from "../lib/route.js";
import { ChangeButton, Empty, Fact, Loading, ProblemBox, Progress, Section, State, Table, Time } from "../parts/basics.js";
import { pauseSubscription, resumeSubscription } from "../parts/changes.js";
import { Chart } from "../parts/chart.js";
import { FindingList } from "../parts/findings.js";

const SPANS = [
  ["1h", "1 hour"],
  ["1d", "1 day"],
  ["7d", "7 days"],
] as const;

export function Subscription({ name }: { name: string }) {
  const { status, problem } = useObservable(live);
  const specs = useRequest<{ subscriptions: SubscriptionSpec[] }>("/subscriptions");
  const one = status?.subscriptions.find((each) => each.name === name);
  if (status === null) return problem ? null : <Loading what={`subscription ${name}`} />;
  if (!one) {
    return (
      <>
        <h1>{name}</h1>
        <Empty>
          <p>There is no subscription {name} in this store. It may have been renamed or dropped.</p>
          <p>
            <a href={href(["audit"], { subscription: name })}>What was changed of it</a> · <a href={href([])}>All subscriptions</a>
          </p>
        </Empty>
      </>
    );
  }
  const spec = specs.value?.subscriptions.find((each) => each.name === name);
  return (
    <>
      <div class="view-head">
        <h1>{name}</h1>
        <State name={one.state} />
        <div class="actions">
          {one.state === "active" ? (
            <ChangeButton small={false} onClick={() => pauseSubscription(name, specs.again)}>
              Pause
            </ChangeButton>
          ) : (
            <ChangeButton small={false} onClick={() => resumeSubscription(name, specs.again)}>
              Resume
            </ChangeButton>
          )}
          <a class="button" href={href(["replay"], { subscription: name })}>
            Replay …
          </a>
          <a class="button" href={href(["parked"], { subscription: name })}>
            Parked
          </a>
          <a class="button" href={href(["audit"], { subscription: name })}>
            Audit
          </a>
        </div>
      </div>
      <Wrong status={status} name={name} />
      <Now one={one} />
      <Past name={name} />
      {specs.problem && <ProblemBox problem={specs.problem} again={specs.again} />}
      {spec && <Settings spec={spec} />}
      {spec && <Deliverers relays={status.relays} group={groupOf(spec)} />}
    </>
  );
}

function Wrong({ status, name }: { status: Status; name: string }) {
  const found = useMemo(
    () =>
      findings({ status, doctor: null, running: [], schedules: [], now: Date.now() }).filter(
        (one) => one.key.endsWith(":" + name) || one.key === "relays:",
      ),
    [status, name],
  );
  if (found.length === 0) return null;
  return (
    <Section title="What is wrong">
      <FindingList findings={found} onDone={() => undefined} />
    </Section>
  );
}

function Now({ one }: { one: SubscriptionStatus }) {
  const now = useObservable(rates, (all) => rateText(all.get(one.name) ?? 0));
  const parked = one.parked.dead + one.parked.retrying + one.parked.waiting;
  return (
    <Section title="Now">
      <dl class="facts">
        <Fact name="Rate">{now}</Fact>
        <Fact name="Pending">
          {one.pending_is_more ? "more than " : ""}
          {count("event", one.pending)}
        </Fact>
        <Fact name="Oldest pending">
          {one.oldest_pending_at ? (
            <>
              {duration(one.lag_seconds ?? 0)}, from <Time at={one.oldest_pending_at} />
            </>
          ) : (
            "none"
          )}
        </Fact>
        <Fact name="Parked">
          {parked === 0 ? (
            "none"
          ) : (
            <a href={href(["parked"], { subscription: one.name })}>
              {number(one.parked.retrying)} retrying, {number(one.parked.waiting)} waiting, {number(one.parked.dead)} dead
            </a>
          )}
        </Fact>
        <Fact name="Delivered in all">{number(one.delivered)}</Fact>
        <Fact name="Filtered in all">{number(one.filtered)}</Fact>
        <Fact name="Cursor moved last">
          <Time at={one.last_settled_at} relative />
        </Fact>
        <Fact name="Generation">{number(one.generation)}</Fact>
        <Fact name="History held back">
          {one.held_back.bytes > 0
            ? `${bytes(one.held_back.bytes)} in ${count("part", one.held_back.parts)}: its cursor stands before what could be removed`
            : "none: retention may remove what is old enough"}
        </Fact>
        {one.reason && <Fact name={`Why it is ${one.state}`}>{one.reason}</Fact>}
      </dl>
      {one.replay && (
        <p>
          <a href={href(["replay"], { subscription: one.name })}>Replay {one.replay.id}</a> sends events again; live delivery waits until it is done.{" "}
          <Progress done={one.replay.position - one.replay.first_seq} all={Math.max(1, one.replay.last_seq - one.replay.first_seq)} label={`Replay ${one.replay.id}`} />
        </p>
      )}
    </Section>
  );
}

function Past({ name }: { name: string }) {
  const { query } = useObservable(route);
  const since = query["since"] ?? "1d";
  const past = useRequest<Status>("/status", { since }, 60_000);
  const history = past.value?.history ?? null;
  const line = lineOf(history, name);
  const drawn = useMemo(() => (history ? series(line, history, past.at) : null), [history]);
  return (
    <Section
      title="Its past"
      actions={
        <div class="choice" role="group" aria-label="How far back">
          {SPANS.map(([value, text]) => (
            <button key={value} type="button" class="small" aria-pressed={since === value} onClick={() => refine({ since: value })}>
              {text}
            </button>
          ))}
        </div>
      }
    >
      {past.problem && <ProblemBox problem={past.problem} again={past.again} />}
      {!drawn && past.loading && <Loading what="its past" />}
      {drawn && !line && (
        <Empty>
          <p>Relays wrote nothing about it in this time: nothing happened, or no relay ran.</p>
        </Empty>
      )}
      {drawn && line && (
        <>
          <p>
            {count("event", line.delivered)} delivered ({rateText(line.per_second)}), {count("failed send", line.failed)}, {number(line.parked)} parked,{" "}
            {number(line.dead)} dead; from creation to delivery {line.p50_seconds === null ? "–" : duration(line.p50_seconds)} for half of them,{" "}
            {line.p99_seconds === null ? "–" : duration(line.p99_seconds)} at the 99th percentile; at most {number(line.most_pending)} pending.
          </p>
          <div class="charts">
            <Chart
              title="Events per second"
              at={drawn.at}
              unit="rate"
              curves={[
                { name: "delivered", values: drawn.rate, color: "ink-good", fill: true },
                { name: "failed sends", values: drawn.failed, color: "ink-bad", dash: [6, 3] },
              ]}
            />
            <Chart
              title="From creation to delivery"
              at={drawn.at}
              unit="seconds"
              curves={[
                { name: "p50", values: drawn.p50, color: "ink-busy" },
                { name: "p99", values: drawn.p99, color: "ink-warn", dash: [6, 3] },
              ]}
            />
            <Chart title="Pending events" at={drawn.at} unit="count" curves={[{ name: "pending", values: drawn.pending, color: "ink-busy", fill: true }]} />
          </div>
        </>
      )}
    </Section>
  );
}

const list = (values: readonly string[]): ComponentChildren => (values.length === 0 ? "all" : values.map((one) => <code key={one}>{one}</code>));

function Settings({ spec }: { spec: SubscriptionSpec }) {
  const headers = Object.entries(spec.match_headers).map(([name, value]) => `${name}=${value}`);
  return (
    <Section title="Filter and destination">
      <dl class="facts">
        <Fact name="Event types">{list(spec.event_types)}</Fact>
        <Fact name="Aggregate types">{list(spec.aggregate_types)}</Fact>
        <Fact name="Headers">{list(headers)}</Fact>
        <Fact name="Sink">{spec.sink}</Fact>
        {spec.topic && (
          <Fact name="Topic">
            <code>{spec.topic}</code>
          </Fact>
        )}
        {spec.format && <Fact name="Format">{spec.format}</Fact>}
        {spec.rate && <Fact name="At most">{spec.rate}</Fact>}
        <Fact name="When it is rejected">
          {spec.on_reject === "park" ? "the event is parked, others go on" : spec.on_reject}; dead after {count("attempt", spec.max_attempts)}
          {spec.on_dead === "block" ? ", which blocks its key" : ""}
        </Fact>
        {spec.delays.length > 0 && <Fact name="Attempts after">{spec.delays.join(", ")}</Fact>}
        {Object.entries(spec.sink_settings).map(([name, value]) => (
          <Fact key={name} name={`${spec.sink}.${name}`}>
            <code>{typeof value === "string" ? value : JSON.stringify(value)}</code>
          </Fact>
        ))}
      </dl>
    </Section>
  );
}

/** The group whose relays deliver it; a setting that is empty means the one that its sink needs. */
function groupOf(spec: SubscriptionSpec): string {
  if (spec.sink === "file") return `file:${spec.name}`;
  if (spec.group !== "") return spec.group;
  return spec.sink === "custom" ? `custom:${spec.name}` : "default";
}

function Deliverers({ relays, group }: { relays: readonly Relay[]; group: string }) {
  const mine = relays.filter((relay) => (relay.lanes ?? "").split(", ").some((part) => part.replace(/ \d+$/, "") === group));
  return (
    <Section title="Who delivers">
      <p>
        Group <code>{group}</code>: its relays share 64 lanes, and a key is always with one of them.
      </p>
      {mine.length === 0 ? (
        <Empty>
          <p>No relay has lanes of this group, so its events stay pending. None is lost.</p>
          <p>
            Start one: <code>outbox relay --group {group}</code>
          </p>
        </Empty>
      ) : (
        <Table caption="Relays that deliver it" head={["Relay", "State", "Lanes", "Heartbeat"]}>
          {mine.map((relay) => (
            <tr key={relay.id}>
              <th scope="row">{relay.name}</th>
              <td>
                <State name={relay.alive ? "alive" : "not alive"} />
              </td>
              <td>{relay.lanes}</td>
              <td>
                <Time at={relay.heartbeat_at} relative />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}
