import { useState } from "preact/hooks";
import { get, type Problem } from "../api/client.js";
import { live } from "../api/live.js";
import type { DoctorFinding, Verified, VerifiedSubscription } from "../api/types.js";
import { shellWord } from "../lib/findings.js";
import { count, number } from "../lib/format.js";
import { go, route } from "../lib/navigation.js";
import { Observable, useObservable } from "../lib/observable.js";
import { useRequest } from "../lib/request.js";
import { href } from "../lib/route.js";
import { ChangeButton, Command, Empty, Loading, ProblemBox, Section, State, Table, Time, sentence } from "../parts/basics.js";
import { acknowledge } from "../parts/changes.js";

interface Compared {
  at: string;
  one: VerifiedSubscription;
}

/** What was compared since the page was loaded, by subscription: comparing reads the whole log. */
const compared = new Observable<ReadonlyMap<string, Compared>>(new Map());

export function VerifyView() {
  const { query } = useObservable(route);
  const names = useObservable(live, (one) => (one.status?.subscriptions ?? []).map((each) => each.name).join("\n"));
  const chosen = query["subscription"] ?? "";
  const seen = useObservable(compared);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const doctor = useRequest<DoctorFinding[]>("/doctor", {}, 60_000);
  const known = (doctor.value ?? []).filter((one) => one.check === "verify");
  const subscriptions = names === "" ? [] : names.split("\n");
  const compare = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    const answer = await get<Verified>("/verify", { subscription: chosen });
    setBusy(false);
    if (!answer.ok) {
      setProblem(answer.problem);
      return;
    }
    const at = new Date().toISOString();
    const next = new Map(compared.value);
    for (const one of answer.value.subscriptions) next.set(one.name, { at, one });
    compared.set(next);
  };
  const shown = subscriptions.filter((name) => chosen === "" || name === chosen);
  return (
    <>
      <h1>Verify</h1>
      <p class="lead">
        For each subscription: enqueued = delivered + filtered + pending + parked + discarded, with the numbers of each side counted in different places, and each settlement compared with the events that it covers.
      </p>
      <form class="filters" onSubmit={compare}>
        <p class="field">
          <label htmlFor="verify-subscription">Subscription</label>
          <select id="verify-subscription" value={chosen} onChange={(event) => go(["verify"], { subscription: event.currentTarget.value })}>
            <option value="">all</option>
            {subscriptions.map((name) => (
              <option key={name} value={name} selected={name === chosen}>
                {name}
              </option>
            ))}
          </select>
        </p>
        <div class="actions whole">
          <button type="submit" class="primary" disabled={busy}>
            Compare now
          </button>
          <span class="quiet">Reads the whole log once; locks nothing, and relays go on.</span>
        </div>
      </form>
      {busy && <Loading what="the comparison; a million events take a few seconds" />}
      {problem &&
        (problem.status === 404 && problem.title.includes("path") ? (
          <Empty>
            <p>This console cannot compare by itself. On the command line:</p>
            <Command text={`outbox verify${chosen ? ` --subscription ${shellWord(chosen)}` : ""}`} />
          </Empty>
        ) : (
          <ProblemBox problem={problem} />
        ))}
      <Section title="Differences that a relay has found">
        {doctor.problem && <ProblemBox problem={doctor.problem} again={doctor.again} />}
        {!doctor.value && doctor.loading && <Loading what="what relays have found" />}
        {known.map((one) =>
          one.severity === "ok" ? (
            <p key="ok">
              {sentence(one.what)} <span class="quiet">A relay compares all the time with relay.verify = true.</span>
            </p>
          ) : (
            <div key={one.subject} class="box problem">
              <p class="strong">
                {one.subject}: {sentence(one.what)}
              </p>
              <p>{sentence(one.reason ?? "")}</p>
              <div class="remedy">
                <ChangeButton needs="admin" danger onClick={() => acknowledge(one.subject, null, doctor.again)}>
                  Acknowledge
                </ChangeButton>
                {one.command && <Command text={one.command} />}
              </div>
            </div>
          ),
        )}
      </Section>
      <Section title="Compared all the time">
        <Continuous shown={shown} />
      </Section>
      <Section title="The ledger, as compared since this page was opened">
        {shown.length === 0 ? (
          <Empty>
            <p>There is no subscription to compare.</p>
          </Empty>
        ) : (
          <Table
            caption="The ledger by subscription"
            head={["Subscription", "Result", "Compared at", "Enqueued", "= Delivered", "+ Filtered", "+ Pending", "+ Parked", "+ Discarded", "Passed by a reset", "Settlements"]}
          >
            {shown.map((name) => (
              <LedgerRow key={name} name={name} compared={seen.get(name)} />
            ))}
          </Table>
        )}
      </Section>
      {shown.map((name) => {
        const found = seen.get(name)?.one;
        return found && found.fault_count > 0 ? <Faults key={name} one={found} /> : null;
      })}
    </>
  );
}

