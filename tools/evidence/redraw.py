# redraw.py - draws the pictures of docs/evidence that show what a table of their page has, from the
# pages that are there: figures, day, commit and machine are those of the pages. Nothing is run.
import os
import re

import pages


def read(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def origin(text):
    """The line of pages.footer(), from the two lines that every page has beneath its title."""
    match = re.search(r"^Measured on (\S+) at commit `([^`]+)`, in the (\w+ form) of .*\n"
                      r"Machine: (.*?, Linux [^,]+), .*\. Load: (.*)\.$", text, re.M)
    if not match:
        raise SystemExit("evidence: a page does not name its day, commit and machine")
    date, commit, form, machine, load = match.groups()
    return f"{date}, commit {commit}, {form}; {machine}; load {load}"


def table_of(text, head):
    """The rows of the first table with this head; [] if there is none."""
    line = "| " + " | ".join(head) + " |\n"
    rows = []
    for row in text.partition(line)[2].split("\n")[1:]:
        if not row.startswith("|"):
            break
        rows.append([c.strip().replace("\\|", "|")
                     for c in re.split(r"(?<!\\)\|", row.strip("|"))])
    return rows


def with_image(text, head, image):
    """The page with the picture behind its table."""
    if image in text:
        return text
    before, line, rest = text.partition("| " + " | ".join(head) + " |\n")
    table, gap, after = rest.partition("\n\n")
    return before + line + table.rstrip("\n") + f"\n\n{image}" + ("\n\n" + after if gap else "\n")


def files(folder):
    """{name: text} of the two pages and their pictures."""
    proofs, chaos = read(folder, "proofs.md"), read(folder, "chaos.md")
    faults = {part.partition("\n")[0]: table_of(part, pages.FAULTS_HEAD)
              for part in chaos.split(pages.FAULTS_TITLE)[1:]}
    return {
        "proofs.md": with_image(proofs, pages.SEARCH_HEAD, pages.STATES_IMAGE),
        "states.svg": pages.states_picture(table_of(proofs, pages.SEARCH_HEAD), origin(proofs)),
        "chaos.md": with_image(chaos, pages.CHAOS_HEAD, pages.CHAOS_IMAGE),
        "chaos.svg": pages.chaos_picture(table_of(chaos, pages.CHAOS_HEAD), faults,
                                         origin(chaos)),
    }
