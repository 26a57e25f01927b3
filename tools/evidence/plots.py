# plots.py - the pictures of docs/evidence: distributions, growth, bars of states and of failovers,
# and the demo as a timeline.
#
# Each takes what collect.py recorded and a line that says when, where and at which commit; each
# returns SVG. None of them decides what is measured or leaves a sample out: it draws at most DOTS
# of them, evenly taken from all of them in order, the least and the greatest included.
import svg

DOTS = 160
ROW = 46
SERIES = ("c1", "c2", "c3", "c4", "c5")


def at(values, percent):
    """As bench has it: the value below which so many percent are."""
    values = sorted(values)
    return values[int((len(values) - 1) * percent / 100)]


def thinned(values):
    values = sorted(values)
    if len(values) <= DOTS:
        return values
    return [values[round(i * (len(values) - 1) / (DOTS - 1))] for i in range(DOTS)]


def kinds(names):
    """baton is blue, a raw request of the store grey, and each other one has a colour."""
    others = iter(SERIES * 4)
    return [("c0" if name.startswith("baton") else
             "raw" if name.startswith(("one ", "a raw")) else next(others)) for name in names]


def distribution(title, series, footer):
    """series: [(name, [ms])]. A row of dots for each, on one logarithmic axis."""
    width, left, right, top = 860, 190, 150, 58
    bottom = top + ROW * len(series)
    picture = svg.Picture(width, bottom + 66, title, footer)
    scale = svg.Scale([v for _, values in series for v in values], left, width - right)
    for value, labelled in scale.ticks():
        x = scale.at(value)
        picture.line(x, top - 8, x, bottom, "grid")
        if labelled:
            picture.text(x, bottom + 18, svg.duration(value), "s soft", "middle")
    picture.text(width - 20, top - 14, "p50 / p99", "s soft", "end")
    for i, ((name, values), kind) in enumerate(zip(series, kinds([n for n, _ in series]))):
        y = top + ROW * i + ROW / 2
        if i % 2 == 0:
            picture.rect(20, y - ROW / 2, width - 40, ROW, "grid", 0.45, 4)
        picture.text(30, y + 4, name)
        for n, value in enumerate(thinned(values)):
            picture.dot(scale.at(value), y + (n * 7 % 13 - 6) * 1.6, 2.6, kind, 0.5)
        p50, p99 = at(values, 50), at(values, 99)
        picture.line(scale.at(p50), y - 15, scale.at(p50), y + 15, kind, 3)
        text = svg.duration(p50)
        if len(values) >= 20:
            text += " / " + svg.duration(p99)
        picture.text(width - 30, y, text, kind, "end")
        picture.text(width - 30, y + 14, f"{len(values)} samples", "s soft", "end")
    return str(picture)


def growth(title, series, x_label, unit, footer):
    """series: [(name, [(x, y)])]. Both axes are logarithmic: a straight level line is flat."""
    width, height, left, right, top = 860, 380, 80, 170, 56
    bottom = height - 76
    picture = svg.Picture(width, height, title, footer)
    points = [p for _, line in series for p in line]
    xs = svg.Scale([x for x, _ in points], left, width - right)
    # Room above and below: a small difference must not look like a large one.
    ys = svg.Scale([f * y for _, y in points for f in (0.4, 2.5)], bottom, top)
    for value, labelled in ys.ticks():
        y = ys.at(value)
        picture.line(left, y, width - right, y, "grid")
        if labelled:
            picture.text(left - 8, y + 4, f"{value:g} {unit}", "s soft", "end")
    for value in sorted({x for x, _ in points}):
        picture.line(xs.at(value), bottom, xs.at(value), bottom + 5, "soft")
        picture.text(xs.at(value), bottom + 19, f"{value:,}", "s soft", "middle")
    picture.text((left + width - right) / 2, bottom + 38, x_label, "s soft", "middle")
    label = 0
    order = sorted(range(len(series)), key=lambda i: ys.at(series[i][1][-1][1]))
    for i in order:
        name, line = series[i]
        kind = "c0" if i == 0 else SERIES[(i - 1) % len(SERIES)]
        picture.curve([(xs.at(x), ys.at(y)) for x, y in line], kind)
        for x, y in line:
            picture.dot(xs.at(x), ys.at(y), 3.6, kind)
        label = max(label + 16, ys.at(line[-1][1]) + 4)  # no two names on each other
        picture.text(width - right + 12, label, f"{name} {line[-1][1]:.3g} {unit}", kind)
    return str(picture)


