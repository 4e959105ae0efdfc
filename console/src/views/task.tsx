import { live } from "../api/live.js";
import { segment } from "../api/client.js";
import { mayReadPayloads, session } from "../api/session.js";
import type { WholeTask } from "../api/types.js";
import { duration, readable } from "../lib/format.js";
import { useObservable } from "../lib/observable.js";
import { useRequest } from "../lib/request.js";
import { href } from "../lib/route.js";
import { ChangeButton, Copy, Empty, Fact, Loading, ProblemBox, Progress, Section, State, Table, Time } from "../parts/basics.js";
import { cancelTasks, retryTasks } from "../parts/changes.js";

export function TaskView({ id }: { id: string }) {
  const found = useRequest<WholeTask>(`/tasks/${segment(id)}`, {}, 2000);
  const task = found.value;
  const allowed = mayReadPayloads(useObservable(session));
  const worker = useObservable(live, (one) => one.status?.workers.find((each) => each.name === task?.worker));
  if (!task) {
    return (
      <>
        <h1>Task</h1>
        {found.problem?.status === 404 ? (
          <Empty>
            <p>
              There is no task <code>{id}</code>.
            </p>
            <p>
              It was never committed, or it has ended and was removed (relay.retention). <a href={href(["tasks"])}>All tasks</a>
            </p>
          </Empty>
        ) : found.problem ? (
          <ProblemBox problem={found.problem} again={found.again} />
        ) : (
          <Loading what="the task" />
        )}
      </>
    );
  }
  const ended = task.state === "completed" || task.state === "cancelled";
  // A run that takes long notes that, too, in the place of an error.
  const hasFailed = (task.attempts ?? 0) > 0 || task.state === "dead";
  const headers = Object.entries(task.headers ?? {});
  return (
    <>
      <div class="view-head">
        <h1>{task.type}</h1>
        <State name={task.state} />
        <div class="actions">
          <ChangeButton
            small={false}
            unless={ended ? "It has ended." : task.state === "running" ? "It runs." : task.state === "waiting" ? "It waits behind another task of its key." : task.state === "pending" ? "It waits for a worker anyway." : null}
            onClick={() => retryTasks("this task", { ids: [task.id] }, found.again)}
          >
            Retry
          </ChangeButton>
          <ChangeButton small={false} danger unless={ended ? "It has ended." : null} onClick={() => cancelTasks("this task", { ids: [task.id] }, found.again)}>
            Cancel …
          </ChangeButton>
          <a class="button" href={href(["events", task.id])}>
            Its event
          </a>
        </div>
      </div>
      {task.error && hasFailed && (
        <div class="box problem">
          <p class="strong">Why its last run failed</p>
          <p class="wrap">{task.error}</p>
        </div>
      )}
      <dl class="facts">
        <Fact name="Id" wide>
          <code>{task.id}</code> <Copy text={task.id} what="id" />
        </Fact>
        <Fact name="Queue">
          <a href={href(["tasks"], { queue: task.queue })}>{task.queue}</a>
        </Fact>
        <Fact name="Key">{task.key ? <a href={href(["tasks"], { key: task.key, queue: task.queue })}>{task.key}</a> : "none: it has no order"}</Fact>
        <Fact name="Attempts">{task.attempts ?? 0}</Fact>
        {task.error && !hasFailed && <Fact name="Noted">{task.error}</Fact>}
        <Fact name="Enqueued">
          <Time at={task.enqueued_at} both />
        </Fact>
        {task.next_attempt_at && (
          <Fact name="Next run">
            <Time at={task.next_attempt_at} both />
          </Fact>
        )}
        {task.running_since && (
          <Fact name="Runs since">
            <Time at={task.running_since} both />
          </Fact>
        )}
        {task.worker && (
          <Fact name="Worker">
            {task.worker}
            {worker && <span class={worker.alive ? "quiet" : "bad"}> seen {duration(worker.seen_seconds)} ago{worker.alive ? "" : ", not alive"}</span>}
          </Fact>
        )}
        {task.state === "running" && (
          <Fact name="How far">
            {task.percent != null ? <Progress done={task.percent} all={100} label="Progress" /> : "its handler says nothing"} {task.progress}
          </Fact>
        )}
        {task.waiting_for && (
          <Fact name="Waits for">
            <a href={href(["tasks", task.waiting_for])}>an earlier task of its key</a>
          </Fact>
        )}
        {task.ended_at && (
          <Fact name="Ended">
            <Time at={task.ended_at} both />
          </Fact>
        )}
        {task.ended_by && <Fact name="Ended by">{task.ended_by}</Fact>}
        {task.reason && <Fact name="Reason">{task.reason}</Fact>}
      </dl>
      {task.result != null && (
        <Section title="Result">
          <pre class="output payload" tabIndex={0} aria-label="Result">
            {readable(task.result, null)}
          </pre>
        </Section>
      )}
      {allowed && task.payload != null ? (
        <>
          <Section title="Payload" actions={<Copy text={task.payload} what="payload" />}>
            <pre class="output payload" tabIndex={0} aria-label="Payload">
              {readable(task.payload, task.content_type)}
            </pre>
          </Section>
          {headers.length > 0 && (
            <Section title="Headers">
              <Table caption="Headers" head={["Name", "Value"]}>
                {headers.map(([name, value]) => (
                  <tr key={name}>
                    <th scope="row">{name}</th>
                    <td class="wrap">{value}</td>
                  </tr>
                ))}
              </Table>
            </Section>
          )}
        </>
      ) : (
        <Empty>
          <p>You may not read payloads and headers.</p>
        </Empty>
      )}
    </>
  );
}
