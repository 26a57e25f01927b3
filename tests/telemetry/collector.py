# collector.py: a collector of OTLP for the tests of `baton run` and `baton serve`: it keeps what it
# is sent as JSON, or answers with codes of its own, or hangs.
import gzip
import http.server
import json
import threading


class Collector:
    """Takes OTLP as JSON, or answers with codes of its own; or says nothing at all."""

    def __init__(self, codes=(), hangs=False, context=None):
        self.requests = []  # (path, headers, body)
        self.codes = list(codes)
        self.hangs = hangs
        self.over = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if outer.hangs:
                    outer.over.wait(60)
                    return
                code = outer.codes.pop(0) if outer.codes else 200
                outer.requests.append((self.path, dict(self.headers), body))
                self.send_response(code)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.scheme = "http"
        if context is not None:
            self.scheme = "https"
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self):
        host = "127.0.0.1" if self.scheme == "http" else "localhost"
        return f"{self.scheme}://{host}:{self.server.server_port}"

    def variables(self, **more):
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url(),
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", **more}

    def bodies(self, path):
        return [json.loads(b) for p, _, b in list(self.requests) if p == path]

    def spans(self):
        return [s for b in self.bodies("/v1/traces") for r in b["resourceSpans"]
                for c in r["scopeSpans"] for s in c["spans"]]

    def metrics(self):
        return {m["name"]: m for b in self.bodies("/v1/metrics") for r in b["resourceMetrics"]
                for c in r["scopeMetrics"] for m in c["metrics"]}

    def end(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


def attributes(span):
    return {a["key"]: next(iter(a["value"].values())) for a in span["attributes"]}
