#!/usr/bin/env python3
"""Reads the mails that smtp_server.py kept as a reader of mails does: with Python's email package. Prints one JSON object per mail.

usage: read_mails.py FILE [--brief]      --brief: only ids, keys and bodies, which is faster
"""

import base64
import email
import email.header
import email.policy
import email.utils
import json
import sys
from pathlib import Path


def decoded(value):
    """A header value without its folds and encoded words."""
    return str(email.header.make_header(email.header.decode_header(value.replace("\r\n", "")))) if value else value


def body_of(message):
    return base64.b64encode(message.get_payload(decode=True)).decode()


def brief(mail, text):
    message = email.message_from_bytes(text)
    headers = {name.lower(): decoded(str(value)) for name, value in message.items() if name.lower().startswith("x-")}
    return {
        **mail,
        "id": message["message-id"].strip("<>").split("@")[0],
        "headers": headers,
        "type": message.get_content_type(),
        "body": body_of(message),
    }


def defects_of(message, text):
    found = [str(defect) for defect in message.defects]
    for name, value in message.items():
        found += [f"{name}: {defect}" for defect in value.defects]
    found += [f"a line of {len(line)} bytes" for line in text.split(b"\r\n") if len(line) > 78]
    return found


def full(mail, text):
    if mail["utf8"]:
        message = email.message_from_string(text.decode(), policy=email.policy.default)
    else:
        text.decode("ascii")  # Such a mail must be ASCII.
        message = email.message_from_bytes(text, policy=email.policy.default)
    names = [name.lower() for name in message.keys()]
    return {
        **mail,
        "id": message["message-id"].strip("<>").split("@")[0],
        "headers": {name: str(message[name]) for name in names},
        "twice": sorted({name for name in names if names.count(name) > 1}),
        "time": email.utils.parsedate_to_datetime(message["date"]).timestamp(),
        "people": [[one.display_name, one.addr_spec]
                   for name in ("from", "to", "cc", "reply-to") if name in message
                   for one in message[name].addresses],
        "type": message.get_content_type(),
        "charset": message.get_content_charset() or "",
        "body": body_of(message),
        "defects": defects_of(message, text),
    }


def main():
    read = brief if "--brief" in sys.argv[2:] else full
    for line in Path(sys.argv[1]).read_text().splitlines():
        mail = json.loads(line)
        print(json.dumps(read(mail, base64.b64decode(mail["text"]))))


if __name__ == "__main__":
    main()
