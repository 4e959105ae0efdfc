// What the person has chosen for this browser: colours, and the zone of times.
import { Observable } from "./observable.js";
import type { Zone } from "./format.js";

export type Theme = "system" | "light" | "dark";

// A browser may forbid storage; then a choice lasts as long as the page.
function remembered(name: string): string | null {
  try {
    return localStorage.getItem("outbox." + name);
  } catch {
    return null;
  }
}

function remember(name: string, value: string): void {
  try {
    localStorage.setItem("outbox." + name, value);
  } catch {
    // Nothing to do: see above.
  }
}

const storedTheme = remembered("theme");

export const theme = new Observable<Theme>(storedTheme === "dark" || storedTheme === "light" ? storedTheme : "system");
export const zone = new Observable<Zone>(remembered("zone") === "utc" ? "utc" : "local");

function apply(value: Theme): void {
  if (value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = value;
}

apply(theme.value);
theme.subscribe((value) => {
  apply(value);
  remember("theme", value);
});
zone.subscribe((value) => remember("zone", value));
