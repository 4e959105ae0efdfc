import { useEffect, useMemo, useState } from "preact/hooks";
import { get, segment } from "../api/client.js";
import { mayReadPayloads, session } from "../api/session.js";
import type { ChangeList, EventList, LifeState, OutboxEvent, ParkedEvent, WholeParkedEvent } from "../api/types.js";
import { keyOf, readable } from "../lib/format.js";
import { correlationOf, lifeSteps } from "../lib/life.js";
import { useObservable } from "../lib/observable.js";
import { useRequest } from "../lib/request.js";
import { href } from "../lib/route.js";
import { ChangeButton, Copy, Empty, Fact, Loading, ProblemBox, Section, State, Table, Time } from "../parts/basics.js";
import { discardParked, retryParked } from "../parts/changes.js";
import { editParked } from "./edit.js";

export function EventView({ id }: { id: string }) {
  const found = useRequest<EventList>(`/events/${segment(id)}`, {}, 5000);
  const event = found.value?.events[0];
  const isParked = event?.subscriptions.some((life) => ["dead", "retrying", "waiting", "running", "ready"].includes(life.state)) ?? false;
  const parked = useRequest<{ events: WholeParkedEvent[] }>(isParked ? `/parked/${segment(id)}` : null, {}, 10_000);
  const changes = useRequest<ChangeList>(event ? "/audit" : null, { since: event?.created_at, limit: 200 });
  const again = () => {
    found.again();
    parked.again();
    changes.again();
  };
  if (!event) {
    return (
      <>
        <h1>Event</h1>
        {found.problem ? (
          found.problem.status === 404 ? (
            <Empty>
              <p>
                There is no event <code>{id}</code>.
              </p>
              <p>It was never committed, or all subscriptions have passed it and it was removed (relay.retention).</p>
              <p>
                <a href={href(["events"])}>Search events</a>
              </p>
            </Empty>
          ) : (
            <ProblemBox problem={found.problem} again={found.again} />
          )
        ) : (
          <Loading what="the event" />
        )}
      </>
    );
  }
  const key = keyOf(event);
  return (
    <>
      <div class="view-head">
        <h1>
          {event.event_type ?? "Corrected copy"} <span class="quiet">{key ?? event.aggregate_type}</span>
        </h1>
      </div>
      <dl class="facts">
        <Fact name="Id" wide>
          <code>{event.id}</code> <Copy text={event.id} what="id" />
        </Fact>
        <Fact name="Seq">{event.seq}</Fact>
        <Fact name="Created">
          <Time at={event.created_at} both />
        </Fact>
        {event.occurred_at && (
          <Fact name="Occurred">
            <Time at={event.occurred_at} both />
          </Fact>
        )}
        <Fact name="Key">{key ? <a href={href(["events"], { key })}>{key}: all events of this key</a> : "none: it has no order"}</Fact>
        <Fact name="Type">
          {event.event_type === null ? "not kept" : <a href={href(["events"], { type: event.event_type })}>{event.event_type}</a>}
        </Fact>
        <Fact name="In the log">{event.in_log ? "yes" : "no: only its parked copy is left, or it is a corrected copy"}</Fact>
      </dl>
      <Section title="Its life in every subscription">
        {event.subscriptions.length === 0 && (
          <Empty>
            <p>No subscription existed that could deliver it.</p>
          </Empty>
        )}
        <div class="lives">
          {event.subscriptions
            .filter((life) => life.state !== "filtered" && life.state !== "skipped")
            .map((life) => {
              const row = parked.value?.events.find((one) => one.subscription === life.subscription);
              return (
                <article key={life.subscription} class="life">
                  <div class="card-head">
                    <h3>
                      <a href={href(["subscriptions", life.subscription])}>{life.subscription}</a>
                    </h3>
                    <State name={life.state} />
                  </div>
                  <ol class="timeline">
                    {lifeSteps(event, life, row, changes.value?.changes ?? []).map((step, at) => (
                      <li key={at} class={step.tone}>
                        <span class="step">{step.name}</span> {step.at && <Time at={step.at} />}
                        <span class="step-text">
                          {step.text}
                          {step.other && (
                            <>
                              {" "}
                              (<a href={href(["events", step.other])}>see it</a>)
                            </>
                          )}
                        </span>
                      </li>
                    ))}
                  </ol>
                  {row && <Mend event={event} row={row} onDone={again} />}
                </article>
              );
            })}
        </div>
        <Others event={event} state="filtered" text="Not wanted by the filter of" />
        <Others event={event} state="skipped" text="There before, and so never sent by" />
      </Section>
      <Content event={event} />
    </>
  );
}

/** The subscriptions in which nothing more became of it than this. */
function Others({ event, state, text }: { event: OutboxEvent; state: LifeState; text: string }) {
  const names = event.subscriptions.filter((life) => life.state === state).map((life) => life.subscription);
  if (names.length === 0) return null;
  return (
    <p>
      <State name={state} /> {text}{" "}
      {names.map((name, at) => (
        <span key={name}>
          {at > 0 && ", "}
          <a href={href(["subscriptions", name])}>{name}</a>
        </span>
      ))}
    </p>
  );
}

