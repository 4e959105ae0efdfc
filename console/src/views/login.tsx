import { useId, useState } from "preact/hooks";
import type { Problem } from "../api/client.js";
import { login } from "../api/session.js";
import { ProblemBox } from "../parts/basics.js";

export function Login() {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const submit = async (event: Event) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const token = String(new FormData(form).get("token") ?? "").trim();
    setBusy(true);
    const refused = await login(token);
    setBusy(false);
    setProblem(refused);
    form.reset();
  };
  return (
    <main class="first" id="main" tabIndex={-1}>
      <h1>outbox console</h1>
      <p>This console asks who you are. Enter the token that you were given.</p>
      <form onSubmit={submit}>
        <p class="field">
          <label htmlFor={id}>Token</label>
          <input id={id} name="token" type="password" required autoComplete="off" spellcheck={false} autoFocus />
        </p>
        {problem && (
          <ProblemBox
            problem={problem.status === 401 ? { ...problem, title: "this token is not known, or has expired", hint: "copy it again, or ask whoever runs the console for another one" } : problem}
          />
        )}
        <p>
          <button type="submit" class="primary" disabled={busy}>
            Log in
          </button>
        </p>
      </form>
      <p class="quiet">The page does not keep it: it is exchanged for a cookie that ends with your session.</p>
    </main>
  );
}
