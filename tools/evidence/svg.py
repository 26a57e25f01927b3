# svg.py - pictures in SVG, written by hand: shapes, text, and axes that can be logarithmic.
#
# A picture must be readable on a light and on a dark page, in a browser that has picked either: it
# has a background of its own, and its colours follow the reader's scheme. It loads nothing.
import math

FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
# name: (light, dark); the first series is baton's
COLOURS = {
    "page": ("#ffffff", "#16181d"),
    "frame": ("#d9dde3", "#343943"),
    "ink": ("#1c2128", "#e6e9ee"),
    "soft": ("#626b78", "#9aa4b2"),
    "grid": ("#e9ecf0", "#272b33"),
    "c0": ("#1f6feb", "#6cb0ff"),
    "c1": ("#c2570c", "#f79c55"),
    "c2": ("#187a4b", "#4fc58a"),
    "c3": ("#8a3ffc", "#be95ff"),
    "c4": ("#b3265e", "#ff7eb0"),
    "c5": ("#0f7682", "#4cc9d6"),
    "raw": ("#8a93a0", "#7d8794"),
    "bad": ("#c62828", "#ff6b61"),
}


def escaped(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def style():
    def rules(which):
        rows = [f".{name}{{fill:{pair[which]}}}.{name}-l{{stroke:{pair[which]}}}"
                for name, pair in COLOURS.items()]
        return "".join(rows)
    return (f"text{{font-family:{FONT};font-size:12px}}"
            ".l{fill:none}.h{font-size:15px;font-weight:600}.s{font-size:11px}"
            + rules(0) + "@media (prefers-color-scheme:dark){" + rules(1) + "}")


class Picture:
    """Shapes are added from the back to the front; the class says the colour."""

    def __init__(self, width, height, title, footer):
        self.width, self.height, self.title = width, height, title
        self.parts = []
        self.text(20, 28, title, "h ink")
        self.text(20, height - 12, footer, "s soft")

    def text(self, x, y, text, kind="ink", anchor="start"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
                          f"{escaped(text)}</text>")

    def line(self, x1, y1, x2, y2, kind="grid", width=1, dashes=""):
        dashes = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'class="l {kind}-l" stroke-width="{width}"{dashes}/>')

    def rect(self, x, y, width, height, kind, opacity=1, radius=0):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
                          f'height="{height:.1f}" rx="{radius}" class="{kind}" '
                          f'opacity="{opacity}"/>')

    def dot(self, x, y, radius, kind, opacity=1):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" class="{kind}" '
                          f'opacity="{opacity}"/>')

    def curve(self, points, kind):
        path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self.parts.append(f'<path d="{path}" class="l {kind}-l" stroke-width="2" '
                          'stroke-linejoin="round"/>')

    def __str__(self):
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" role="img">\n'
                f"<title>{escaped(self.title)}</title>\n<style>{style()}</style>\n"
                f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="8" '
                'class="page frame-l"/>\n' + "\n".join(self.parts) + "\n</svg>\n")


class Scale:
    """Values to places, evenly by their logarithms; from and to are round."""

    def __init__(self, values, start, end):
        low, high = min(values), max(values)
        self.low = 10 ** math.floor(math.log10(low))
        self.high = 10 ** math.ceil(math.log10(high * 1.0001))
        for step in (5, 2):  # as little empty space as round numbers allow
            self.low = self.low * step if self.low * step <= low else self.low
        for step in (5, 2):
            self.high = self.high / step if self.high / step >= high else self.high
        if self.high <= self.low:
            self.high = self.low * 10
        self.start, self.end = start, end

    def at(self, value):
        value = min(max(value, self.low), self.high)
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self):
        """(value, whether it has a label); all labels if there is room for them."""
        decades = math.log10(self.high / self.low)
        labelled = (1, 2, 5) if decades <= 3 else (1,)
        power = math.floor(math.log10(self.low))
        while 10 ** power <= self.high * 1.0001:
            for digit in (1, 2, 5):
                value = digit * 10 ** power
                if self.low * 0.9999 <= value <= self.high * 1.0001:
                    yield value, digit in labelled
            power += 1


def duration(ms):
    """0.12 ms, 3.4 ms, 1.2 s: three digits at most, as people say it."""
    if ms >= 1000:
        return f"{ms / 1000:.3g} s"
    if ms >= 100:
        return f"{ms:.0f} ms"
    return f"{ms:.2g} ms" if ms < 10 else f"{ms:.3g} ms"
