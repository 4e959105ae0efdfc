// A change: first what it would do, in the words of the command line, then a button that does it.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { post, type Problem } from "../api/client.js";
import { Observable, useObservable } from "../lib/observable.js";
import { Dialog } from "./dialog.js";
import { Loading, ProblemBox } from "./basics.js";

export interface Change {
  title: string;
  /** What it means for events. */
  meaning: ComponentChildren;
  path: string;
  members: Record<string, unknown>;
  /** Whether the API can say what it would do; otherwise it acts at once, and `meaning` says it. */
  preview: boolean;
  reason?: "required" | "optional";
  /** The words of the button that does it. */
  verb: string;
  danger?: boolean;
  onDone?: () => void;
}

/** The change that is being prepared; one at a time. */
export const current = new Observable<Change | null>(null);

/** What was done last, for everybody who does not see the dialog close. */
export const said = new Observable<string>("");

export function begin(change: Change): void {
  current.set(change);
}

type Stage =
  | { kind: "asking" }
  | { kind: "shown"; preview: string }
  | { kind: "doing"; preview: string }
  | { kind: "done"; output: string }
  | { kind: "refused"; problem: Problem };

export function ChangeDialog() {
  const change = useObservable(current);
  return change ? <Changing key={change.title + JSON.stringify(change.members)} change={change} /> : null;
}

/** The hints for a command line, such as "(--apply does it)", say nothing to whoever has a button. */
function forPage(output: string): string {
  return output.replace(/ \(--apply[^)]*\)/g, "").trim();
}

function Changing({ change }: { change: Change }) {
  const [stage, setStage] = useState<Stage>(change.preview ? { kind: "asking" } : { kind: "shown", preview: "" });
  const [reason, setReason] = useState("");
  const field = useId();
  const close = () => current.set(null);
  useEffect(() => {
    if (!change.preview) return;
    let gone = false;
    void post(change.path, change.members).then((answer) => {
      if (gone) return;
      setStage(answer.ok ? { kind: "shown", preview: forPage(answer.value.output) } : { kind: "refused", problem: answer.problem });
    });
    return () => {
      gone = true;
    };
  }, []);
  const act = async (event: Event) => {
    event.preventDefault();
    if (stage.kind !== "shown") return;
    setStage({ kind: "doing", preview: stage.preview });
    const members = {
      ...change.members,
      ...(change.preview ? { apply: true } : {}),
      ...(change.reason && reason.trim() !== "" ? { reason: reason.trim() } : {}),
    };
    const answer = await post(change.path, members);
    if (answer.ok) {
      const output = forPage(answer.value.output) || "Done.";
      setStage({ kind: "done", output });
      said.set(output);
      change.onDone?.();
    } else {
      setStage({ kind: "refused", problem: answer.problem });
    }
  };
  const nothing = stage.kind === "shown" && /(^|\n)0 (events|tasks); nothing was changed/.test(stage.preview);
  return (
    <Dialog title={change.title} onClose={close}>
      <form onSubmit={act}>
        <div class="meaning">{change.meaning}</div>
        <div aria-live="polite">
          {stage.kind === "asking" && <Loading what="what it would do" />}
          {(stage.kind === "shown" || stage.kind === "doing") && stage.preview !== "" && (
            <>
              <h3>What it would do</h3>
              <pre class="output preview" tabIndex={0}>
                {stage.preview}
              </pre>
            </>
          )}
          {stage.kind === "done" && (
            <>
              <h3>Done</h3>
              <pre class="output done" tabIndex={0}>
                {stage.output}
              </pre>
            </>
          )}
          {stage.kind === "refused" && <ProblemBox problem={stage.problem} />}
        </div>
        {change.reason && (stage.kind === "shown" || stage.kind === "doing" || stage.kind === "asking") && (
          <p class="field">
            <label htmlFor={field}>
              Reason{change.reason === "required" ? "" : " (optional)"}
              <span class="quiet"> – kept with your name in the audit</span>
            </label>
            <input
              id={field}
              value={reason}
              required={change.reason === "required"}
              autoComplete="off"
              onInput={(event) => setReason(event.currentTarget.value)}
            />
          </p>
        )}
        <div class="dialog-actions">
          <button type="button" onClick={close}>
            {stage.kind === "done" ? "Close" : "Cancel"}
          </button>
          {(stage.kind === "shown" || stage.kind === "doing" || stage.kind === "asking") && (
            <button type="submit" class={change.danger ? "danger primary" : "primary"} disabled={stage.kind !== "shown" || nothing}>
              {change.verb}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
