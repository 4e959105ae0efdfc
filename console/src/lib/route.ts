// Addresses of views: "#/events?key=order%2F42". Every filter is in the address, so that a view can
// be sent to somebody else. Pure.

export interface Route {
  /** Decoded segments of the path; none on the overview. */
  path: string[];
  query: Record<string, string>;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#/, "");
  const mark = text.indexOf("?");
  const path = mark < 0 ? text : text.slice(0, mark);
  const query: Record<string, string> = {};
  if (mark >= 0) {
    for (const [name, value] of new URLSearchParams(text.slice(mark + 1))) if (value !== "") query[name] = value;
  }
  return { path: path.split("/").filter((part) => part !== "").map(decoded), query };
}

/** The address of a view; members of `query` that are empty are left out. */
export function href(path: readonly (string | number)[], query: Record<string, string | number | null | undefined> = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return "#/" + path.map((part) => encodeURIComponent(String(part))).join("/") + (text ? `?${text}` : "");
}
