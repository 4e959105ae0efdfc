#!/usr/bin/env python3
"""SQS for tests, on 127.0.0.1, with the options and files of http_server.py. It checks the signature of each request with a computation of
its own (AWS Signature Version 4), and what is sent against the limits of SQS; and it does what the queue's name says:

    NAME                      stores everything
    missing...                does not exist, under its name and at its URL; gone...: only at its URL
    error-STATUS-CODE         answers with that status and error code
    picky                     of an entry whose body contains "bad" says that the sender is at fault, "late" that it failed itself, "slow"
                              that the rate is too high; leaves one with "lost" out
    both                      says of each entry that it was stored and that it was not
    strict                    refuses the whole request if a body contains "bad"
    nonsense                  answers 200 with HTML
    truncated                 answers 200 with a body that breaks off
    hang, close               reads the request and never answers, or closes the connection
    first-then-close          answers the first request of a connection, reads the next one, stops listening and closes

Credentials are below /container, /rotating (the first ones have expired) and /latest, as ECS and EC2 have them.
"""

import hashlib
import hmac
import json
import re
import sys
import time
from calendar import timegm

sys.dont_write_bytecode = True  # Nothing may be written beside the sources.
import http_server  # noqa: E402

REGION = "eu-test-1"
KEYS = {"AKIDTEST": ("a/secret+key", None), "ASIATEST": ("another/secret", "the+session/token=="),
        "ASIAEXPIRED": ("expired", "old+token")}
MOST_BYTES = 262_144
JSON_TYPE = "application/x-amz-json-1.0"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def signature(secret, scope, when, method, path, query, headers, body):
    """headers: (name, value), those that are signed, in their order."""
    canonical = "\n".join([method, path, query, *(f"{name}:{' '.join(value.split())}" for name, value in headers), "",
                           ";".join(name for name, _ in headers), sha256(body)])
    to_sign = "\n".join(["AWS4-HMAC-SHA256", when, scope, sha256(canonical.encode())])
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return hmac.new(key, to_sign.encode(), "sha256").hexdigest()


def check_own_computation():
    """The example of AWS's documentation, "Create a signed AWS API request"."""
    headers = [("content-type", "application/x-www-form-urlencoded; charset=utf-8"), ("host", "iam.amazonaws.com"),
               ("x-amz-date", "20150830T123600Z")]
    found = signature("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "20150830/us-east-1/iam/aws4_request", "20150830T123600Z", "GET", "/",
                      "Action=ListUsers&Version=2010-05-08", headers, b"")
    assert found == "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7", found


class Refusal(Exception):
    def __init__(self, status, code, message=""):
        super().__init__(code)
        self.status, self.code, self.message = status, code, message


def size_of(entry):
    attributes = entry.get("MessageAttributes", {})
    return len(entry["MessageBody"].encode()) + sum(
        len(name.encode()) + len(one["DataType"].encode()) + len(one["StringValue"].encode()) for name, one in attributes.items())


