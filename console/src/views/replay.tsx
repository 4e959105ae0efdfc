import { useEffect, useId, useMemo, useState } from "preact/hooks";
import { live } from "../api/live.js";
import { segment } from "../api/client.js";
import type { Replay } from "../api/types.js";
import { queueOf } from "../lib/findings.js";
import { number } from "../lib/format.js";
import { go, route } from "../lib/navigation.js";
import { useObservable } from "../lib/observable.js";
import { useRequest } from "../lib/request.js";
import { href } from "../lib/route.js";
import { ChangeButton, Empty, Loading, ProblemBox, Progress, Section, State, Table, Time } from "../parts/basics.js";
import { begin } from "../parts/change.js";
import { resumeReplay, stopReplay } from "../parts/changes.js";

const FIELDS = [
  ["from_time", "Created at or after", "2026-01-05T08:00:00Z or 2h"],
  ["until_time", "Created before", "2026-01-05T09:00:00Z or 1h"],
  ["type", "Event types", "Order* InvoicePaid"],
  ["aggregate_type", "Aggregate types", "order"],
  ["key", "Key", "order/42"],
  ["id", "Ids", "0198c5b2-…"],
  ["header", "Headers", "tenant=7"],
  ["from_seq", "From seq", ""],
  ["until_seq", "Until seq", ""],
] as const;

const LISTS = new Set(["type", "aggregate_type", "id", "header"]);
const NUMBERS = new Set(["from_seq", "until_seq"]);

/** The members of the request: words of a list are divided by spaces. */
function members(query: Record<string, string>): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [name] of FIELDS) {
    const value = query[name]?.trim();
    if (!value) continue;
    if (LISTS.has(name)) made[name] = value.split(/[\s]+/);
    else made[name] = NUMBERS.has(name) && /^\d+$/.test(value) ? Number(value) : value;
  }
  return made;
}

export function ReplayView() {
  const { query } = useObservable(route);
  const subscription = query["subscription"] ?? "";
  const running = useObservable(live, (one) => one.status?.subscriptions.some((each) => each.replay !== null) ?? false);
  const replays = useRequest<{ replays: Replay[] }>("/replays", { limit: 50 }, running ? 1000 : 5000);
  // The list is behind by a moment when the live document says that one begins or ends.
  useEffect(() => replays.again(), [running]);
  return (
    <>
      <h1>Replay</h1>
      <p class="lead">Sends events again that a subscription has delivered, with the same ids and in order. Live delivery of that subscription waits until it is done; nothing else does.</p>
      <Choice subscription={subscription} query={query} onDone={replays.again} />
      <Section title="Replays">
        {replays.problem && <ProblemBox problem={replays.problem} again={replays.again} />}
        {replays.loading && !replays.value && <Loading what="replays" />}
        {replays.value?.replays.length === 0 && (
          <Empty>
            <p>Nothing was ever sent again. Choose above what to send.</p>
          </Empty>
        )}
        {replays.value && replays.value.replays.length > 0 && <Replays replays={replays.value.replays} onDone={replays.again} />}
      </Section>
    </>
  );
}

