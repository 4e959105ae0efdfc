import { Observable } from "./observable.js";
import { href, parseRoute, type Route } from "./route.js";

/** Where the page is. */
export const route = new Observable<Route>(parseRoute(location.hash));

window.addEventListener("hashchange", () => route.set(parseRoute(location.hash)));

export function go(path: readonly (string | number)[], query: Record<string, string | number | null | undefined> = {}): void {
  location.hash = href(path, query);
}

/** Changes filters of the view that is shown, without a step in the browser's history. */
export function refine(query: Record<string, string | number | null | undefined>): void {
  const { path, query: before } = route.value;
  history.replaceState(null, "", href(path, { ...before, ...query }));
  route.set(parseRoute(location.hash));
}
