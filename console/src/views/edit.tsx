// Edit and retry: a corrected copy takes the place of a parked event.
import { useEffect, useId, useState } from "preact/hooks";
import { get, post, segment, type Problem } from "../api/client.js";
import type { ParkedEvent, WholeParkedEvent } from "../api/types.js";
import { readable } from "../lib/format.js";
import { Observable, useObservable } from "../lib/observable.js";
import { Loading, ProblemBox } from "../parts/basics.js";
import { said } from "../parts/change.js";
import { Dialog } from "../parts/dialog.js";

interface Editing {
  row: Pick<ParkedEvent, "seq" | "subscription">;
  onDone: () => void;
}

const editing = new Observable<Editing | null>(null);

export function editParked(row: Pick<ParkedEvent, "seq" | "subscription">, onDone: () => void): void {
  editing.set({ row, onDone });
}

export function EditDialog() {
  const edited = useObservable(editing);
  if (!edited) return null;
  return <Loader key={`${edited.row.subscription}/${edited.row.seq}`} edited={edited} />;
}

const close = () => editing.set(null);

function Loader({ edited }: { edited: Editing }) {
  const { row, onDone } = edited;
  const [event, setEvent] = useState<WholeParkedEvent | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    void get<{ events: WholeParkedEvent[] }>(`/parked/${segment(row.seq)}`, { subscription: row.subscription }).then((answer) => {
      if (!answer.ok) setProblem(answer.problem);
      else setEvent(answer.value.events[0] ?? null);
    });
  }, []);
  return (
    <Dialog title={`Edit and retry seq ${row.seq} of ${row.subscription}`} onClose={close} wide>
      {problem && <ProblemBox problem={problem} />}
      {!event && !problem && <Loading what="the event" />}
      {event ? (
        <Form event={event} onDone={onDone} />
      ) : (
        <div class="dialog-actions">
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      )}
    </Dialog>
  );
}

type Stage = "writing" | "asking" | "shown" | "doing" | "done";

const asLines = (headers: Record<string, string>): string =>
  Object.entries(headers)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");

/** The members of the request: only what differs, so that nothing else is checked or changed. */
function differences(event: WholeParkedEvent, formatted: string, now: { payload: string; type: string; contentType: string; headers: string }) {
  const members: Record<string, unknown> = { subscription: event.subscription };
  if (now.payload !== formatted) members["payload"] = now.payload;
  if (now.type !== event.event_type) members["event_type"] = now.type;
  if (now.contentType !== (event.content_type ?? "")) members["content_type"] = now.contentType;
  const wanted = new Map<string, string>();
  for (const line of now.headers.split("\n")) {
    const mark = line.indexOf("=");
    if (mark > 0) wanted.set(line.slice(0, mark).trim(), line.slice(mark + 1));
  }
  const changed = [...wanted].filter(([name, value]) => event.headers[name] !== value).map(([name, value]) => `${name}=${value}`);
  const removed = Object.keys(event.headers).filter((name) => !wanted.has(name));
  if (changed.length > 0) members["headers"] = changed;
  if (removed.length > 0) members["without_headers"] = removed;
  return members;
}

function Form({ event, onDone }: { event: WholeParkedEvent; onDone: () => void }) {
  const formatted = readable(event.payload, event.content_type);
  const [payload, setPayload] = useState(formatted);
  const [type, setType] = useState(event.event_type);
  const [contentType, setContentType] = useState(event.content_type ?? "");
  const [headers, setHeaders] = useState(asLines(event.headers));
  const [reason, setReason] = useState("");
  const [stage, setStage] = useState<Stage>("writing");
  const [output, setOutput] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const ids = useId();
  const path = `/parked/${segment(event.seq)}/edit`;
  const send = async (apply: boolean) => {
    setProblem(null);
    setStage(apply ? "doing" : "asking");
    const members = differences(event, formatted, { payload, type, contentType, headers });
    const answer = await post(path, { ...members, ...(apply ? { apply: true } : {}), ...(reason.trim() ? { reason: reason.trim() } : {}) });
    if (!answer.ok) {
      setProblem(answer.problem);
      setStage("writing");
      return;
    }
    const text = answer.value.output.replace(/ \(--apply[^)]*\)/g, "").trim();
    setOutput(text);
    setStage(apply ? "done" : "shown");
    if (apply) {
      said.set(text);
      onDone();
    }
  };
  const submit = (submitted: Event) => {
    submitted.preventDefault();
    void send(stage === "shown");
  };
  const written = (set: (value: string) => void) => (input: { currentTarget: { value: string } }) => {
    set(input.currentTarget.value);
    if (stage === "shown") setStage("writing");
  };
  if (stage === "done") {
    return (
      <>
        <pre class="output done" role="status" tabIndex={0}>
          {output}
        </pre>
        <div class="dialog-actions">
          <button type="button" onClick={close}>
            Close
          </button>
        </div>
      </>
    );
  }
  return (
    <form onSubmit={submit}>
      <p>
        A copy with what you change takes its place in its key, with a new id, and is sent now. The original is kept as corrected; the header{" "}
        <code>outbox-edited-from</code> of the copy names it.
      </p>
      {event.error && (
        <p>
          <span class="quiet">Why it is parked: </span>
          {event.error}
        </p>
      )}
      <p class="field">
        <label htmlFor={ids + "-payload"}>
          Payload {formatted !== event.payload && <span class="quiet">– shown with line breaks; sent as it stands here if you change it</span>}
        </label>
        <textarea id={ids + "-payload"} rows={10} spellcheck={false} value={payload} onInput={written(setPayload)} />
      </p>
      <div class="pair">
        <p class="field">
          <label htmlFor={ids + "-type"}>Event type</label>
          <input id={ids + "-type"} value={type} onInput={written(setType)} />
        </p>
        <p class="field">
          <label htmlFor={ids + "-content"}>Content type</label>
          <input id={ids + "-content"} value={contentType} onInput={written(setContentType)} />
        </p>
      </div>
      <p class="field">
        <label htmlFor={ids + "-headers"}>
          Headers <span class="quiet">– one NAME=VALUE in a line</span>
        </label>
        <textarea id={ids + "-headers"} rows={3} spellcheck={false} value={headers} onInput={written(setHeaders)} />
      </p>
      <p class="field">
        <label htmlFor={ids + "-reason"}>
          Reason <span class="quiet">– kept with your name in the audit</span>
        </label>
        <input id={ids + "-reason"} value={reason} required autoComplete="off" onInput={(event) => setReason(event.currentTarget.value)} />
      </p>
      <div aria-live="polite">
        {problem && <ProblemBox problem={problem} />}
        {stage === "shown" && (
          <>
            <h3>What it would do</h3>
            <pre class="output preview" tabIndex={0}>
              {output}
            </pre>
          </>
        )}
      </div>
      <div class="dialog-actions">
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="submit" class="primary" disabled={stage === "asking" || stage === "doing"}>
          {stage === "shown" || stage === "doing" ? "Send the corrected copy" : "Preview"}
        </button>
      </div>
    </form>
  );
}
