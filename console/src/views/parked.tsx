import { useEffect, useMemo, useState } from "preact/hooks";
import { live } from "../api/live.js";
import type { ParkedError, ParkedErrors, ParkedEvent, ParkedList } from "../api/types.js";
import { count, keyOf, number } from "../lib/format.js";
import { withoutHint } from "../lib/findings.js";
import { route } from "../lib/navigation.js";
import { useObservable } from "../lib/observable.js";
import { usePaged } from "../lib/paged.js";
import { useRequest } from "../lib/request.js";
import { href } from "../lib/route.js";
import { ChangeButton, Empty, Loading, More, ProblemBox, Section, State, Table, Time, sentence } from "../parts/basics.js";
import { discardParked, retryParked } from "../parts/changes.js";
import { Filters } from "../parts/filters.js";
import { editParked } from "./edit.js";

const STATES = [
  ["", "any"],
  ["dead", "dead"],
  ["retrying", "retrying"],
  ["waiting", "waiting"],
] as const;

const EVERY_MS = 10_000;

export function Parked() {
  const { query } = useObservable(route);
  const { subscription, state, type, key, error } = query;
  const filter = { subscription, state, type, key, error };
  const groups = useRequest<ParkedErrors>("/parked/errors", { ...filter, limit: 100 }, EVERY_MS);
  const page = usePaged<ParkedList, ParkedEvent>("/parked", { ...filter, limit: 100 }, (one) => one.events, EVERY_MS);
  const names = useObservable(live, (one) => (one.status?.subscriptions ?? []).map((each) => each.name).join("\n"));
  const again = () => {
    groups.again();
    page.again();
  };
  const subscriptions = names === "" ? [] : names.split("\n");
  const chosen = subscription && !subscriptions.includes(subscription) ? [subscription, ...subscriptions] : subscriptions;
  const filtered = Object.values(filter).some((value) => value);
  return (
    <>
      <h1>Parked events</h1>
      <p class="lead">Events that their destination rejected, set aside so that all other keys go on. Each stays here until it is delivered, or a person decides.</p>
      <Filters
        filters={[
          { name: "subscription", label: "Subscription", options: [["", "all"], ...chosen.map((name) => [name, name] as const)] },
          { name: "state", label: "State", options: STATES },
          { name: "error", label: "Error contains" },
          { name: "type", label: "Type" },
          { name: "key", label: "Key", placeholder: "order/42" },
        ]}
      />
      {groups.problem && <ProblemBox problem={groups.problem} again={groups.again} />}
      {groups.loading && groups.value === null && <Loading what="parked events" />}
      {groups.value?.errors.length === 0 && (
        <Empty>
          <p>{filtered ? "No parked event matches." : "No event is parked: everything that was read was delivered, or waits for its turn."}</p>
          {filtered && <p>Clear a filter to see others.</p>}
        </Empty>
      )}
      {groups.value && groups.value.errors.length > 0 && (
        <>
          <Section title="By error">
            <ul class="groups">
              {groups.value.errors.map((group) => (
                <Group key={`${group.subscription}/${group.error}`} group={group} onDone={again} />
              ))}
            </ul>
          </Section>
          <Rows page={page} onDone={again} />
        </>
      )}
    </>
  );
}

/** What chooses the events of a group again. Those without an error wait behind others of their keys. */
function choice(group: ParkedError): Record<string, string> {
  return group.error === null ? { subscription: group.subscription, state: "waiting" } : { subscription: group.subscription, error: group.error };
}

function Group({ group, onDone }: { group: ParkedError; onDone: () => void }) {
  const what = `${count("event", group.events)} of ${group.subscription}`;
  const { newest } = group;
  const error = withoutHint(group.error ?? "");
  return (
    <li class={`group ${group.dead > 0 ? "dead" : ""}`}>
      <div class="card-head">
        <h3>{group.error === null ? "No error: they wait for an earlier event of their key" : sentence(error.text)}</h3>
        <span class="group-count">
          <strong>{number(group.events)}</strong> <span class="quiet">{group.events === 1 ? "event" : "events"}</span>
          {group.dead > 0 && <State name={`${number(group.dead)} dead`} tone="bad" />}
        </span>
      </div>
      <p>
        <a href={href(["subscriptions", group.subscription])}>{group.subscription}</a> · since <Time at={group.first_parked_at} relative /> · newest:{" "}
        <a href={href(["events", newest.id])}>
          {newest.event_type} {keyOf(newest) ?? newest.aggregate_type}
        </a>
        , seq {newest.seq}, {count("attempt", newest.attempts)}
      </p>
      {error.hint && (
        <p>
          <span class="quiet">What to do: </span>
          {sentence(error.hint)}
        </p>
      )}
      <div class="actions">
        <ChangeButton
          unless={group.error === null ? "They are sent when it is their turn: retry the event before them." : null}
          onClick={() => retryParked(what, choice(group), onDone)}
          aria-label={group.events === 1 ? `Retry ${what}` : `Retry all ${what}`}
        >
          {group.events === 1 ? "Retry" : "Retry all"}
        </ChangeButton>
        <ChangeButton danger onClick={() => discardParked(what, choice(group), onDone)} aria-label={`Discard … ${what}`}>
          Discard …
        </ChangeButton>
        {group.error !== null && (
          <a class="button small" href={href(["parked"], { subscription: group.subscription, error: group.error })}>
            Show only these
          </a>
        )}
      </div>
    </li>
  );
}