/** Relays with relay.verify compare new settlements with the log as they get old enough. */
function Continuous({ shown }: { shown: readonly string[] }) {
  const subscriptions = useObservable(live, (one) => one.status?.subscriptions);
  const rows = (subscriptions ?? []).filter((one) => shown.includes(one.name) && one.verified);
  if (rows.length === 0) {
    return (
      <Empty>
        <p>No relay has compared anything yet. With relay.verify = true in the configuration one of them does so all the time, and an alert says when something differs.</p>
      </Empty>
    );
  }
  return (
    <Table caption="What relays have compared" head={["Subscription", "Result", "Last compared", "Events compared"]}>
      {rows.map(({ name, verified }) =>
        verified ? (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>
              <State name={verified.differences === 0 ? "no difference" : count("difference", verified.differences)} tone={verified.differences === 0 ? "good" : "bad"} />
            </td>
            <td>
              <Time at={verified.at} relative />
            </td>
            <td class="number">{number(verified.events)}</td>
          </tr>
        ) : null,
      )}
    </Table>
  );
}

function LedgerRow({ name, compared: found }: { name: string; compared: Compared | undefined }) {
  const one = found?.one;
  const figure = (value: number | undefined) => <td class="number">{value === undefined ? "–" : number(value)}</td>;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{one ? <State name={one.ok ? "adds up" : count("difference", one.fault_count)} tone={one.ok ? "good" : "bad"} /> : <span class="quiet">not compared</span>}</td>
      <td>{found ? <Time at={found.at} relative /> : <span class="quiet">–</span>}</td>
      {figure(one?.enqueued)}
      {figure(one?.delivered)}
      {figure(one?.filtered)}
      {figure(one?.pending)}
      {figure(one?.parked)}
      {figure(one?.discarded)}
      {figure(one?.skipped)}
      <td class="number">
        {one ? number(one.settlements) : "–"}
        {one && one.settlements_unchecked > 0 && <div class="quiet">{number(one.settlements_unchecked)} not comparable any more</div>}
      </td>
    </tr>
  );
}

const KINDS: Record<string, string> = {
  counts: "a settlement counts other events than the log has",
  uncovered: "events that no settlement covers and that are not pending: they may never have been delivered",
  disjoint: "settlements do not lead on from each other",
  cursor: "a cursor was moved",
  beginning: "the first settlement does not begin where it should",
  overlap: "settlements overlap",
  parked: "what was parked and what became of it differ",
  sum: "the totals do not add up",
  lost: "events that were delivered are not in the destination",
  ghosts: "the destination has ids that no committed event has",
};

function Faults({ one }: { one: VerifiedSubscription }) {
  return (
    <Section title={`Differences of ${one.name}`}>
      <Table caption={`Differences of ${one.name}`} head={["Kind", "What differs", "Events", "Settlement", "Lanes"]}>
        {one.faults.map((fault, at) => (
          <tr key={at}>
            <th scope="row">{fault.kind}</th>
            <td class="wrap">
              {fault.text}
              <div class="quiet">{KINDS[fault.kind] ?? ""}</div>
            </td>
            <td>{fault.seqs ? `seq ${fault.seqs.first} to ${fault.seqs.last}` : "–"}</td>
            <td>
              {fault.settlement ? (
                <>
                  {fault.settlement.id}, <Time at={fault.settlement.at} />{" "}
                  <a href={href(["events"], { until: fault.settlement.at })} aria-label={`Events before settlement ${fault.settlement.id}`}>
                    events before it
                  </a>
                </>
              ) : (
                "–"
              )}
            </td>
            <td class="wrap">{fault.lanes.length === 64 ? "all" : fault.lanes.join(", ")}</td>
          </tr>
        ))}
      </Table>
      <p>
        What to do: see who changed rows by hand (<a href={href(["audit"], { subscription: one.name })}>audit</a>); send the events again that may be missing (
        <a href={href(["replay"], { subscription: one.name, ...(one.faults[0]?.seqs ? { from_seq: one.faults[0].seqs.first, until_seq: one.faults[0].seqs.last } : {}) })}>replay</a>).
      </p>
    </Section>
  );
}
