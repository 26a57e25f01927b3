# world.py - what the cases of tests/redis/run stand on: servers, and candidates on them.
import re
import subprocess
import time

import rig
from rig import LIMIT_S, SECRET, servers, wait_for

MAX_LEASE_MS = 3000


class World(rig.Judged):
    def url(self, **options):
        """As the user `app`, so that there is a password in every case; base: as it is."""
        options = {"max_lease": MAX_LEASE_MS, **options}
        base = options.pop("base", self.info["url"].replace("://", f"://app:{SECRET}@"))
        more = "&".join(f"{key}={value}" for key, value in options.items())
        return base + ("&" if "?" in base else "?") + more

    def candidate(self, name, url, lease="1s", **variables):
        return super().candidate(name, url, lease, **variables)

    def cli(self, port, *args):
        return subprocess.run(["redis-cli", "-h", "127.0.0.1", "-p", str(port), *args], text=True,
                              capture_output=True, timeout=LIMIT_S, check=False).stdout.strip()

    def again(self, name, port):
        servers("again", self.dir, name)
        wait_for(lambda: self.cli(port, "PING") == "PONG", name + " to answer")


def now_ms():
    return int(time.time() * 1000)


def uptime_s(w):
    return int(re.search(r"uptime_in_seconds:(\d+)", w.cli(w.info["port"], "INFO", "server"))[1])
