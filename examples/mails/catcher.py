#!/usr/bin/env python3
"""catcher.py PORT: a mail server for this machine that delivers nothing. Each mail becomes a file in mails/."""

import sys
import time
from pathlib import Path

from aiosmtpd.controller import Controller

FOLDER = Path("mails")


class Catcher:
    def __init__(self):
        self.count = 0

    async def handle_DATA(self, server, session, envelope):
        self.count += 1
        (FOLDER / f"{self.count:04}.eml").write_bytes(envelope.content)
        return "250 kept"


FOLDER.mkdir(exist_ok=True)
Controller(Catcher(), hostname="127.0.0.1", port=int(sys.argv[1])).start()
print("ready", flush=True)
while True:
    time.sleep(3600)
