# web_service.py [--once] [STORE] - a background job inside a web service: every instance answers
# requests, and one of them runs the job. --once asks itself one question, and ends.
import http.server
import json
import sys
import threading
import urllib.request

import baton

once = "--once" in sys.argv
url = sys.argv[-1] if ":" in sys.argv[-1] else "file:/tmp/baton-examples"
working = threading.Event()


def job(lead: baton.Lead) -> None:
    print(f"the job begins in term {lead.term}", flush=True)
    while lead:
        working.set()  # one piece of work
        lead.wait(1)
    print("the job has ended", flush=True)


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"leads": election.leads, "term": election.term}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


with baton.Store(url) as store:
    election = store.election("background-job")
    threading.Thread(target=election.run, args=(job,)).start()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0 if once else 8080), Page) as server:
        if once:
            threading.Thread(target=server.serve_forever).start()
            working.wait()
            page = f"http://127.0.0.1:{server.server_port}/"
            print(urllib.request.urlopen(page).read().decode(), flush=True)
            server.shutdown()
        else:
            server.serve_forever()
