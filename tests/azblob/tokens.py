# tokens.py - who gives tokens, for the tests of identities: Microsoft Entra's endpoint for workload
# identities (TLS), a machine's (IMDS) and App Service's. A token says what Azurite looks at, and
# nobody has signed it. Each is noted: who asked, and for how long it is good.
import base64
import http.server
import json
import ssl
import threading
import time
import urllib.parse

CLIENT, TENANT, HEADER = "client-1", "tenant-1", "header-1"


def encoded(part):
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


class Tokens:
    """life_s: how long the next token is good; refuses: none is given."""

    def __init__(self, assertion, certificate=None, key=None):
        self.assertion = assertion
        self.life_s = 3600
        self.refuses = False
        self.given = []
        self.silent = threading.Event() # set: nobody is answered
        self.holds = 0 # how many who ask next are not answered, until they give up
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self): # pylint: disable=invalid-name
                path = urllib.parse.urlsplit(self.path)
                query = dict(urllib.parse.parse_qsl(path.query))
                good = query.get("resource") == "https://storage.azure.com/" and (
                    path.path == "/metadata/identity/oauth2/token" and
                    self.headers.get("Metadata") == "true" or
                    path.path == "/msi/token" and self.headers.get("X-IDENTITY-HEADER") == HEADER)
                outer.answer(self, good, path.path)

            def do_POST(self): # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = dict(urllib.parse.parse_qsl(body))
                outer.answer(self, self.path == f"/{TENANT}/oauth2/v2.0/token" and
                             form["client_id"] == CLIENT and form["client_assertion"] ==
                             outer.assertion and form["scope"].endswith("/.default"), "workload")

            def log_message(self, *_args): # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler, good, way):
        if self.silent.is_set():
            while self.silent.is_set():
                threading.Event().wait(0.1)
            return
        if self.holds > 0:
            self.holds -= 1
            try:
                handler.connection.recv(1)
            except OSError:
                pass
            return
        if not good or self.refuses:
            status, answer = 400, {"error": "invalid_client",
                                   "error_description": "AADSTS70021: no such identity\r\nTrace"}
        else:
            now = int(time.time())
            claims = {"aud": "https://storage.azure.com",
                      "iss": f"https://sts.windows.net/{TENANT}/",
                      "iat": now - 60, "nbf": now - 60, "exp": now + self.life_s}
            token = f"{encoded({'alg': 'none'})}.{encoded(claims)}.c2ln"
            status, answer = 200, {"access_token": token, "token_type": "Bearer"}
            if way == "/msi/token":
                answer["expires_on"] = str(now + self.life_s)
            else:
                answer["expires_in"] = str(self.life_s)
            self.given.append((way, token))
        body = json.dumps(answer).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def close(self):
        self.silent.clear()
        self.server.shutdown()
        self.server.server_close()
