#!/usr/bin/env python3
"""Verifies recorded requests with the package standardwebhooks, as a receiver would.

usage: verify_signatures.py RECORD SECRET...      every request must verify with every secret
"""

import base64
import json
import sys

from standardwebhooks.webhooks import Webhook

record, *secrets = sys.argv[1:]
verified = 0
with open(record, encoding="utf-8") as lines:
    for line in lines:
        request = json.loads(line)
        body = base64.b64decode(request["body"])
        for secret in secrets:
            Webhook(secret).verify(body, request["headers"])
            verified += 1
print(verified)
sys.exit(0 if verified else 1)
