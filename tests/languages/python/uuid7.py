"""Ids of version 7 (RFC 9562): milliseconds before random bits."""

import secrets
import time
import uuid


# [uuid7]
def uuid7():   # Python 3.14 has uuid.uuid7()
    number = time.time_ns() // 1_000_000 << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    return uuid.UUID(int=number)
# [/uuid7]
