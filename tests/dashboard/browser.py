# browser.py - a real Chromium for the tests of the dashboard, steered by chromedriver. Debian makes
# both from one source, so they always fit together, and the protocol is plain HTTP with JSON: what
# steers is what a script library of another version can't break, and Python alone is enough.
#
# It must never leave a browser behind: each has a folder of its own, and ends with its case.
import base64
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

from rigging import LIMIT_S, Missing, wait_for

KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Tab": "\ue004", "Shift": "\ue008"}
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the name that the protocol has for it
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb",
         "--disable-features=Translate,OptimizationHints,MediaRouter")


class Refused(Exception):
    """The driver says no: an element isn't there, or something lies over it."""


class Browser:
    def __init__(self, width=1280, height=860, env=None, flags=()):
        chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if chromium is None or driver is None:
            raise Missing("chromium or chromium-driver is not installed")
        self.folder = tempfile.mkdtemp(prefix="baton-browser-")
        self.log = os.path.join(self.folder, "driver.log")
        with open(self.log, "w", encoding="utf-8") as log:
            self.driver = subprocess.Popen([driver, "--port=0"], stdout=log, stderr=log,
                                           env={**os.environ, **(env or {})},
                                           start_new_session=True)
        self.session = None
        try:
            self.port = int(wait_for(self.find_port, "a driver's port"))
            options = {"binary": chromium, "args": [
                *FLAGS, *flags, f"--user-data-dir={self.folder}/profile",
                f"--window-size={width},{height}"]}
            caps = {"alwaysMatch": {"goog:chromeOptions": options,
                                    "goog:loggingPrefs": {"browser": "ALL"}}}
            self.session = self.send("POST", "/session", {"capabilities": caps})["sessionId"]
        except BaseException:
            self.close()
            raise

    def find_port(self):
        with open(self.log, encoding="utf-8") as log:
            found = re.search(r"successfully on port (\d+)", log.read())
        return found and found[1]

    def send(self, method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        try:
            c.request(method, path, json.dumps(body if body is not None else {})
                      if method == "POST" else None, {"Content-Type": "application/json"})
            value = json.loads(c.getresponse().read())["value"]
        finally:
            c.close()
        if isinstance(value, dict) and "error" in value:
            raise Refused(value["error"] + ": " + value["message"].splitlines()[0])
        return value

    def do(self, method, path, body=None):
        return self.send(method, f"/session/{self.session}/{path}", body)

    def devtools(self, command, **params):
        return self.do("POST", "goog/cdp/execute", {"cmd": command, "params": params})

    # ---- what a person does ----

    def go(self, url):
        self.do("POST", "url", {"url": url})

    def find(self, css):
        return self.do("POST", "element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        """With the mouse: fails where something lies over it."""
        def clicked():
            try:
                self.do("POST", f"element/{self.find(css)}/click")
                return True
            except Refused:
                return False
        wait_for(clicked, "something to click on: " + css, 15)

    def type(self, css, text):
        self.do("POST", f"element/{self.find(css)}/value", {"text": text})

    def press(self, *keys):
        """At whatever has the focus."""
        steps = []
        for key in keys:
            value = KEYS.get(key, key)
            steps += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.do("POST", "actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})

    def size(self, width, height, scale=1):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=scale, mobile=False)

    def prefer(self, scheme="light", motion="no-preference"):
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion}])

    # ---- what a person sees ----

    def run(self, script, *args):
        return self.do("POST", "execute/sync", {"script": script, "args": list(args)})

    def run_async(self, script, *args):
        """The script calls its last argument when it is done."""
        return self.do("POST", "execute/async", {"script": script, "args": list(args)})

    def text(self, css):
        return self.run("const e = document.querySelector(arguments[0]);"
                        "return e && e.checkVisibility() ? e.innerText : null", css)

    def wait(self, script, what=None, limit_s=LIMIT_S):
        """Until the expression is true."""
        return wait_for(lambda: self.run("return " + script), what or script, limit_s)

    def wait_text(self, css, words):
        return wait_for(lambda: words in (self.text(css) or ""),
                        f"{words!r} in {css}, which was {self.text(css)!r}")

    def shot(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.do("GET", "screenshot")))

    def complaints(self):
        """What the page has written to its console: errors, and what its policy has refused."""
        return [e["message"] for e in self.do("POST", "se/log", {"type": "browser"})
                if e["level"] == "SEVERE"]

    def close(self):
        try:
            if self.session is not None:
                self.send("DELETE", f"/session/{self.session}")
        except (OSError, Refused, http.client.HTTPException):
            pass
        finally:
            try:
                os.killpg(self.driver.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.driver.wait()
            shutil.rmtree(self.folder, ignore_errors=True)
