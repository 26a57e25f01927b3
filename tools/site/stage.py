# stage.py - puts the sources of the site together: the Markdown pages of the tree, its manual, and
# every other file that a page links to, shown as it is. Links that work on a Git host work here.
#
# A page keeps its path, and README.md becomes the index of its folder. Nothing is written below the
# tree but the folder that is named.
import os
import re
import shutil
import subprocess

import csource
import links

LANGUAGES = {".c": "c", ".h": "c", ".py": "python", ".sh": "sh", ".yaml": "yaml", ".yml": "yaml",
             ".lua": "lua", ".rb": "ruby", ".php": "php", ".pl": "perl", ".cmake": "cmake",
             ".json": "json"}
ORPHAN = "---\norphan: true\n---\n"
PICTURES = (".svg", ".png")
SECTION = re.compile(r"<section class=\"S([hs])\">\s*<h\d class=\"S[hs]\" id=\"[^\"]*\">"
                     r"<a class=\"permalink\" href=\"[^\"]*\">(.*?)</a></h\d>", re.S)
REFERENCE = re.compile(r"<b>([\w@.-]+)</b>\((\d)\)")

# The manual's sections, in the order of man_key.
SECTIONS = {"1": "The command", "7": "Words, promises, stores", "3": "The library",
            "5": "Files", "8": "Services"}
# What stands in the bar at the side: (title, pages or the start of their paths)
BAR = (
    ("Use it", ("docs/guide/README.md", "docs/stores/README.md", "examples/README.md",
                "deploy/README.md", "man/index")),
    ("In your language", ("bindings/",)),
    ("How it works", ("ARCHITECTURE.md", "docs/rules.md", "tests/story/README.md",
                      "tests/chaos/README.md", "docs/decisions/README.md",
                      "docs/evidence/README.md")),
    ("Take part", ("CONTRIBUTING.md", "docs/new-store.md", "tests/bindings/README.md",
                   "CHANGELOG.md", "SECURITY.md")),
)


def place(path):
    """Where a page, a man page or another file of the tree is in the site's sources."""
    folder, name = os.path.split(path)
    if name == "README.md":
        return os.path.join(folder, "index.md")
    return path if path.endswith((".md", *PICTURES)) else path + ".md"


def man_key(path):
    """By section, as manuals are: the command, the library, formats, the rest."""
    name, _, section = path.rpartition(".")
    return list(SECTIONS).index(section), name not in ("man/baton", "man/libbaton"), name


