"""What the plots of the benchmarks draw with: SVG without a library."""

import math


class LogAxis:
    """A logarithmic axis from low..high in data to start..end on paper."""

    def __init__(self, low, high, start, end):
        self.low, self.span = math.log(low), math.log(high) - math.log(low)
        self.start, self.end = start, end

    def __call__(self, value):
        return round(self.start + (math.log(value) - self.low) / self.span * (self.end - self.start), 1)


def text(x, y, content, anchor="middle", extra=""):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{extra}>{content}</text>'


def line(x1, y1, x2, y2, style):
    return f'<path d="M{x1} {y1}L{x2} {y2}" {style}/>'
