"""A receiver of hooks: it turns an arm off by a file `EXPERIMENT.ARM.off`, which a service reads.

STREAMMETRICS_SECRET=... python hook_receiver.py FOLDER [PORT]
"""

import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

SECRET = os.environb[b"STREAMMETRICS_SECRET"]
FOLDER = Path(sys.argv[1])
HARM = ("guardrail_broken", "worse")


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(max(0, min(length, 1 << 20)))
        sent_s = self.headers.get("Streammetrics-Timestamp", "0")
        digest = hmac.new(SECRET, sent_s.encode() + b"." + body, hashlib.sha256).hexdigest()
        signature = self.headers.get("Streammetrics-Signature", "").encode("latin-1")
        if not hmac.compare_digest(f"sha256={digest}".encode(), signature):
            return self.answer(401)  # somebody else sent it, or changed it
        if abs(time.time() - int(sent_s)) > 300:
            return self.answer(401)  # somebody has recorded it, and sends it again
        event = json.loads(body)
        file = FOLDER / f"{event['key']}.json"
        if not file.exists():
            if event["event"] in HARM:
                arm = f"{quote(event['experiment'], '')}.{quote(event['arm'], '')}.off"
                (FOLDER / arm).write_text(event["sentence"], encoding="utf-8")
            file.write_bytes(body)  # last: after a crash in between, the event comes again
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()


if __name__ == "__main__":
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 8080
    with ThreadingHTTPServer(("127.0.0.1", port), Receiver) as server:
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        server.serve_forever()
