#!/usr/bin/env python3
"""A mail server for tests, on 127.0.0.1 (aiosmtpd). It writes each mail to a file before it answers, one JSON object per line.

usage: smtp_server.py --folder DIR [--port PORT] [--certificate PEM --key PEM [--implicit]] [--login] [--no-utf8] [--most BYTES]

DIR/port gets the port, DIR/mails the mails, DIR/goodbyes a line for each QUIT. With a certificate it offers STARTTLS, with --implicit TLS from the first byte. --login:
only for user "me" with the password "right". Mails of more than --most bytes, 2,000,000, are refused.

What happens otherwise than usual is in DIR/plan, a JSON object whose names are stages (greeting, ehlo, starttls, auth, mail, rcpt,
data, end, quit), or, for one mail, in the first recipient's address: STAGE-WHAT@... for the stages rcpt, data and end. It is

    451, "550 5.1.1 nobody"    that answer
    close                      closes the connection instead of an answer
    hang                       never answers
    slow                       answers after 0.3 s (end only)
    leave                      takes the mail, says 421 at once and closes the connection, as if it had been idle (end only)

"end" is the answer to a whole mail. The mail is kept, but with an answer of 400 or more.
"""

import argparse
import asyncio
import base64
import json
import os
import re
import ssl
from pathlib import Path

from aiosmtpd.smtp import SMTP, AuthResult

PLANNED = re.compile(r"<(rcpt|data|end)-([a-z0-9]+)@")
NAME, PASSWORD = b"me", b"right"


def check_login(_server, _session, _envelope, _mechanism, data):
    right = (data.login, data.password) == (NAME, PASSWORD)
    return AuthResult(success=right, handled=right, auth_data=data.login)


class Keeper:
    """Writes down what arrives."""

    def __init__(self, folder, login):
        self.login = login
        self.file = self.open(folder / "mails")
        self.goodbyes = self.open(folder / "goodbyes")

    @staticmethod
    def open(file):
        return os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    async def handle_EHLO(self, _server, session, _envelope, hostname, responses):
        session.host_name = hostname
        return [line for line in responses if self.login or not line.startswith("250-AUTH")]

    async def handle_DATA(self, server, session, envelope):
        answer = server.planned("end") or "250 kept"
        if answer == "slow":
            await asyncio.sleep(0.3)
            answer = "250 kept"
        if not answer[0] in "45":
            self.keep(session, envelope)
        if answer in ("close", "hang"):
            await server.go_silent(answer)
        if answer == "leave":
            asyncio.get_running_loop().call_soon(server.transport.close)
            return "250 kept\r\n421 4.4.2 idle for too long"
        return answer

    def count_goodbye(self):
        os.write(self.goodbyes, b"\n")

    def keep(self, session, envelope):
        mail = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "utf8": envelope.smtp_utf8,
            "tls": session.ssl is not None,
            "user": session.auth_data.decode() if session.authenticated else "",
            "hello": session.host_name,
            "text": base64.b64encode(envelope.content).decode(),
        }
        os.write(self.file, json.dumps(mail).encode() + b"\n")


class Server(SMTP):
    def __init__(self, folder, *arguments, **options):
        self.folder = folder
        self.greeted = False
        self.of_mail = {}
        super().__init__(*arguments, **options)

    def planned(self, stage):
        """What to do otherwise at this stage, if anything."""
        what = self.of_mail.get(stage)
        if what is None:
            try:
                what = json.loads((self.folder / "plan").read_text()).get(stage)
            except FileNotFoundError:
                return None
        return f"{what} 4.0.0 as planned" if str(what).isdigit() else what

    def data_received(self, data):
        # smtp_QUIT is too late: it may not be called if the client closes the connection at once.
        if data == b"QUIT\r\n":
            self.event_handler.count_goodbye()
        super().data_received(data)

    async def go_silent(self, how):
        if how == "close":
            self.transport.abort()
        await asyncio.Event().wait()  # The loss of the connection cancels this.

    async def answers_otherwise(self, stage):
        what = self.planned(stage)
        if what in ("close", "hang"):
            await self.go_silent(what)
        if what is None:
            return False
        await self.push(what)
        return True

    async def push(self, status):
        if not self.greeted:
            self.greeted = True
            what = self.planned("greeting")
            if what in ("close", "hang"):
                await self.go_silent(what)
            status = what or status
        await super().push(status)

    async def smtp_EHLO(self, hostname):
        if not await self.answers_otherwise("ehlo"):
            await super().smtp_EHLO(hostname)

    async def smtp_STARTTLS(self, arg):
        if not await self.answers_otherwise("starttls"):
            await super().smtp_STARTTLS(arg)

    async def smtp_AUTH(self, arg):
        if not await self.answers_otherwise("auth"):
            await super().smtp_AUTH(arg)

    async def smtp_MAIL(self, arg):
        self.of_mail = {}
        if not await self.answers_otherwise("mail"):
            await super().smtp_MAIL(arg)

    async def smtp_RCPT(self, arg):
        planned = PLANNED.search(arg or "")
        if planned:
            self.of_mail[planned[1]] = planned[2]
        if not await self.answers_otherwise("rcpt"):
            await super().smtp_RCPT(arg)

    async def smtp_QUIT(self, arg):
        if not await self.answers_otherwise("quit"):
            await super().smtp_QUIT(arg)

    async def smtp_DATA(self, arg):
        if not await self.answers_otherwise("data"):
            await super().smtp_DATA(arg)


def tls_context(options):
    if not options.certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.certificate, options.key)
    return context


async def serve(options):
    context = tls_context(options)
    keeper = Keeper(options.folder, options.login)

    def connection():
        return Server(
            options.folder,
            keeper,
            data_size_limit=options.most,
            enable_SMTPUTF8=not options.no_utf8,
            hostname="mail.test",
            tls_context=None if options.implicit else context,
            require_starttls=context is not None and not options.implicit,
            authenticator=check_login if options.login else None,
            auth_required=options.login,
            auth_require_tls=context is not None and not options.implicit,
        )

    server = await asyncio.get_running_loop().create_server(
        connection, "127.0.0.1", options.port, ssl=context if options.implicit else None, backlog=1024)
    ready = options.folder / "port.new"
    ready.write_text(str(server.sockets[0].getsockname()[1]))
    ready.rename(options.folder / "port")
    await server.serve_forever()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("--most", type=int, default=2_000_000)
    parser.add_argument("--implicit", action="store_true")
    parser.add_argument("--login", action="store_true")
    parser.add_argument("--no-utf8", action="store_true")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
