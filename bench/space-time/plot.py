#!/usr/bin/env python3
"""The pictures of README.md: results.csv and predicted.csv as layers.svg, weak.svg and strong.svg.

    python3 bench/space-time/plot.py

Of rows that say the same of another day, the last is drawn.
"""

import csv
import math
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 380, 70, 226, 40, 46
COLOURS = {"space": "#2166ac", "layers": "#b2182b", "space x layers": "#5aae61"}


def read(path):
    path = HERE / path
    if not path.exists():
        return []
    with open(path) as file:
        return list(csv.DictReader(file))


def newest(rows):
    """Keyed by all that a row says of what was run."""
    keys = ("machine", "table", "way", "norm", "input", "layers", "width", "workers", "space", "multigrid")
    return list({tuple(row[key] for key in keys): row for row in rows}.values())


def text(x, y, content, anchor="middle", extra=""):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{extra}>{content}</text>'


class Axis:
    """Logarithmic, from low..high to start..end on paper."""

    def __init__(self, values, start, end, base):
        self.base, self.start, self.end = base, start, end
        logs = [math.log(value, base) for value in values]
        self.low, self.high = math.floor(min(logs) + 1e-9), math.ceil(max(logs) - 1e-9)
        self.high = max(self.high, self.low + 1)

    def __call__(self, value):
        share = (math.log(value, self.base) - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self):
        return [self.base ** power for power in range(self.low, self.high + 1)]


def label(value, unit):
    if unit == "s" and value < 1:
        return f"{1e3 * value:.3g} ms"
    return f"{value:g}{' ' * bool(unit)}{unit}"


def frame(title, x, y, x_label, unit):
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="11.5" fill="#222">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           text(LEFT, 20, title, "start", ' font-size="14" font-weight="bold"')]
    for tick in y.ticks():
        out.append(f'<path d="M{x.start} {y(tick)}H{x.end}" stroke="#dddddd"/>')
        out.append(text(x.start - 6, y(tick) + 4, label(tick, unit), "end"))
    for tick in x.ticks():
        out.append(f'<path d="M{x(tick)} {y.start}v4" stroke="#555"/>')
        out.append(text(x(tick), y.start + 17, f"{tick:g}"))
    out.append(f'<path d="M{x.start} {y.start}H{x.end}" stroke="#555"/>')
    out.append(text((x.start + x.end) / 2, HEIGHT - 8, x_label))
    return out


def chart(title, x_label, lines, x_base, y_base, unit="s"):
    """Lines: (name, colour, dash, points); a dashed one has no dots, and dots alone no line."""
    points = [point for line in lines for point in line[3]]
    x = Axis([p[0] for p in points], LEFT, WIDTH - RIGHT, x_base)
    y = Axis([p[1] for p in points], HEIGHT - BOTTOM, TOP, y_base)
    out = frame(title, x, y, x_label, unit)
    for number, (name, colour, dash, line) in enumerate(lines):
        style = f'stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"'
        if dash != "dots":
            path = "L".join(f"{x(a)} {y(b)}" for a, b in sorted(line))
            out.append(f'<path d="M{path}" fill="none" {style}/>')
        if dash in ("dots", "none"):
            out += [f'<circle cx="{x(a)}" cy="{y(b)}" r="3.2" fill="{colour}"/>' for a, b in line]
        height = TOP + 20 * number + 8
        out.append(f'<path d="M{WIDTH - RIGHT + 12} {height}h26" {style}/>')
        out.append(text(WIDTH - RIGHT + 44, height + 4, name, "start"))
    return "\n".join(out + ["</svg>", ""])


def scaling_lines(rows, name, dash):
    """A line for each way, which begins at one worker."""
    one = [(1, float(r["seconds"])) for r in rows if int(r["workers"]) == 1]
    for way in ("space", "layers", "space x layers"):
        line = [(int(r["workers"]), float(r["seconds"])) for r in rows
                if r["way"] == way and int(r["workers"]) > 1]
        if line:
            yield f"{way}{name}", COLOURS[way], dash, one[-1:] + line


def layers_plot(rows):
    """Speed-up against the gradient's error: a point a row, a line for each number of slices."""
    one = [float(r["seconds"]) for r in rows if r["way"] == "one worker"]
    serial = sum(one) / len(one)
    shades = ["#b2182b", "#e08214", "#5aae61", "#2166ac"]
    lines = []
    for slices in sorted({int(r["slices"]) for r in rows if r["multigrid"]}, reverse=True):
        line = [(max(float(r["gradient_error"]), 1e-8), serial / float(r["seconds"]))
                for r in rows if r["multigrid"] and int(r["slices"]) == slices]
        lines.append((f"{slices} workers", shades[len(lines) % 4], "dots", line))
    return chart("Times as fast as one worker, 256 layers", "error of the gradient", lines, 10, 2, "")


def main():
    rows = newest(read("results.csv"))
    of = {table: [r for r in rows if r["table"] == table] for table in ("layers", "weak", "strong")}
    if of["layers"]:
        (HERE / "layers.svg").write_text(layers_plot(of["layers"]))
    if of["weak"]:
        lines = []
        for norm, name, dash in (("none", "", "none"), ("batch", ", batch norm", "5 4")):
            lines += scaling_lines([r for r in of["weak"] if r["norm"] == norm], name, dash)
        (HERE / "weak.svg").write_text(chart("A step, 16³ pixels and 8 layers a worker",
                                             "workers", lines, 2, 2))
    if of["strong"] or read("predicted.csv"):
        plain = [r for r in of["strong"] if r["norm"] == "none" and int(r["workers"]) > 1]
        lines = [(way, COLOURS[way], "dots", [(int(r["workers"]), float(r["seconds"]))
                                              for r in plain if r["way"] == way])
                 for way in COLOURS if any(r["way"] == way for r in plain)]
        for latency, dash in (("5", "5 4"), ("500", "1.5 3")):
            lines += scaling_lines([r for r in read("predicted.csv")
                                    if r["norm"] == "none" and r["latency"] == latency],
                                   f", {latency} µs", dash)
        (HERE / "strong.svg").write_text(chart("A step, 128³ pixels and 128 layers",
                                               "workers", lines, 2, 10))


if __name__ == "__main__":
    main()
