# csource - what the gates written in Python share: finding files, and just enough C to judge them.
#
# It relies on the code being formatted by clang-format (a gate of its own): a function's body is
# what stands between a `{` and a `}` in the first column.
import os
import re
import sys

sys.dont_write_bytecode = True

SKIPPED_FOLDERS = {".git", "build", "__pycache__"}


def root():
    """The tree to judge: the argument, or the repository that this tool belongs to."""
    if len(sys.argv) > 1:
        return sys.argv[1]
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def walk(top):
    """Yields the path of every file in the tree, relative to it, in a fixed order."""
    for folder, subfolders, names in os.walk(top):
        subfolders[:] = sorted(set(subfolders) - SKIPPED_FOLDERS)
        for name in sorted(set(names) - SKIPPED_FOLDERS):  # a linked worktree has a file .git
            yield os.path.relpath(os.path.join(folder, name), top)


def read(top, path):
    with open(os.path.join(top, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def language(path, text):
    """c, shell, python, cmake, make, markdown or an empty string; scripts by their first line."""
    suffixes = {".c": "c", ".h": "c", ".py": "python", ".sh": "shell", ".md": "markdown",
                ".cmake": "cmake"}
    names = {"CMakeLists.txt": "cmake", "Makefile": "make"}
    base = os.path.basename(path)
    known = suffixes.get(os.path.splitext(base)[1]) or names.get(base)
    if known:
        return known
    first = text.split("\n", 1)[0]
    if first.startswith("#!"):
        return "python" if "python" in first else "shell"
    return ""


TOKENS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def code(text):
    """The text with comments and literals blanked out; every line keeps its number."""
    return TOKENS.sub(blank, text)


def comments(text):
    """Only the comments; all else is blanked out, and every line keeps its number."""
    pieces, at = [], 0
    for match in TOKENS.finditer(text):
        pieces.append(re.sub(r"[^\n]", " ", text[at:match.start()]))
        pieces.append(match.group() if match.group()[0] == "/" else blank(match))
        at = match.end()
    return "".join(pieces)


def without_comments(text):
    """The text with only its comments blanked out."""
    return TOKENS.sub(lambda m: blank(m) if m.group()[0] == "/" else m.group(), text)


def functions(text):
    """Yields (name, first line, last line) of each function, from its signature to its `}`."""
    lines = code(text).split("\n")
    for number, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        first = number
        while first > 0 and lines[first - 1].strip() and lines[first - 1][0] not in "};#":
            first -= 1
            if re.match(r"[A-Za-z_]", lines[first]):
                break
        last = number
        while last + 1 < len(lines) and not lines[last].startswith("}"):
            last += 1
        name = re.search(r"(\w+)\s*\(", " ".join(lines[first:number]))
        yield (name.group(1) if name else "?"), first + 1, last + 1


def report(tool, findings):
    """Prints the findings and returns the exit code."""
    for finding in findings:
        print(finding)
    if findings:
        print(f"{tool}: {len(findings)} finding{'s' if len(findings) > 1 else ''}")
    return 1 if findings else 0