function Choice({ subscription, query, onDone }: { subscription: string; query: Record<string, string>; onDone: () => void }) {
  const names = useObservable(live, (one) =>
    (one.status?.subscriptions ?? [])
      .map((each) => each.name)
      .filter((name) => queueOf(name) === null)
      .join("\n"),
  );
  const [draft, setDraft] = useState<Record<string, string>>(query);
  useEffect(() => setDraft(query), [query]);
  const ids = useId();
  const options = useMemo(() => (names === "" ? [] : names.split("\n")), [names]);
  const submit = (event: Event) => {
    event.preventDefault();
    const name = draft["subscription"] ?? "";
    if (name === "") return;
    go(["replay"], draft);
    begin({
      title: `Replay of ${name}`,
      meaning: "The events below are sent again to the destination of the subscription, in order. What is parked, or was discarded or corrected, is left out.",
      path: `/subscriptions/${segment(name)}/replay`,
      members: members(draft),
      preview: true,
      verb: "Send them again",
      danger: true,
      onDone,
    });
  };
  return (
    <Section title="Choose what to send again">
      <form class="filters" onSubmit={submit}>
        <p class="field">
          <label htmlFor={ids + "-subscription"}>Subscription</label>
          <select
            id={ids + "-subscription"}
            required
            value={draft["subscription"] ?? subscription}
            onChange={(event) => setDraft({ ...draft, subscription: event.currentTarget.value })}
          >
            <option value="">choose one</option>
            {options.map((name) => (
              <option key={name} value={name} selected={name === (draft["subscription"] ?? subscription)}>
                {name}
              </option>
            ))}
          </select>
        </p>
        {FIELDS.map(([name, label, placeholder]) => (
          <p class="field" key={name}>
            <label htmlFor={`${ids}-${name}`}>{label}</label>
            <input
              id={`${ids}-${name}`}
              value={draft[name] ?? ""}
              placeholder={placeholder}
              inputMode={NUMBERS.has(name) ? "numeric" : undefined}
              autoComplete="off"
              spellcheck={false}
              onInput={(event) => setDraft({ ...draft, [name]: event.currentTarget.value })}
            />
          </p>
        ))}
        <div class="actions whole">
          <ChangeSubmit />
          <span class="quiet">Nothing chosen: everything that the log still has. The count comes first.</span>
        </div>
      </form>
    </Section>
  );
}

/** Counting changes nothing, but goes through the path of the change: so it needs its role, too. */
function ChangeSubmit() {
  return (
    <ChangeButton
      small={false}
      onClick={(event) => {
        (event.currentTarget as HTMLButtonElement).form?.requestSubmit();
      }}
    >
      Count them
    </ChangeButton>
  );
}

function Replays({ replays, onDone }: { replays: Replay[]; onDone: () => void }) {
  return (
    <Table
      caption="Replays, the newest first"
      head={[
        "Number",
        "Subscription",
        "State",
        "Progress",
        "Sent",
        "Skipped",
        "Chosen",
        "Started",
        "By",
        "Ended",
        <span key="actions" class="hidden-text">
          Actions
        </span>,
      ]}
    >
      {replays.map((one) => (
        <tr key={one.id}>
          <th scope="row">{one.id}</th>
          <td>
            <a href={href(["subscriptions", one.subscription])}>{one.subscription}</a>
          </td>
          <td>
            <State name={one.state} />
            {one.reason && <div class="quiet">{one.reason}</div>}
          </td>
          <td>
            <Progress
              done={one.state === "done" ? 1 : Math.max(0, one.position - one.first_seq)}
              all={one.state === "done" ? 1 : Math.max(1, one.last_seq - one.first_seq)}
              label={`Progress of replay ${one.id}`}
            />
          </td>
          <td class="number">{number(one.sent)}</td>
          <td class={`number ${one.skipped > 0 ? "bad" : ""}`}>{number(one.skipped)}</td>
          <td>
            seq {one.first_seq} to {one.last_seq}
            {Object.keys(one.filter).length > 0 && <div class="quiet wrap">{JSON.stringify(one.filter)}</div>}
          </td>
          <td>
            <Time at={one.started_at} />
          </td>
          <td>{one.started_by}</td>
          <td>
            <Time at={one.ended_at} />
          </td>
          <td class="row-actions">
            {(one.state === "running" || one.state === "loading") && (
              <ChangeButton danger onClick={() => stopReplay(one.id, one.subscription, onDone)} aria-label={`Stop replay ${one.id}`}>
                Stop
              </ChangeButton>
            )}
            {one.state === "stopped" && (
              <ChangeButton onClick={() => resumeReplay(one.id, one.subscription, onDone)} aria-label={`Resume replay ${one.id}`}>
                Resume
              </ChangeButton>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}
