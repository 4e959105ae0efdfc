#!/usr/bin/env python3
"""A receiver of webhooks for tests, on 127.0.0.1. It writes each request to a file before it answers it, one JSON object per line.

usage: http_server.py --folder DIR [--port PORT] [--certificate PEM --key PEM [--clients PEM]]

DIR/port gets the port, DIR/requests the requests. While DIR/mode exists, its first word is the status of every answer. With
--clients it wants a certificate that this authority has signed. It is a proxy, too: for CONNECT, which it records.
What happens to a request is in its path:

    /...                200, or 413 for more than 2,000,000 bytes
    /status/NNN         that status; ?retry_after=V and ?body=TEXT go into the answer
    /hang               reads the request and never answers
    /hang-after-head    200, and then no body
    /close              reads the request and closes the connection
    /first-then-close   answers the first request of a connection, reads the next one, stops listening and closes
    /truncated          200 with a body that breaks off
    /huge               200 with a body of 10 MB
    /redirect           307 to /elsewhere
    /slow               200 after 0.3 s
    /picky              400 if the body contains "bad"
    /small              413 if the body has more than 300 bytes
    /login              401 without the right header Authorization ("Bearer right", or Basic for me:right)
    /echo               400 with the request's header fields as the body
"""

import argparse
import base64
import json
import os
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

MOST_BYTES = 2_000_000
LOGINS = {"Bearer right", "Basic " + base64.b64encode(b"me:right").decode()}


def as_utf8(value):
    """Header values are bytes, which http.server decodes as Latin-1."""
    return value.encode("latin-1").decode("utf-8", "replace")


def pump(source, target):
    """Copies until one of them closes, which the other one then learns."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = None

    def setup(self):
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        self.served = 0
        self.active = 0
        super().setup()

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        step = parts.path.split("/")[1]
        self.served += 1
        self.active = self.server.begin()
        action = getattr(self, "on_" + step.replace("-", "_"), None)
        if action is None:
            status = 413 if len(body) > MOST_BYTES else 200
            self.finish_with(self.server.mode() or status, body)
        else:
            action(body, parts.path, query)

    do_PUT = do_POST

    def do_CONNECT(self):
        self.active = self.server.begin()
        status = self.server.mode() or 200
        self.finish_with(status, b"")
        if status != 200:
            return
        host, port = self.path.rsplit(":", 1)
        self.close_connection = True
        with socket.create_connection((host, int(port))) as target:
            back = threading.Thread(target=pump, args=(target, self.connection), daemon=True)
            back.start()
            pump(self.connection, target)
            back.join()

    # ---- what a path does

    def on_status(self, body, path, query):
        retry_after = query.get("retry_after", [None])[0]
        text = query.get("body", [""])[0].encode()
        self.finish_with(int(path.split("/")[2]), body, text, {"retry-after": retry_after} if retry_after else {})

    def on_hang(self, body, *_):
        self.record(0, body)
        self.rfile.read(1)  # This returns when the client hangs up.
        self.close_connection = True

    def on_hang_after_head(self, body, *_):
        self.record(200, body)
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
        self.rfile.read(1)
        self.close_connection = True

    def on_close(self, body, *_):
        self.record(0, body)
        self.close_connection = True

    def on_first_then_close(self, body, *_):
        if self.served == 1:
            return self.finish_with(200, body)
        self.record(0, body)
        self.server.socket.close()
        self.close_connection = True
        return None

    def on_truncated(self, body, *_):
        self.record(200, body)
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nthis breaks")
        self.close_connection = True

    def on_huge(self, body, *_):
        self.finish_with(200, body, b"x" * 10_000_000)

    def on_redirect(self, body, *_):
        self.finish_with(307, body, headers={"location": "/elsewhere"})

    def on_slow(self, body, *_):
        time.sleep(0.3)
        self.finish_with(200, body)

    def on_picky(self, body, *_):
        self.finish_with(400 if b"bad" in body else 200, body, b'{"error":"one of them is bad"}')

    def on_small(self, body, *_):
        self.finish_with(413 if len(body) > 300 else 200, body)

    def on_login(self, body, *_):
        right = self.headers.get("authorization") in LOGINS
        self.finish_with(200 if right else 401, body, self.headers.get("authorization", "").encode())

    def on_echo(self, body, *_):
        self.finish_with(400, body, str(self.headers).encode("latin-1"))

    # ---- answers

    def record(self, status, body):
        self.server.record({
            "status": status,
            "method": self.command,
            "path": self.path,
            "active": self.active,
            "headers": {name.lower(): as_utf8(value) for name, value in self.headers.items()},
            "body": base64.b64encode(body).decode(),
        })

    def finish_with(self, status, body, text=b"", headers=None):
        self.record(status, body)
        lines = [f"HTTP/1.1 {status} x", f"content-length: {len(text)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.wfile.write("\r\n".join(lines).encode() + b"\r\n\r\n" + text)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 1024

    def __init__(self, folder, port, context, receiver):
        self.folder = folder
        self.context = context
        self.lock = threading.Lock()
        self.active = 0
        self.requests = os.open(folder / "requests", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        super().__init__(("127.0.0.1", port), receiver)

    def get_request(self):
        client, address = super().get_request()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.context is not None:
            client = self.context.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
        return client, address

    def handle_error(self, request, client_address):
        pass  # Tests break connections on purpose.

    def mode(self):
        try:
            return int((self.folder / "mode").read_text().split()[0])
        except (FileNotFoundError, IndexError):
            return None

    def begin(self):
        """Returns how many requests are being worked on, this one included: until they are recorded."""
        with self.lock:
            self.active += 1
            return self.active

    def record(self, request):
        line = json.dumps(request).encode() + b"\n"
        with self.lock:
            self.active -= 1
            os.write(self.requests, line)


def main(receiver=Receiver):
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--clients")
    options = parser.parse_args()
    context = None
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.key)
        if options.clients:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(options.clients)
    server = Server(options.folder, options.port, context, receiver)
    ready = options.folder / "port.new"
    ready.write_text(str(server.server_port))
    ready.rename(options.folder / "port")
    try:
        server.serve_forever(poll_interval=0.1)
    except (OSError, ValueError):
        threading.Event().wait()  # After /first-then-close the other connections go on.


if __name__ == "__main__":
    main()
