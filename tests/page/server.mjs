// Serves console/dist and passes /api on to a console, for as long as the program does not serve the
// page itself. The headers are those of the program: what breaks its policy breaks a test.
import { createReadStream, existsSync, statSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";

const DIST = fileURLToPath(new URL("../../console/dist", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8" };
const HEADERS = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Cache-Control": "no-store",
};

function serveFile(name, response) {
  const file = path.join(DIST, name);
  if (!file.startsWith(DIST) || !existsSync(file) || !statSync(file).isFile()) {
    response.writeHead(404, HEADERS).end();
    return;
  }
  response.writeHead(200, { ...HEADERS, "Content-Type": TYPES[path.extname(file)] ?? "application/octet-stream" });
  createReadStream(file).pipe(response);
}

function pass(console_, request, response) {
  const target = new URL(request.url, console_);
  const headers = { ...request.headers, host: target.host };
  // The console compares the origin with the host that was asked.
  if (headers.origin) headers.origin = target.origin;
  const upstream = http.request(target, { method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  upstream.on("error", () => response.destroy());
  request.pipe(upstream);
}

/**
 * Whether the console at this address serves the page itself.
 * @param {string} address
 */
export async function servesPage(address) {
  const answer = await fetch(address + "/");
  return answer.ok && /<title>outbox console<\/title>/.test(await answer.text());
}

/**
 * The address of the page: that of the console, or of a server before it. `answers` are those to give
 * for paths of the API instead of asking the console.
 * @param {string} address of a running console
 * @param {(request: http.IncomingMessage, response: http.ServerResponse) => boolean} [answers]
 */
export async function openPage(address, answers) {
  if (!answers && (await servesPage(address))) return { url: address, close: async () => {} };
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url, "http://page");
    if (answers?.(request, response)) return;
    if (pathname.startsWith("/api/")) pass(address, request, response);
    else serveFile(pathname === "/" ? "index.html" : pathname.slice(1), response);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () =>
      new Promise((closed) => {
        server.closeAllConnections();
        server.close(closed);
      }),
  };
}

/** The headers with which the page is served. */
export { HEADERS };
