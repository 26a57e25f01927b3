# front.py - another address of Azurite, whose answers have headers of our choice: what the service
# says of accounts and containers that Azurite doesn't have.
import http.client
import http.server
import threading


class Front:
    """headers: what each answer has besides, or instead; None: what it doesn't have."""

    def __init__(self, port):
        self.headers = {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def carry(self):
                there = http.client.HTTPConnection("127.0.0.1", int(port))
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                there.request(self.command, self.path, body, dict(self.headers))
                answer = there.getresponse()
                data = answer.read()
                headers = {**{name.lower(): value for name, value in answer.getheaders()},
                           **outer.headers}
                headers.pop("transfer-encoding", None)
                if self.command != "HEAD":
                    headers["content-length"] = len(data)
                self.send_response_only(answer.status)
                for name, value in headers.items():
                    if value is not None:
                        self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(data)
                there.close()

            do_GET = do_PUT = do_DELETE = do_HEAD = carry

            def log_message(self, *_args): # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
