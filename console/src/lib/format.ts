// Numbers, lengths of time and sizes in words. Pure.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 2 });
const one = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

export const number = (value: number): string => whole.format(value);

/** "1 event", "12 events". */
export function count(noun: string, value: number, plural = noun + "s"): string {
  return `${whole.format(value)} ${value === 1 ? noun : plural}`;
}

/** A rate such as "0.04/s", "4.2/s" or "1,204/s". */
export function rate(perSecond: number): string {
  if (perSecond > 0 && perSecond < 0.001) return "<0.001/s";
  return (perSecond < 10 ? fine : whole).format(perSecond) + "/s";
}

/** A length such as "2 h 5 min", "45 s" or "12 ms"; at most two units. */
export function duration(seconds: number): string {
  if (seconds < 0) seconds = 0;
  if (seconds < 0.001) return seconds === 0 ? "0 s" : "<1 ms";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${one.format(seconds)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) {
    const rest = Math.floor(seconds % 60);
    return minutes < 10 && rest ? `${minutes} min ${rest} s` : `${minutes} min`;
  }
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  const days = Math.floor(hours / 24);
  return hours % 24 && days < 10 ? `${days} d ${hours % 24} h` : `${days} d`;
}

/** A size such as "1.2 GiB". */
export function bytes(size: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (size >= 1024 && at < units.length - 1) {
    size /= 1024;
    ++at;
  }
  return `${(at === 0 ? whole : one).format(size)} ${units[at]}`;
}

export type Zone = "local" | "utc";

const formats = new Map<string, Intl.DateTimeFormat>();

function format(zone: Zone, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const name = zone + JSON.stringify(options);
  let found = formats.get(name);
  if (!found) {
    found = new Intl.DateTimeFormat("en-GB", { ...options, hourCycle: "h23", ...(zone === "utc" ? { timeZone: "UTC" } : {}) });
    formats.set(name, found);
  }
  return found;
}

/** "28 Nov 2026, 05:38:56", in the zone that the person has chosen. */
export function moment(at: Date, zone: Zone): string {
  return format(zone, { dateStyle: "medium", timeStyle: "medium" }).format(at);
}

/** "05:38:56" if it is today, else with the date. */
export function shortMoment(at: Date, zone: Zone, now: Date): string {
  const day = format(zone, { dateStyle: "short" });
  if (day.format(at) === day.format(now)) return format(zone, { timeStyle: "medium" }).format(at);
  return format(zone, { day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(at);
}

/** "3 min ago" or "in 2 h". */
export function ago(at: Date, now: Date): string {
  const seconds = (now.getTime() - at.getTime()) / 1000;
  if (Math.abs(seconds) < 1) return "now";
  return seconds > 0 ? `${duration(Math.floor(seconds))} ago` : `in ${duration(Math.floor(-seconds))}`;
}

/** A payload as it is read best: JSON with line breaks, everything else as it is. */
export function readable(payload: string, contentType: string | null): string {
  if (contentType !== null && !/json/i.test(contentType)) return payload;
  // Numbers beyond 2^53 would be changed by parsing them, and a page must not show another payload.
  if (/[0-9]{16,}|[0-9.]{17,}|[eE][+-]?[0-9]{3}/.test(payload)) return payload;
  try {
    return JSON.stringify(JSON.parse(payload), null, 2);
  } catch {
    return payload;
  }
}

/** The key of an event as people write it; null if it has none. */
export function keyOf(event: { aggregate_type: string; aggregate_id: string }): string | null {
  return event.aggregate_id === "" ? null : `${event.aggregate_type}/${event.aggregate_id}`;
}
