"""memory.svg: what the fullest worker holds against the image's edge, a panel for each placement."""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from svg import LogAxis, line, text  # noqa: E402

WIDTH, HEIGHT = 330, 320                      # of a panel
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 40, 44     # inside it
HEADER = 40
LIMIT = 16e9
STYLES = {1: ("#2166ac", 7), 4: ("#e08214", 4.5), 7: ("#1b1b1b", 2)}  # colour, width: lines coincide


def frame(title, x, y, edges, low, high):
    """Grid, ticks and the line of 16 GB."""
    out = [text((x.start + x.end) / 2, TOP - 12, title, extra=' font-weight="bold"')]
    decade = 10 ** math.ceil(math.log10(low))
    while decade <= high:
        out.append(line(x.start, y(decade), x.end, y(decade), 'stroke="#dddddd"'))
        name = f"{decade / 1e9:g} GB" if decade >= 1e8 else f"{decade / 1e6:g} MB"
        out.append(text(x.start - 6, y(decade) + 4, name, "end"))
        decade *= 10
    for edge in edges:
        out.append(line(x(edge), y.start, x(edge), y.start + 4, 'stroke="#555"'))
        if edge != 768:  # too near to its neighbours
            out.append(text(x(edge), y.start + 16, edge))
    out.append(text((x.start + x.end) / 2, y.start + 34, "edge of the images in pixels"))
    out.append(line(x.start, y(LIMIT), x.end, y(LIMIT), 'stroke="#b2182b" stroke-dasharray="5 4"'))
    out.append(text(x.start + 4, y(LIMIT) - 5, "16 GB", "start", ' fill="#b2182b"'))
    out.append(f'<path d="M{x.start} {y.end}V{y.start}H{x.end}" fill="none" stroke="#555"/>')
    return out


def curve(rows, x, y, targets):
    colour, width = STYLES[targets]
    points = "L".join(f"{x(r['edge'])} {y(r['fullest_bytes'])}"
                      for r in sorted(rows, key=lambda r: r["edge"]))
    return f'<path d="M{points}" fill="none" stroke="{colour}" stroke-width="{width}"/>'


def panel(name, rows, edges, low, high):
    x = LogAxis(edges[0], edges[-1], LEFT, WIDTH - RIGHT)
    y = LogAxis(low, high, HEIGHT - BOTTOM, TOP)
    out = frame(name, x, y, edges, low, high)
    for targets in STYLES:
        out.append(curve([r for r in rows if r["targets"] == targets], x, y, targets))
    return out


def legend():
    out, x = [], LEFT
    for targets, (colour, width) in STYLES.items():
        out.append(line(x, 20, x + 30, 20, f'stroke="{colour}" stroke-width="{width}"'))
        out.append(text(x + 38, 24, f"{targets} target{'s' if targets > 1 else ''}", "start"))
        x += 130
    return out


def to_svg(rows):
    """`rows`: those of memory.csv."""
    names = list(dict.fromkeys(r["placement"] for r in rows))
    edges = sorted({r["edge"] for r in rows})
    low, high = min(r["fullest_bytes"] for r in rows), max(r["fullest_bytes"] for r in rows) * 1.2
    width, height = 2 * WIDTH, HEADER + HEIGHT * ((len(names) + 1) // 2)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           f'width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
           f'<rect width="{width}" height="{height}" fill="white"/>', *legend()]
    for i, name in enumerate(names):
        out.append(f'<g transform="translate({i % 2 * WIDTH} {HEADER + i // 2 * HEIGHT})">')
        out += panel(name, [r for r in rows if r["placement"] == name], edges, low, high)
        out.append("</g>")
    return "\n".join([*out, "</svg>"]) + "\n"
