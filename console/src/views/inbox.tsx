import type { ConsumerList, InboxConsumer, Message, MessageList } from "../api/types.js";
import { number } from "../lib/format.js";
import { route } from "../lib/navigation.js";
import { useObservable } from "../lib/observable.js";
import { usePaged } from "../lib/paged.js";
import { useRequest, type Request } from "../lib/request.js";
import { href } from "../lib/route.js";
import { Empty, Loading, More, ProblemBox, Section, Table, Time } from "../parts/basics.js";
import { Filters } from "../parts/filters.js";

const EVERY_MS = 10_000;

const SINCE = [
  ["", "any time"],
  ["15m", "15 minutes"],
  ["1h", "1 hour"],
  ["1d", "1 day"],
  ["7d", "7 days"],
] as const;

export function Inbox() {
  const consumers = useRequest<ConsumerList>("/inbox", {}, EVERY_MS);
  return (
    <>
      <h1>Inbox</h1>
      <p class="lead">Messages that consumers have received. What a broker delivers again is recognized here by its id, and becomes a task once.</p>
      <Consumers found={consumers} />
      <Messages consumers={consumers.value?.consumers ?? []} />
    </>
  );
}

function Consumers({ found }: { found: Request<ConsumerList> }) {
  const consumers = found.value?.consumers ?? [];
  return (
    <Section title="Consumers">
      {found.problem && <ProblemBox problem={found.problem} again={found.again} />}
      {!found.value && found.loading && <Loading what="consumers" />}
      {found.value && consumers.length === 0 && (
        <Empty>
          <p>The inbox is empty: no consumer has received a message.</p>
          <p>
            A consumer is a <code>[consumer.NAME]</code> of the configuration, which <code>outbox consume</code> runs, or a program that calls <code>receive()</code>.
          </p>
        </Empty>
      )}
      {consumers.length > 0 && (
        <Table caption="Consumers" head={["Consumer", "Messages", "Oldest received", "Last received"]}>
          {consumers.map((one) => (
            <tr key={one.name}>
              <th scope="row">
                <a href={href(["inbox"], { consumer: one.name })}>{one.name}</a>
              </th>
              <td class="number">
                {number(one.messages)}
                {one.messages_is_more && " or more"}
              </td>
              <td>
                <Time at={one.oldest_received_at} relative />
              </td>
              <td>
                <Time at={one.last_received_at} relative />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </Section>
  );
}

function Messages({ consumers }: { consumers: readonly InboxConsumer[] }) {
  const { query } = useObservable(route);
  const { id, consumer, type, since, until } = query;
  const page = usePaged<MessageList, Message>("/inbox/messages", { id, consumer, type, since, until, limit: 50 }, (one) => one.messages, EVERY_MS);
  const filtered = [id, consumer, type, since, until].some((value) => value);
  return (
    <Section title="Messages">
      <Filters
        filters={[
          { name: "id", label: "Id", placeholder: "01a1fffe-b175-…", wide: true },
          { name: "consumer", label: "Consumer", list: consumers.map((one) => one.name) },
          { name: "type", label: "Type", placeholder: "OrderPlaced", list: [...new Set(page.rows.flatMap((one) => one.type ?? []))].sort() },
          { name: "since", label: "Received within", options: since && !SINCE.some(([value]) => value === since) ? [...SINCE, [since, `since ${since}`]] : SINCE },
          { name: "until", label: "Received before", placeholder: "2026-01-05T08:00:00Z or 1h" },
        ]}
      />
      {page.problem && <ProblemBox problem={page.problem} again={page.again} />}
      {page.loading && page.first === null && <Loading what="messages" />}
      {page.first !== null && page.rows.length === 0 && (
        <Empty>
          <p>{filtered ? "No message matches." : "No message was received."}</p>
          <p>A message is remembered for inbox.retention, and known by the id that its producer gave it, or by its place at the broker.</p>
        </Empty>
      )}
      {page.rows.length > 0 && (
        <Table caption="Messages, the newest first" head={["Received", "Consumer", "Type", "Place", "Arrivals", "Task", "Id"]}>
          {page.rows.map((one) => (
            <tr key={`${one.consumer}/${one.id}`}>
              <td>
                <Time at={one.received_at} />
              </td>
              <td>
                <a href={href(["inbox"], { ...query, consumer: one.consumer })}>{one.consumer}</a>
              </td>
              <td>{one.type ?? <span class="quiet">not known</span>}</td>
              <td>{one.place ?? "–"}</td>
              <td class="number">{number(one.arrivals)}</td>
              <td>
                {one.task ? (
                  <a href={href(["tasks", one.task])} aria-label={`its task, of message ${one.id}`}>
                    its task
                  </a>
                ) : (
                  <span class="quiet">{one.type === null ? "applied by a program" : "left out: an older state"}</span>
                )}
              </td>
              <td class="wrap">
                <code>{one.id}</code>
              </td>
            </tr>
          ))}
        </Table>
      )}
      <More more={page.more} loading={page.loading} shown={page.rows.length} />
    </Section>
  );
}
