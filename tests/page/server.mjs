// A console of which a test gives some of the answers: those that no store has, such as 200
// subscriptions in trouble.
import http from "node:http";

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
 * The address of the page: that of the console, or of a server before it. `answers` are those to give
 * instead of asking the console.
 * @param {string} address of a running console
 * @param {(request: http.IncomingMessage, response: http.ServerResponse) => boolean} [answers]
 */
export async function openPage(address, answers) {
  if (!answers) return { url: address, close: async () => {} };
  const server = http.createServer((request, response) => {
    if (!answers(request, response)) pass(address, request, response);
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