def sendable(text):
    return text and all(c in "\t\n\r" or "\x20" <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000" for c in text)


def check_entry(entry, fifo):
    """As SQS documents what it refuses."""
    attributes = entry.get("MessageAttributes", {})
    wrong = [name for name in attributes
             if not re.fullmatch(r"(?![Aa][Ww][Ss]\.|[Aa]mazon\.)(?!.*\.\.)[\w-]([\w.-]{0,254}[\w-])?", name, re.ASCII)]
    if wrong or len(attributes) > 10 or not all(sendable(one["StringValue"]) for one in attributes.values()):
        raise Refusal(400, "InvalidParameterValue", f"attributes {wrong or len(attributes)}")
    if not sendable(entry["MessageBody"]):
        raise Refusal(400, "InvalidMessageContents", "the body")
    for name in ("MessageGroupId", "MessageDeduplicationId"):
        if fifo != (name in entry) or (fifo and not re.fullmatch(r"[!-~]{1,128}", entry[name])):
            raise Refusal(400, "InvalidParameterValue", name)
    if fifo and "DelaySeconds" in entry:
        raise Refusal(400, "InvalidParameterValue", "DelaySeconds")


class Sqs(http_server.Receiver):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.served += 1
        self.active = self.server.begin()
        try:
            self.check_signature(body)
            if mode := self.server.mode():
                raise Refusal(mode, "ServiceUnavailable" if mode >= 500 else "ThrottlingException")
            operation = self.headers.get("x-amz-target")
            request = json.loads(body)
            if operation == "AmazonSQS.GetQueueUrl":
                self.look_up(request, body)
            elif operation == "AmazonSQS.SendMessageBatch":
                self.send_batch(request, body)
            else:
                raise Refusal(400, "UnknownOperationException", operation)
        except Refusal as refusal:
            text = json.dumps({"__type": "com.amazonaws.sqs#" + refusal.code, "message": refusal.message})
            self.finish_with(refusal.status, body, text.encode(), {"content-type": JSON_TYPE})

    def check_signature(self, body):
        given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/([^,]+), SignedHeaders=([^,]+), Signature=(\w+)",
                             self.headers.get("authorization", ""))
        if not given:
            raise Refusal(403, "MissingAuthenticationTokenException")
        key, scope, names, found = given.groups()
        if key not in KEYS:
            raise Refusal(403, "UnrecognizedClientException", "The security token included in the request is invalid.")
        secret, token = KEYS[key]
        when = self.headers.get("x-amz-date", "")
        if abs(timegm(time.strptime(when, "%Y%m%dT%H%M%SZ")) - time.time()) > 300:
            raise Refusal(403, "RequestExpired")
        signed = names.split(";")
        needed = {"host", *(name.lower() for name in self.headers if name.lower().startswith("x-amz-"))}
        headers = [(name, self.headers.get(name, "")) for name in signed]
        right = signature(secret, scope, when, self.command, self.path, "", headers, body)
        if (scope != f"{when[:8]}/{REGION}/sqs/aws4_request" or not needed <= set(signed) or signed != sorted(signed)
                or not hmac.compare_digest(found, right)):
            said = f"The request signature we calculated does not match. It has {self.headers.get('x-amz-security-token')}"
            raise Refusal(403, "InvalidSignatureException", said)
        if self.headers.get("x-amz-security-token") != token:
            raise Refusal(403, "UnrecognizedClientException")
        if key == "ASIAEXPIRED":
            raise Refusal(403, "ExpiredTokenException", "The security token included in the request is expired")

    def look_up(self, request, body):
        name = request["QueueName"]
        if name.startswith("missing"):
            raise Refusal(400, "QueueDoesNotExist", "The specified queue does not exist.")
        account = request.get("QueueOwnerAWSAccountId", "123456789012")
        self.answer(body, {"QueueUrl": f"https://sqs.{REGION}.amazonaws.com/{account}/{name}"})

    def send_batch(self, request, body):
        name = request["QueueUrl"].rsplit("/", 1)[1]
        entries = request["Entries"]
        if not 1 <= len(entries) <= 10 or len({entry["Id"] for entry in entries}) != len(entries):
            raise Refusal(400, "TooManyEntriesInBatchRequest")
        if sum(map(size_of, entries)) > MOST_BYTES:
            raise Refusal(400, "BatchRequestTooLong")
        for entry in entries:
            check_entry(entry, name.endswith(".fifo"))
        action = getattr(self, "on_" + name.split(".")[0].replace("-", "_"), None)
        if name.startswith(("missing", "gone")):
            raise Refusal(400, "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
        if name.startswith("error-"):
            _, status, code = name.split("-")
            raise Refusal(int(status), code, "as it was told to")
        if action is None:
            self.answer(body, self.stored(entries))
        else:
            action(entries, body)

    @staticmethod
    def stored(entries):
        return {"Successful": [{"Id": entry["Id"], "MessageId": "m" + entry["Id"], "MD5OfMessageBody": ""} for entry in entries]}

    def answer(self, body, answer):
        self.finish_with(200, body, json.dumps(answer).encode(), {"content-type": JSON_TYPE})

    # ---- what a queue does

    def on_picky(self, entries, body):
        results = {"Successful": [], "Failed": []}
        faults = {"bad": ("InvalidParameterValue", True), "late": ("InternalError", False), "slow": ("RequestThrottled", True)}
        for entry in entries:
            fault = next((faults[word] for word in faults if word in entry["MessageBody"]), None)
            if fault:
                results["Failed"].append({"Id": entry["Id"], "Code": fault[0], "SenderFault": fault[1], "Message": "told so"})
            elif "lost" not in entry["MessageBody"]:
                results["Successful"] += self.stored([entry])["Successful"]
        self.answer(body, results)

    def on_both(self, entries, body):
        failed = [{"Id": entry["Id"], "Code": "InternalError", "SenderFault": False} for entry in entries]
        self.answer(body, {**self.stored(entries), "Failed": failed})

    def on_strict(self, entries, body):
        if any("bad" in entry["MessageBody"] for entry in entries):
            raise Refusal(400, "InvalidMessageContents", "one of them")
        self.answer(body, self.stored(entries))

    def on_nonsense(self, _, body):
        self.finish_with(200, body, b"<html>It works!</html>")

    def on_truncated(self, _, body):
        super().on_truncated(body)

    def on_hang(self, _, body):
        super().on_hang(body)

    def on_close(self, _, body):
        super().on_close(body)

    def on_first_then_close(self, entries, body):
        if self.served == 1:
            return self.answer(body, self.stored(entries))
        return super().on_first_then_close(body)

    # ---- credentials

    def do_GET(self):
        self.active = self.server.begin()
        path = self.path.rstrip("/")
        role = "/latest/meta-data/iam/security-credentials"
        if path == "/container" and self.headers.get("authorization") == "container token":
            self.credentials("ASIATEST")
        elif path == "/rotating":
            self.server.asked = getattr(self.server, "asked", 0) + 1
            self.credentials("ASIAEXPIRED" if self.server.asked == 1 else "ASIATEST")
        elif path.startswith("/latest") and self.headers.get("x-aws-ec2-metadata-token") != "metadata token":
            self.finish_with(401, b"")
        elif path == role:
            self.finish_with(200, b"", b"the-role\n")
        elif path == role + "/the-role":
            self.credentials("ASIATEST")
        else:
            self.finish_with(404, b"")

    def do_PUT(self):
        self.active = self.server.begin()
        fine = self.path == "/latest/api/token" and self.headers.get("x-aws-ec2-metadata-token-ttl-seconds")
        self.finish_with(200 if fine else 400, b"", b"metadata token" if fine else b"")

    def credentials(self, key):
        secret, token = KEYS[key]
        answer = {"AccessKeyId": key, "SecretAccessKey": secret, "Token": token, "Expiration": "2099-01-01T00:00:00Z"}
        self.finish_with(200, b"", json.dumps(answer).encode())


if __name__ == "__main__":
    check_own_computation()
    http_server.main(Sqs)
