import { useState } from "preact/hooks";
import type { Finding } from "../lib/findings.js";
import { cancelTasks, resumeQueue, resumeSubscription } from "./changes.js";
import { ChangeButton, Command, SeverityMark, Time, sentence } from "./basics.js";

/** Notes beyond these are one click away: at three in the morning the errors count. */
const NOTES_SHOWN = 2;
/** One outage can have many subscriptions; the worst of them are enough for the first screen. */
const SHOWN = 12;

export function FindingList({ findings, onDone }: { findings: readonly Finding[]; onDone: () => void }) {
  const [all, setAll] = useState(false);
  const notes = findings.filter((one) => one.severity === "note");
  const few = findings.filter((one) => one.severity !== "note" || notes.indexOf(one) < NOTES_SHOWN).slice(0, SHOWN);
  const left = findings.length - few.length;
  return (
    <>
      <ul class="findings">
        {(all ? findings : few).map((one) => (
          <FindingItem key={one.key + one.what} finding={one} onDone={onDone} />
        ))}
      </ul>
      {left > 0 && (
        <p>
          <button type="button" class="plain" onClick={() => setAll(!all)} aria-expanded={all}>
            {all ? "Show fewer" : `Show ${left} more`}
          </button>
        </p>
      )}
    </>
  );
}

function FindingItem({ finding, onDone }: { finding: Finding; onDone: () => void }) {
  const { remedy } = finding;
  return (
    <li class={`finding ${finding.severity}`}>
      <div class="finding-what">
        <SeverityMark severity={finding.severity} />
        {finding.subject && <span class="subject">{finding.subject}:</span>}
        {/* After a subject it goes on as one sentence. */}
        <strong>{finding.subject ? sentence(finding.what).replace(/^./, finding.what[0] ?? "") : sentence(finding.what)}</strong>
      </div>
      {finding.meaning && <p>{finding.meaning}</p>}
      {finding.when && (
        <p>
          {finding.when.text} <Time at={finding.when.at} relative />
        </p>
      )}
      {finding.advice && (
        <p>
          <span class="quiet">What to do: </span>
          {sentence(finding.advice)}
        </p>
      )}
      <div class="remedy">
        {remedy?.kind === "resume-subscription" && (
          <ChangeButton onClick={() => resumeSubscription(remedy.name, onDone)} aria-label={`Resume ${remedy.name}`}>
            Resume
          </ChangeButton>
        )}
        {remedy?.kind === "resume-queue" && (
          <ChangeButton onClick={() => resumeQueue(remedy.name, null, onDone)} aria-label={`Resume queue ${remedy.name}`}>
            Resume
          </ChangeButton>
        )}
        {remedy?.kind === "cancel-task" && (
          <ChangeButton danger onClick={() => cancelTasks("this task", { ids: [remedy.name] }, onDone)}>
            Cancel it
          </ChangeButton>
        )}
        {finding.links.map((link) => (
          <a key={link.to} class="button small" href={link.to}>
            {link.text}
          </a>
        ))}
        {finding.command && <Command text={finding.command} />}
      </div>
    </li>
  );
}
