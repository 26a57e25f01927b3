# scene.py - a small company's elections, for pictures and tests: six processes, ten elections with
# a past of handovers, one paused, one without a standby, one that nobody may lead.
import threading

from rigging import wait_for

ALL = ["billing", "cache-warmer", "dns-primary", "gpu-jobs", "mail-queue", "nightly-report",
       "orders-eu", "orders-us", "search-index", "thumbnails"]
SITES = {  # the first one shows the dashboard
    "ams-1": ALL,
    "ams-2": ["billing", "mail-queue", "orders-eu", "orders-us", "search-index"],
    "fra-1": ["billing", "nightly-report", "orders-eu", "cache-warmer", "search-index"],
    "fra-2": ["mail-queue", "orders-us", "thumbnails", "search-index"],
    "nyc-1": ["orders-us", "thumbnails"],
    "gpu-1": ["gpu-jobs"],
}


class Scene:
    def __init__(self, world, lease="15s", args=()):
        self.world, self.servers = world, {}
        for site, names in SITES.items():
            self.servers[site] = world.start(
                *names, f"--id={site}", f"--lease={lease}", f"--address={site}.example:7000",
                f"--metadata=version 4.2.{len(names)}", f"--priority={site[-1]}",
                *(["--listen=127.0.0.1:0", *args] if site == "ams-1" else []))
        for site in ("ams-1", "gpu-1"):
            sick = self.servers[site].ready().post("/v1/elections/gpu-jobs/health",
                                                   {"score": 0.25})
            assert sick.status == 204, sick.text
        for server in self.servers.values():
            server.ready()
        self.front = self.servers["ams-1"]
        wait_for(lambda: all(r["leader"] or n == "gpu-jobs" for n, r in self.rows().items()),
                 "leaders of all elections")
        if self.rows()["gpu-jobs"]["leader"]:
            self.front.post("/v1/elections/gpu-jobs/resign?any=1")
        wait_for(lambda: not self.rows()["gpu-jobs"]["leader"], "an election without a leader")

    def rows(self):
        return {r["election"]: r
                for r in self.front.get("/v1/elections?limit=1000").json["elections"]}

    def candidates(self, name):
        return self.front.get(f"/v1/elections/{name}/candidates").json

    def order(self, verb, name, **body):
        """Resign or transfer, and wait until another leads."""
        answer = self.front.post(f"/v1/elections/{name}/{verb}?any=1&wait=30s", body)
        assert answer.status == 200, answer.text
        return answer.json

    def lead_by(self, name, site, note=""):
        wait_for(lambda: site in [c["id"] for c in self.candidates(name)], f"{site} in {name}")
        if self.rows()[name]["leader"] != site:
            self.order("transfer", name, to=site, note=note)

    def play(self, rounds=1, pause_s=1.0):
        """A past: handovers by order, a standby that is gone, a pause."""
        for i in range(rounds):
            for name, site in (("billing", "ams-2"), ("billing", "fra-1"), ("orders-eu", "ams-2"),
                               ("billing", "ams-1"), ("mail-queue", "fra-2"),
                               ("orders-us", "nyc-1"), ("orders-eu", "fra-1")):
                self.lead_by(name, site, "dana: kernel update" if i == 0 else "")
                threading.Event().wait(pause_s)
        self.front.post("/v1/elections/thumbnails/paused", method="PUT")
        wait_for(lambda: self.rows()["thumbnails"]["paused"], "a pause")
