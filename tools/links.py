# links.py - the links of Markdown pages: what tools/check-links and the site (tools/site) share.
#
# A link is relative to its page, as on a Git host; a heading's anchor is what Git hosts make of it.
# Code is no place for links, and is left alone.
import os
import re

FENCE = re.compile(r"^[ >]*(`{3,}|~{3,})")
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^()\s]+(?:\([^()\s]*\))?)\)")
SPAN = re.compile(r"(`+)(?:(?!\1).)+?\1(?!`)", re.S)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$")
ID = re.compile(r"<a\s+(?:id|name)=\"([^\"]+)\"")


def without_code(text):
    """The text with code blanked out: every character keeps its place."""
    lines, fence = [], None
    for line in text.split("\n"):
        mark = FENCE.match(line)
        inside = fence is not None
        if mark and not inside:
            fence, inside = mark.group(1), True
        elif mark and mark.group(1).startswith(fence):
            fence = None
        lines.append(" " * len(line) if inside else line)
    return SPAN.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), "\n".join(lines))


def found(text):
    """Yields the match of each link: its words, its target. Their places are those of the text."""
    yield from LINK.finditer(without_code(text))


def is_internal(target):
    return not re.match(r"[a-z][a-z0-9+.-]*:", target)


def split(page, target):
    """(path in the tree, anchor) of a link on that page."""
    path, _, anchor = target.partition("#")
    if not path:
        return page, anchor
    return os.path.normpath(os.path.join(os.path.dirname(page), path)), anchor


def slug(heading):
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    heading = re.sub(r"[`*]", "", heading).strip().lower().replace(" ", "-")
    return re.sub(r"[^\w\-]", "", heading)


def anchors(text):
    """What can stand behind a # of a link to that page."""
    made, fence = set(ID.findall(text)), None
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if mark and fence is None:
            fence = mark.group(1)
        elif mark and mark.group(1).startswith(fence):
            fence = None
        match = HEADING.match(line) if fence is None else None
        if match:
            base = name = slug(match.group(1))
            count = 0
            while name in made:
                count += 1
                name = f"{base}-{count}"
            made.add(name)
    return made