LINE = 30


def bars(title, groups, footer, is_log=False):
    """groups: [(heading, [(label, small print, value, what stands behind the bar, colour)])]. The
    axis of a group begins at 0; or all have one that is logarithmic. A value of 0 has no bar."""
    width, left, right, top = 860, 320, 190, 48
    height = top + sum(38 + LINE * len(rows) for _, rows in groups) + 44
    picture = svg.Picture(width, height, title, footer)
    values = [row[2] for _, rows in groups for row in rows if row[2] > 0] or [1]
    scale = svg.Scale(values, 0, width - left - right) if is_log else None
    y = top
    for heading, rows in groups:
        most = max([row[2] for row in rows] + [1])
        picture.text(20, y + 26, heading, "c0")
        y += 38
        for i, (label, small, value, note, kind) in enumerate(rows):
            if i % 2 == 0:
                picture.rect(20, y, width - 40, LINE, "grid", 0.45, 4)
            picture.text(30, y + (13 if small else 19), label)
            if small:
                picture.text(30, y + 25, small, "s soft")
            length = 0 if value <= 0 else max(2, scale.at(value) if is_log else
                                              value / most * (width - left - right))
            if length:
                picture.rect(left, y + 7, length, LINE - 14, kind, 1, 2)
            picture.text(left + length + 8, y + 19, note, "s ink")
            y += LINE
    return str(picture)


def told(event):
    """What happened, in the words of the demo."""
    return {"kill -9": "kill -9", "freeze": "SIGSTOP", "resign": "baton resign"}[event["what"]]


def timeline(demo, footer):
    """Who worked when; what was done to whom; how long nobody worked."""
    width, left, right, top, row = 860, 64, 28, 92, 54
    bottom = top + row * len(demo["candidates"])
    picture = svg.Picture(width, bottom + 62, "make demo: one of three works, whatever happens to "
                          "it", footer)
    span = max(w["to"] for w in demo["work"]) + 0.15

    def x(seconds):
        return left + max(seconds, 0) / span * (width - left - right)

    for second in range(int(span) + 1):
        picture.line(x(second), top - 6, x(second), bottom, "grid")
        picture.text(x(second), bottom + 16, f"{second} s", "s soft", "middle")
    rows = {who: top + row * i + row / 2 for i, who in enumerate(demo["candidates"])}
    colours = dict(zip(demo["candidates"], ("c0", "c1", "c2", "c3")))
    ends = {e["who"]: e["s"] for e in demo["happened"] if e["what"] == "killed"}
    thaws = {e["who"]: e["s"] for e in demo["happened"] if e["what"] == "thawed"}
    for who, y in rows.items():
        picture.text(30, y + 5, who, "h " + colours[who])
        picture.line(left, y, x(ends.get(who, span)), y, colours[who], 1.5, "2 4")
    for e in demo["happened"]:
        if e["what"] == "frozen":
            end = x(thaws.get(e["who"], span))
            worked = max([w["to"] for w in demo["work"] if w["who"] == e["who"] and
                          w["from"] < e["s"]])
            picture.rect(x(worked), rows[e["who"]] - 11, end - x(worked), 22, "grid", 1, 3)
            words = "frozen; its guard has ended the work" if end - x(worked) > 195 else "frozen"
            picture.text((x(worked) + end) / 2, rows[e["who"]] + 4, words, "s soft", "middle")
    for w in demo["work"]:
        picture.rect(x(w["from"]), rows[w["who"]] - 13, max(x(w["to"]) - x(w["from"]), 1.5), 26,
                     colours[w["who"]], 1, 3)
        picture.text(x(w["from"]) + 8, rows[w["who"]] + 4, "works", "s page")
    for e in (e for e in demo["happened"] if "by" in e):
        began = x(e["s"] - e["ms"] / 1000)
        picture.line(began, top - 8, began, rows[e["who"]] + 18, "bad", 1.5, "4 3")
        picture.text(began, top - 28, f"{told(e)} {e['who']}", "bad",
                     "middle")
        picture.text(began, top - 13, f"{e['by']} after {svg.duration(e['ms'])}", "s soft",
                     "middle")
        if e["what"] == "kill -9":
            for turn in (-6, 6):
                picture.line(began - 6, rows[e["who"]] - turn, began + 6, rows[e["who"]] + turn,
                             "bad", 2.5)
    return str(picture)
