import { useMemo } from "preact/hooks";
import { live } from "../api/live.js";
import type { EventList, Life, OutboxEvent } from "../api/types.js";
import { keyOf } from "../lib/format.js";
import { queueOf } from "../lib/findings.js";
import { route } from "../lib/navigation.js";
import { useObservable } from "../lib/observable.js";
import { usePaged } from "../lib/paged.js";
import { href } from "../lib/route.js";
import { Empty, Loading, More, ProblemBox, State, Table, Time } from "../parts/basics.js";
import { Filters } from "../parts/filters.js";

const SINCE = [
  ["", "any time"],
  ["15m", "15 minutes"],
  ["1h", "1 hour"],
  ["1d", "1 day"],
  ["7d", "7 days"],
] as const;

/** Those that say something: a subscription that does not want an event is not listed. */
const told = (life: Life): boolean => life.state !== "filtered" && life.state !== "skipped";

export function Events() {
  const { query } = useObservable(route);
  const { id, key, type, since, until } = query;
  const page = usePaged<EventList, OutboxEvent>("/events", { id, key, type, since, until, limit: 50 }, (one) => one.events);
  const types = useObservable(live, (one) => [...new Set(one.status?.queues.map((queue) => queue.type ?? ""))].filter((name) => name !== "").join("\n"));
  const known = useMemo(() => [...new Set([...page.rows.flatMap((one) => one.event_type ?? []), ...types.split("\n").filter((name) => name !== "")])].sort(), [page.rows, types]);
  return (
    <>
      <h1>Events</h1>
      <Filters
        filters={[
          { name: "id", label: "Id", placeholder: "0198c5b2-6d1f-…", wide: true },
          { name: "key", label: "Key", placeholder: "order/42" },
          { name: "type", label: "Type", placeholder: "OrderPaid", list: known },
          { name: "since", label: "Created within", options: since && !SINCE.some(([value]) => value === since) ? [...SINCE, [since, `since ${since}`]] : SINCE },
          { name: "until", label: "Created before", placeholder: "2026-01-05T08:00:00Z or 1h" },
        ]}
      />
      {page.problem && <ProblemBox problem={page.problem} again={page.again} />}
      {page.loading && page.first === null && <Loading what="events" />}
      {page.first !== null && page.rows.length === 0 && (
        <Empty>
          <p>No event matches.</p>
          <p>
            {page.first.complete
              ? "Ask for another key or type, or for a longer time. Events that all subscriptions have passed are removed after relay.retention."
              : "Only the newest events were looked at: give a time, or run outbox migrate --with-lookup-indexes, which finds any key."}
          </p>
        </Empty>
      )}
      {page.rows.length > 0 && (
        <>
          <Table caption="Events, the newest first" head={["Created", "Key", "Type", "What became of it", "Seq", "Id"]}>
            {page.rows.map((event) => (
              <tr key={event.id + event.seq}>
                <td>
                  <Time at={event.created_at} />
                </td>
                <td>
                  {keyOf(event) ? (
                    <a href={href(["events"], { key: keyOf(event) })}>{keyOf(event)}</a>
                  ) : (
                    <span class="quiet">{event.aggregate_type}, no key</span>
                  )}
                </td>
                <td>{event.event_type ?? "not kept"}</td>
                <td>
                  <Fates lives={event.subscriptions} />
                </td>
                <td class="number">{event.seq}</td>
                <td>
                  <a class="id" href={href(["events", event.id])} aria-label={`Event ${event.id}`}>
                    {event.id}
                  </a>
                </td>
              </tr>
            ))}
          </Table>
          <More more={page.more} loading={page.loading} shown={page.rows.length} />
          {!page.more && page.first?.more && <p class="quiet">There are more. Narrow the time, the key or the type to see them.</p>}
          {page.first && !page.first.complete && <p class="quiet">Older events were not looked at: give a time, or make the lookup indexes (outbox migrate --with-lookup-indexes).</p>}
        </>
      )}
    </>
  );
}

function Fates({ lives }: { lives: readonly Life[] }) {
  const shown = lives.filter(told);
  if (shown.length === 0) return <span class="quiet">wanted by no subscription</span>;
  const states = new Map<string, string[]>();
  for (const life of shown) states.set(life.state, [...(states.get(life.state) ?? []), queueOf(life.subscription) ?? life.subscription]);
  return (
    <ul class="fates">
      {[...states].map(([state, names]) => (
        <li key={state}>
          <State name={state} /> <span class="quiet">{names.length > 3 ? `${names.slice(0, 3).join(", ")} and ${names.length - 3} more` : names.join(", ")}</span>
        </li>
      ))}
    </ul>
  );
}
