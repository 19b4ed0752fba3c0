"""The largest input whose values and parameters fit a worker, beside what BigConv reports."""

LIMIT = 16 * 10**9
WORKERS = [1, 4, 5, 6, 9, 10, 12, 28]
FIELDS = ["model", "workers", "edge", "input", "grid", "value_bytes", "parameter_bytes"]

# Published, on GPUs of 16 GB: pixels along each axis by number of GPUs.
BIGCONV = {
    "cnn1d": {1: 8_000_000, 6: 16_000_000},
    "cnn2d": {1: 2200, 5: 4000, 10: 6000},
    "cnn3d": {1: 170, 9: 300, 28: 400},
    "fcn2d": {1: 1500, 10: 4500},
}


def needed(answer):
    return max(v + p for v, p in zip(answer["peak_value_bytes"], answer["parameter_bytes"]))


def largest_edge(tessera, model, workers):
    """The largest multiple of model.unit that fits: bisection, in a bracket that the nearly constant
    bytes per pixel make narrow from the start."""
    probe = model.edges[len(model.edges) // 2]
    answer = tessera.plan(model, probe, workers)
    room = LIMIT - max(answer["parameter_bytes"])
    guess = probe * (room / max(answer["peak_value_bytes"])) ** (1 / model.axes)

    def fits(units):
        return needed(tessera.plan(model, units * model.unit, workers)) <= LIMIT

    low = max(1, int(0.98 * guess / model.unit))
    high = int(1.02 * guess / model.unit) + 1
    while not fits(low):
        low, high = low * 9 // 10, low
    while fits(high):
        low, high = high, high * 11 // 10 + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low * model.unit


def largest_inputs(tessera, models):
    rows = []
    for model in models:
        for workers in WORKERS:
            edge = largest_edge(tessera, model, workers)
            answer = tessera.plan(model, edge, workers)
            rows.append({"model": model.name, "workers": workers, "edge": edge,
                         "input": model.input(edge), "grid": "x".join(map(str, answer["plan"]["space"])),
                         "value_bytes": max(answer["peak_value_bytes"]),
                         "parameter_bytes": max(answer["parameter_bytes"])})
    return rows


def size_text(edge, axes):
    return f"{edge / 1e6:.1f} M" if axes == 1 else f"{edge}{'²³'[axes - 2]}"


def markdown(models, rows):
    edge = {(r["model"], r["workers"]): r["edge"] for r in rows}
    lines = ["| workers | " + " | ".join(m.name for m in models) + " |", "|---:|" + "---:|" * len(models)]
    for workers in WORKERS:
        cells = [size_text(edge[m.name, workers], m.axes) for m in models]
        lines.append(f"| {workers} | " + " | ".join(cells) + " |")
    lines += ["",
              "| model | workers | BigConv | pixels against one GPU | Tessera | pixels against one worker |",
              "|---|---:|---:|---:|---:|---:|"]
    for model in models:
        published = BIGCONV[model.name]
        for workers, theirs in published.items():
            ours = edge[model.name, workers]
            gain = (theirs / published[1]) ** model.axes
            our_gain = (ours / edge[model.name, 1]) ** model.axes
            lines.append(f"| {model.name} | {workers} | {size_text(theirs, model.axes)} | {gain:.1f} | "
                         f"{size_text(ours, model.axes)} | {our_gain:.1f} |")
    return "\n".join(lines)
