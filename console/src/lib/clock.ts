import { Observable } from "./observable.js";

/** The time, changed once a second, for "3 min ago". */
export const clock = new Observable<number>(Date.now());

setInterval(() => {
  if (!document.hidden) clock.set(Date.now());
}, 1000);
