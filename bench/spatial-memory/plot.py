"""memory.svg: one panel per model, log axes, one line per number of workers."""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from svg import LogAxis, line, text  # noqa: E402

WIDTH, HEIGHT = 470, 340                     # of a panel
LEFT, RIGHT, TOP, BOTTOM = 66, 44, 34, 46    # inside it
HEADER = 62
COLOURS = ["#1b1b1b", "#b2182b", "#e08214", "#5aae61", "#2166ac", "#762a83"]
LIMIT = 16e9
TITLES = {"cnn1d": "1-D classifier (cnn1d)", "cnn2d": "2-D classifier (cnn2d)",
          "cnn3d": "3-D classifier (cnn3d)", "fcn2d": "FCN-8s on VGG16 (fcn2d)"}


def held(row):
    return row["value_bytes"] + row["parameter_bytes"]


def bytes_text(value):
    for unit, scale in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if value >= scale:
            return f"{value / scale:g} {unit}"
    return f"{value / 1e3:g} kB"


def edge_text(value):
    for unit, scale in (("Mi", 2**20), ("Ki", 2**10)):
        if value >= scale:
            return f"{value / scale:g} {unit}"
    return str(value)


def frame(name, x, y, edges, low, high):
    """Grid, ticks and the 16 GB line."""
    out = [text(WIDTH // 2, 20, TITLES[name], extra=' font-weight="bold"')]
    decade = 10 ** math.ceil(math.log10(low))
    while decade <= high:
        out.append(line(x.start, y(decade), x.end, y(decade), 'stroke="#dddddd"'))
        out.append(text(x.start - 6, y(decade) + 4, bytes_text(decade), "end"))
        decade *= 10
    for edge in edges:
        out.append(line(x(edge), y.start, x(edge), y.start + 4, 'stroke="#555"'))
        out.append(text(x(edge), y.start + 17, edge_text(edge)))
    out.append(line(x.start, y(LIMIT), x.end, y(LIMIT), 'stroke="#888" stroke-dasharray="5 4"'))
    out.append(text(x.start + 4, y(LIMIT) - 4, "16 GB", "start", ' fill="#666"'))
    out.append(line(x.start, y.start, x.end, y.start, 'stroke="#555"'))
    axis = "samples" if name == "cnn1d" else "pixels along each axis"
    out.append(text((x.start + x.end) // 2, y.start + 36, axis))
    return out


def spread(places, gap):
    """Label heights, moved apart where they would overlap; keys sorted by height."""
    placed, last = {}, -1e9
    for key, height in sorted(places.items(), key=lambda item: item[1]):
        last = placed[key] = max(height, last + gap)
    return placed


def panel(name, workers, rows):
    predicted = [r for r in rows if r["model"] == name and r["kind"] == "predicted"]
    measured = [r for r in rows if r["model"] == name and r["kind"] == "measured"]
    edges = sorted({r["edge"] for r in predicted})
    ticks = [e for e in edges if e & (e - 1) == 0]
    sizes = [held(r) for r in predicted] + [r["resident_bytes"] for r in measured if r["resident_bytes"]]
    low, high = min(sizes) / 1.5, max(sizes) * 1.5
    x = LogAxis(edges[0], edges[-1], LEFT, WIDTH - RIGHT)
    y = LogAxis(low, high, HEIGHT - BOTTOM, TOP)
    out = frame(name, x, y, ticks, low, high)
    ends = {}
    for count, colour in zip(workers, COLOURS):
        points = sorted((r["edge"], held(r)) for r in predicted if r["workers"] == count)
        path = "L".join(f"{x(e)} {y(b)}" for e, b in points)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        ends[count] = y(points[-1][1])
        for r in (r for r in measured if r["workers"] == count):
            out.append(f'<circle cx="{x(r["edge"])}" cy="{y(held(r))}" r="3.4" fill="{colour}"/>')
            if r["resident_bytes"]:
                out.append(f'<circle cx="{x(r["edge"])}" cy="{y(r["resident_bytes"])}" r="3.2" '
                           f'fill="none" stroke="{colour}"/>')
    for count, height in spread(ends, 12).items():
        colour = COLOURS[workers.index(count)]
        out.append(text(WIDTH - RIGHT + 5, round(height + 4, 1), count, "start", f' fill="{colour}"'))
    return out


def memory_plot(names, workers, rows):
    height = HEADER + 2 * HEIGHT
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {height}" '
           'font-family="sans-serif" font-size="11.5" fill="#222">',
           f'<rect width="{2 * WIDTH}" height="{height}" fill="white"/>',
           text(WIDTH, 24, "Memory of the fullest worker against input size, batch 1, float32",
                extra=' font-size="16" font-weight="bold"'),
           text(WIDTH, 46, "line: values + parameters + gradients, predicted (at its end: workers)    "
                "● the same, measured    ○ resident set, measured")]
    for index, name in enumerate(names):
        out.append(f'<g transform="translate({index % 2 * WIDTH} {HEADER + index // 2 * HEIGHT})">')
        out += panel(name, workers, rows) + ["</g>"]
    return "\n".join(out + ["</svg>", ""])
