#!/usr/bin/env python3
"""Proves to svc which user a proxy has signed in.

    signer.py SECRET_FILE SOCKET

SECRET_FILE holds the text of auth.reverse_proxy.shared_secret. Whoever may connect to SOCKET can
sign for any user: keep its directory to the proxy (systemd: RuntimeDirectory=svc-signer,
RuntimeDirectoryMode=0750, and the group of nginx). An answer is 204 with X-Proxy-Auth, or 401.
"""

import hashlib
import hmac
import os
import sys
import time
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer

secret_file, socket = sys.argv[1:]
with open(secret_file, "rb") as file:
    secret = file.read().strip()


class Signer(BaseHTTPRequestHandler):
    def do_GET(self):
        user = self.headers.get("X-User", "")
        method = self.headers.get("X-Method", "")
        path = self.headers.get("X-Target", "").split("?", 1)[0]
        self.send_response(204 if user and method and path else 401)
        if user and method and path:
            now = int(time.time())
            text = f"{user}:{now}:{method}:{path}".encode("latin-1")
            proof = hmac.new(secret, text, hashlib.sha256).hexdigest()
            self.send_header("X-Proxy-Auth", f"t={now},v1={proof}")
        self.end_headers()

    def address_string(self):
        return "proxy"

    def log_message(self, *_):
        pass


class Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True


if os.path.exists(socket):
    os.remove(socket)
os.umask(0o007)
with Server(socket, Signer) as server:
    print("ready", flush=True)
    server.serve_forever()
