# check.py - looks at the pages of the site as a browser would, without a network: every link inside
# leads to a file and to an id in it, and nothing is loaded from another host.
import os
import re
import urllib.parse
from html.parser import HTMLParser

# Attributes that make a browser load something; an <a href> does not.
LOADS = {"src", "srcset", "poster", "data"}
LOADING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "manifest",
                 "preconnect", "dns-prefetch", "shortcut", "apple-touch-icon", "mask-icon"}
ELSEWHERE = re.compile(r"^(?:https?:)?//", re.I)
# In CSS; and in JavaScript, what fetches, imports or makes an element load.
IN_CSS = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)", re.I)
IN_JS = re.compile(r"(?:fetch|import|importScripts|Worker|open|src\s*=|href\s*=)\s*\(?\s*['\"`]"
                   r"((?:https?:)?//[^'\"`]+)", re.I)


class Page(HTMLParser):
    """What a page links to, what it loads, and which ids it has."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.style = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs[name] for name in ("id", "name") if attrs.get(name)}
        self.style = tag == "style"
        rel = set((attrs.get("rel") or "").lower().split())
        for name, value in attrs.items():
            if name in LOADS and value:
                self.loads.append(value)
            elif name == "href" and value:
                loads = tag in ("use", "image") or tag == "link" and rel & LOADING_LINKS
                (self.loads if loads else self.links).append(value)
            elif name == "style":
                self.loads += IN_CSS.findall(value or "")

    def handle_data(self, data):
        if self.style:
            self.loads += IN_CSS.findall(data)


def internal(path, target, pages, folder):
    """The sentence that is wrong with a link or a loaded file, or None."""
    parts = urllib.parse.urlsplit(target)
    aim = path if not parts.path else \
        os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path)))
    if not os.path.isfile(os.path.join(folder, aim)):
        return f"{path}: {target} leads nowhere"
    anchor = urllib.parse.unquote(parts.fragment)
    if anchor and aim in pages and anchor not in pages[aim].ids:
        return f"{path}: {aim} has no #{anchor}"
    return None


def read(folder, path):
    with open(os.path.join(folder, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def findings(folder):
    paths = [os.path.relpath(os.path.join(d, n), folder) for d, _, names in os.walk(folder)
             for n in names]
    pages = {p: Page(read(folder, p)) for p in paths if p.endswith(".html")}
    for path, page in pages.items():
        for target in page.loads + page.links:
            if target.startswith(("data:", "mailto:", "javascript:")):
                continue
            if not ELSEWHERE.match(target) and not re.match(r"[a-z]+:", target):
                wrong = internal(path, target, pages, folder)
                if wrong:
                    yield wrong
        yield from (f"{path}: loads {t} from another host" for t in page.loads
                    if ELSEWHERE.match(t))
    for path in paths:
        pattern = {".css": IN_CSS, ".js": IN_JS, ".svg": IN_CSS}.get(os.path.splitext(path)[1])
        for target in pattern.findall(read(folder, path)) if pattern else []:
            yield f"{path}: loads {target} from another host"