function Mend({ event, row, onDone }: { event: OutboxEvent; row: ParkedEvent; onDone: () => void }) {
  const named = { subscription: row.subscription, events: [String(row.seq)] };
  return (
    <div class="actions">
      <ChangeButton onClick={() => retryParked(`seq ${event.seq}`, named, onDone)}>Retry</ChangeButton>
      <ChangeButton needs="admin" payloads unless={row.state === "waiting" ? "It waits behind another event of its key: mend that one first." : null} onClick={() => editParked(row, onDone)}>
        Edit and retry
      </ChangeButton>
      <ChangeButton danger onClick={() => discardParked(`seq ${event.seq}`, named, onDone)}>
        Discard
      </ChangeButton>
    </div>
  );
}

function Content({ event }: { event: OutboxEvent }) {
  const state = useObservable(session);
  const allowed = mayReadPayloads(state);
  const whole = useRequest<EventList>(allowed && event.content_kept ? `/events/${segment(event.id)}/payload` : null);
  const shown = whole.value?.events[0];
  const formatted = useMemo(() => (typeof shown?.payload !== "string" ? "" : readable(shown.payload, shown.content_type)), [shown]);
  if (!event.content_kept) {
    return (
      <Section title="Payload and headers">
        <Empty>
          <p>They are not kept: this is a corrected copy, and it was delivered or discarded.</p>
          <p>The event that it replaced is at the same place of the log. It has its own payload and headers.</p>
        </Empty>
      </Section>
    );
  }
  if (!allowed || whole.problem?.status === 403) {
    return (
      <Section title="Payload and headers">
        <Empty>
          <p>You may not read payloads and headers.</p>
          <p>Everything else about the event is above. A token that may is made with: outbox console token add NAME --payloads</p>
        </Empty>
      </Section>
    );
  }
  if (whole.problem) return <ProblemBox problem={whole.problem} again={whole.again} />;
  if (!shown) return <Loading what="the payload" />;
  const headers = Object.entries(shown.headers ?? {});
  return (
    <>
      <Section title="Payload" actions={<Copy text={shown.payload ?? ""} what="payload" />}>
        <p class="quiet">{shown.content_type ?? "no content type"}</p>
        <pre class="output payload" tabIndex={0} aria-label="Payload">
          {formatted}
        </pre>
      </Section>
      <Section title="Headers">
        {headers.length === 0 ? (
          <p class="quiet">It has none.</p>
        ) : (
          <Table caption="Headers" head={["Name", "Value"]}>
            {headers.map(([name, value]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td class="wrap">{value}</td>
              </tr>
            ))}
          </Table>
        )}
        <Correlated event={shown} />
      </Section>
    </>
  );
}

const AROUND_MS = 15 * 60_000;
const LOOKED_AT = 100;
const AT_ONCE = 4;

/** Events of the same correlation id. The API cannot search headers, so those around it are looked at. */
function Correlated({ event }: { event: OutboxEvent }) {
  const correlation = correlationOf(event.headers);
  const [found, setFound] = useState<OutboxEvent[] | null>(null);
  const [looked, setLooked] = useState<number | null>(null);
  useEffect(() => {
    setFound(null);
    setLooked(null);
  }, [event.id]);
  if (!correlation) return null;
  const look = async () => {
    setLooked(0);
    const created = Date.parse(event.created_at);
    const near = await get<EventList>("/events", {
      since: new Date(created - AROUND_MS).toISOString(),
      until: new Date(created + AROUND_MS).toISOString(),
      limit: LOOKED_AT,
    });
    const all: OutboxEvent[] = [];
    const others = near.ok ? near.value.events.filter((one) => one.id !== event.id) : [];
    for (let i = 0; i < others.length; i += AT_ONCE) {
      const answers = await Promise.all(others.slice(i, i + AT_ONCE).map((one) => get<EventList>(`/events/${segment(one.id)}/payload`)));
      for (const answer of answers) {
        const one = answer.ok ? answer.value.events[0] : undefined;
        if (one?.headers?.[correlation.name] === correlation.value) all.push(one);
      }
      setLooked(Math.min(others.length, i + AT_ONCE));
    }
    setFound(all);
  };
  return (
    <div class="correlated">
      <p>
        Correlation id <code>{correlation.value}</code>{" "}
        <button type="button" class="small" onClick={look} disabled={looked !== null && found === null}>
          Find its other events
        </button>{" "}
        <span class="quiet" role="status">
          {looked !== null && found === null ? `${looked} events looked at` : ""}
          {found?.length === 0 ? `None of the ${looked ?? 0} events within 15 minutes has the same id.` : ""}
        </span>
      </p>
      {found && found.length > 0 && (
        <Table caption="Events of the same correlation id" head={["Created", "Key", "Type"]}>
          {found.map((one) => (
            <tr key={one.id}>
              <td>
                <Time at={one.created_at} />
              </td>
              <td>{keyOf(one) ?? one.aggregate_type}</td>
              <td>
                <a href={href(["events", one.id])}>{one.event_type}</a>
              </td>
            </tr>
          ))}
        </Table>
      )}
    </div>
  );
}