class Site:
    """All sources, by their path in the tree."""

    def __init__(self, top, to):
        self.top, self.to = top, to
        paths = list(csource.walk(top))
        self.pages = [p for p in paths if p.endswith(".md")]
        self.manual = sorted((p for p in paths if re.match(r"man/.*\.\d$", p)), key=man_key)
        self.others = set()  # linked files and folders that are no pages

    def write(self, path, text):
        path = os.path.join(self.to, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def aim(self, page, target):
        """The target of a link in the sources of the site."""
        path, anchor = links.split(page, target)
        if os.path.isdir(os.path.join(self.top, path)):
            readme = os.path.join(path, "README.md")
            path = readme if readme in self.pages else path
        if path not in self.pages and path not in self.manual:
            self.others.add(path)
        if path == page and anchor:
            return "#" + anchor
        there = path if path.endswith(PICTURES) else place(path)
        there = os.path.relpath(there, os.path.dirname(place(page)) or ".")
        return there + ("#" + anchor if anchor else "")

    def page(self, path):
        text, made, at = csource.read(self.top, path), [], 0
        for match in links.found(text):
            target = match.group(2)
            if not links.is_internal(target):
                continue
            made += [text[at:match.start(2)], self.aim(path, target)]
            at = match.end(2)
        self.write(place(path), "".join([*made, text[at:], self.toctree(path)]))

    # ---- the bar at the side ----

    def below(self, path):
        """The pages that belong to an index: those of its folder, in the order of its links."""
        folder = os.path.dirname(path)
        linked = [links.split(path, m.group(2))[0]
                  for m in links.found(csource.read(self.top, path))]
        return sorted((p for p in self.pages if os.path.dirname(p) == folder and p != path),
                      key=lambda p: (linked.index(p) if p in linked else len(linked), p))

    def entries(self, words, folder):
        listed = [p for word in words for p in (*self.pages, *self.manual)
                  if p == word or word.endswith("/") and p.startswith(word)]
        listed += [word for word in words if word == "man/index"]
        return [os.path.relpath(place(p)[:-3], folder or ".") for p in listed]

    def toctree(self, path):
        if path == "README.md":
            groups = [(title, self.entries(words, "")) for title, words in BAR]
        elif path.endswith("/README.md") and path.startswith("docs/") or path == "deploy/README.md":
            below = self.below(path)
            if path == "deploy/README.md":
                below = ["deploy/kubernetes/README.md"]
            groups = [("", self.entries(below, os.path.dirname(path)))]
        else:
            return ""
        return "".join("\n```{toctree}\n:hidden:\n" + (f":caption: {title}\n" if title else "")
                       + ":maxdepth: 1\n\n" + "\n".join(entries) + "\n```\n"
                       for title, entries in groups)

    # ---- the manual ----

    def man_page(self, path):
        html = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", path], cwd=self.top,
                              check=True, capture_output=True, text=True).stdout
        body = html[html.index("<div class=\"manual-text\">") + 25:html.rindex("<table")]
        body = REFERENCE.sub(self.reference, body.replace("</section>", ""))
        name, _, section = os.path.basename(path).rpartition(".")
        parts = [f"# {name}({section})"]
        pieces = SECTION.split(body)
        for kind, title, text in zip(pieces[1::3], pieces[2::3], pieces[3::3]):
            title = " ".join(title.split())
            title = title.capitalize() if title.isupper() and title != "JSON" else title
            parts.append(("##" if kind == "h" else "###") + " " + re.sub(r"<[^>]*>", "", title))
            text = text.removesuffix("</div>\n").strip()
            if text:
                parts.append("```{raw} html\n<div class=\"manual\">\n" + text + "\n</div>\n```")
        self.write(place(path), "\n\n".join(parts) + "\n")

    def man_index(self):
        """All of them, with the sentence of the section NAME."""
        parts = ["# The manual"]
        for section, title in SECTIONS.items():
            rows = ["| page | what |", "|---|---|"]
            for path in (p for p in self.manual if p.endswith("." + section)):
                line = csource.read(self.top, path).partition(".SH NAME\n")[2].split("\n")[0]
                name = os.path.basename(path)
                rows.append(f"| [{name[:-2]}({section})]({name}.md) | "
                            + line.partition(" \\- ")[2].replace("\\", "") + " |")
            parts += [f"## {title} ({section})", "\n".join(rows)]
        names = "\n".join(os.path.basename(p) for p in self.manual)
        parts.append("```{toctree}\n:hidden:\n:maxdepth: 1\n\n" + names + "\n```")
        self.write("man/index.md", "\n\n".join(parts) + "\n")

    def reference(self, match):
        page = f"{match.group(1)}.{match.group(2)}"
        if "man/" + page not in self.manual:
            return match.group()
        return f"<a href=\"{page}.html\">{match.group()}</a>"

    # ---- all other files that pages link to ----

    def other(self, path):
        full = os.path.join(self.top, path)
        if path.endswith(PICTURES):
            os.makedirs(os.path.dirname(os.path.join(self.to, path)), exist_ok=True)
            shutil.copy(full, os.path.join(self.to, path))
            return
        if os.path.isdir(full):
            self.folder(path, full)
            return
        text = csource.read(self.top, path)
        word = LANGUAGES.get(os.path.splitext(path)[1]) or csource.language(path, text)
        word = {"shell": "sh", "markdown": "text"}.get(word, word) or "text"
        self.write(place(path), ORPHAN + f"# {path}\n\n``````{word}\n{text}``````\n")

    def folder(self, path, full):
        names = sorted(n for n in os.listdir(full) if os.path.isfile(os.path.join(full, n)))
        rows = [f"* [{n}]({self.aim(path, os.path.basename(path) + '/' + n)})" for n in names]
        self.write(place(path), ORPHAN + f"# {path}\n\n" + "\n".join(rows) + "\n")

    def stage(self):
        shutil.rmtree(self.to, ignore_errors=True)
        for path in self.pages:
            self.page(path)
        for path in self.manual:
            self.man_page(path)
        self.man_index()
        done = set()
        while self.others - done:
            for path in sorted(self.others - done):
                self.other(path)
                done.add(path)
        return len(self.pages) + len(self.manual)
