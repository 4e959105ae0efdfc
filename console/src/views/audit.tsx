import { live } from "../api/live.js";
import type { Change, ChangeList } from "../api/types.js";
import { number } from "../lib/format.js";
import { route } from "../lib/navigation.js";
import { useObservable } from "../lib/observable.js";
import { usePaged } from "../lib/paged.js";
import { href } from "../lib/route.js";
import { Empty, Loading, More, ProblemBox, Table, Time } from "../parts/basics.js";
import { Filters } from "../parts/filters.js";

const SINCE = [
  ["", "any time"],
  ["1h", "1 hour"],
  ["1d", "1 day"],
  ["7d", "7 days"],
  ["30d", "30 days"],
] as const;

export function Audit() {
  const { query } = useObservable(route);
  const { since, person, subscription } = query;
  const page = usePaged<ChangeList, Change>("/audit", { since, person, subscription, limit: 100 }, (one) => one.changes, 10_000);
  const names = useObservable(live, (one) => (one.status?.subscriptions ?? []).map((each) => each.name).join("\n"));
  const filtered = Object.values({ since, person, subscription }).some((value) => value);
  return (
    <>
      <h1>Audit</h1>
      <p class="lead">Each change that a person made, written in the transaction of the change.</p>
      <Filters
        filters={[
          { name: "since", label: "Within", options: since && !SINCE.some(([value]) => value === since) ? [...SINCE, [since, `since ${since}`]] : SINCE },
          { name: "person", label: "Person" },
          { name: "subscription", label: "Subscription", list: names === "" ? [] : names.split("\n") },
        ]}
      />
      {page.problem && <ProblemBox problem={page.problem} again={page.again} />}
      {page.loading && page.first === null && <Loading what="changes" />}
      {page.first !== null && page.rows.length === 0 && (
        <Empty>
          <p>{filtered ? "Nobody made such a change." : "Nobody has changed anything."}</p>
        </Empty>
      )}
      {page.rows.length > 0 && (
        <Table caption="Changes, the newest first" head={["When", "Who", "From", "What", "Of", "Chosen", "Changed", "Reason"]}>
          {page.rows.map((one) => (
            <tr key={one.id}>
              <td>
                <Time at={one.at} />
              </td>
              <td>
                <a href={href(["audit"], { ...query, person: one.person })}>{one.person}</a>
              </td>
              <td>{one.origin}</td>
              <th scope="row">{one.verb}</th>
              <td>{one.queue ? <a href={href(["tasks"], { queue: one.queue })}>{one.queue}</a> : one.subscription ? <a href={href(["subscriptions", one.subscription])}>{one.subscription}</a> : "–"}</td>
              <td class="wrap">{chosen(one.filter)}</td>
              <td class="number">{number(one.count)}</td>
              <td class="wrap">{one.reason ?? "–"}</td>
            </tr>
          ))}
        </Table>
      )}
      <More more={page.more} loading={page.loading} shown={page.rows.length} />
      {!page.more && page.first?.more && <p class="quiet">There are older ones. Narrow the time, the person or the subscription to see them.</p>}
    </>
  );
}

function chosen(filter: Record<string, unknown>): string {
  const parts = Object.entries(filter).map(([name, value]) => `${name} ${Array.isArray(value) ? value.join(", ") : String(value)}`);
  return parts.length === 0 ? "–" : parts.join("; ");
}