const idOf = (row: ParkedEvent): string => `${row.subscription}/${row.seq}`;

function Rows({ page, onDone }: { page: ReturnType<typeof usePaged<ParkedList, ParkedEvent>>; onDone: () => void }) {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const rows = page.rows;
  // What was delivered meanwhile is selected no more.
  const chosen = useMemo(() => rows.filter((row) => selected.has(idOf(row))), [rows, selected]);
  useEffect(() => {
    if (chosen.length < selected.size) setSelected(new Set(chosen.map(idOf)));
  }, [chosen]);
  const toggle = (row: ParkedEvent) => {
    const next = new Set(selected);
    if (!next.delete(idOf(row))) next.add(idOf(row));
    setSelected(next);
  };
  const subscriptions = new Set(chosen.map((row) => row.subscription));
  const members = () => ({ subscription: chosen[0]?.subscription, events: chosen.map((row) => String(row.seq)) });
  const unless = chosen.length === 0 ? "Select events first." : subscriptions.size > 1 ? "Select events of one subscription." : null;
  const done = () => {
    setSelected(new Set());
    onDone();
  };
  const all = rows.length > 0 && chosen.length === rows.length;
  return (
    <Section
      title="One by one"
      actions={
        <>
          <span class="quiet" role="status">
            {chosen.length > 0 ? `${number(chosen.length)} selected` : ""}
          </span>
          <ChangeButton unless={unless} onClick={() => retryParked(count("selected event", chosen.length), members(), done)}>
            Retry selected
          </ChangeButton>
          <ChangeButton danger unless={unless} onClick={() => discardParked(count("selected event", chosen.length), members(), done)}>
            Discard selected …
          </ChangeButton>
        </>
      }
    >
      {page.problem && <ProblemBox problem={page.problem} again={page.again} />}
      <Table
        caption="Parked events"
        head={[
          <input key="all" type="checkbox" aria-label="Select all that are shown" checked={all} onChange={() => setSelected(all ? new Set() : new Set(rows.map(idOf)))} />,
          "State",
          "Subscription",
          "Key",
          "Type",
          "Attempts",
          "Error",
          "Parked",
          <span key="actions" class="hidden-text">
            Actions
          </span>,
        ]}
      >
        {rows.map((row) => (
          <tr key={idOf(row)} class={selected.has(idOf(row)) ? "selected" : ""}>
            <td>
              <input type="checkbox" aria-label={`Select seq ${row.seq} of ${row.subscription}`} checked={selected.has(idOf(row))} onChange={() => toggle(row)} />
            </td>
            <td>
              <State name={row.state} />
              {row.next_attempt_at && (
                <div>
                  <span class="quiet">next </span>
                  <Time at={row.next_attempt_at} />
                </div>
              )}
            </td>
            <td>{row.subscription}</td>
            <td>{keyOf(row) ? <a href={href(["events"], { key: keyOf(row) })}>{keyOf(row)}</a> : <span class="quiet">none</span>}</td>
            <td>
              <a href={href(["events", row.id])}>{row.event_type}</a>
            </td>
            <td class="number">{row.attempts}</td>
            <td class="wrap error-text">{row.error === null ? <span class="quiet">–</span> : withoutHint(row.error).text}</td>
            <td>
              <Time at={row.parked_at} />
            </td>
            <td class="row-actions">
              <ChangeButton
                unless={row.state === "waiting" ? "It waits behind another event of its key: retry that one." : null}
                onClick={() => retryParked(`seq ${row.seq} of ${row.subscription}`, { subscription: row.subscription, events: [String(row.seq)] }, onDone)}
                aria-label={`Retry seq ${row.seq}`}
              >
                Retry
              </ChangeButton>
              <ChangeButton
                needs="admin"
                payloads
                unless={row.state === "waiting" ? "It waits behind another event of its key: mend that one first." : null}
                onClick={() => editParked(row, onDone)}
                aria-label={`Edit seq ${row.seq}`}
              >
                Edit
              </ChangeButton>
              <ChangeButton
                danger
                onClick={() => discardParked(`seq ${row.seq} of ${row.subscription}`, { subscription: row.subscription, events: [String(row.seq)] }, onDone)}
                aria-label={`Discard seq ${row.seq}`}
              >
                Discard
              </ChangeButton>
            </td>
          </tr>
        ))}
      </Table>
      <More more={page.more} loading={page.loading} shown={rows.length} />
      {!page.more && page.first?.more && <p class="quiet">The first {number(rows.length)} are shown. Narrow the filter to see others; a group above acts on all of its events.</p>}
    </Section>
  );
}
