"""What the fullest worker holds at each image size, and the largest image that fits."""

from program import COMBINED, EIGHT_IMAGES, ONE_IMAGE, STUDY, job, needed

LIMIT = 16 * 10**9
LIMIT_TEXT = "16GB"
STEP = 32  # pixels, of the search
WORKS = (ONE_IMAGE, EIGHT_IMAGES)
PLACEMENTS = STUDY + COMBINED

# Published, on eight devices of 16 GB: the largest image that was trained.
PUBLISHED = {"sequential": 512, "naive": 768, "memory-aware": 1024}


def row(model, work, edge, placement, answer):
    bytes_of_rank = [v + p for v, p in zip(answer["peak_value_bytes"], answer["parameter_bytes"])]
    fullest = bytes_of_rank.index(max(bytes_of_rank))
    return {"model": model, "work": work.name, "batch": work.batch, "placement": placement.name,
            "workers": answer["ranks"], "edge": edge, "fullest_rank": fullest,
            "value_bytes": answer["peak_value_bytes"][fullest],
            "parameter_bytes": answer["parameter_bytes"][fullest],
            "needed_bytes": bytes_of_rank[fullest], "least_needed_bytes": min(bytes_of_rank),
            "all_workers_bytes": sum(bytes_of_rank), "bytes_sent": max(answer["bytes_sent"])}


def predict(tessera, model, edges):
    return [row(model, work, edge, placement, tessera.plan(model, work, edge, placement))
            for work in WORKS for placement in PLACEMENTS for edge in edges]


def largest_edge(tessera, model, work, placement):
    """Bisection, in a bracket that the nearly constant bytes per pixel make narrow. A balance is
    searched anew for every size, so memory may dip: the four sizes after the found one are tried."""
    def fits(units):
        return needed(tessera.plan(model, work, units * STEP, placement)) <= LIMIT

    probe = 1024
    guess = probe * (LIMIT / needed(tessera.plan(model, work, probe, placement))) ** 0.5
    low, high = int(0.95 * guess / STEP), int(1.05 * guess / STEP) + 1
    while not fits(low):
        low, high = low * 9 // 10, low
    while fits(high):
        low, high = high, high * 11 // 10 + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    ahead = 1
    while ahead <= 4:
        low, ahead = (low + ahead, 1) if fits(low + ahead) else (low, ahead + 1)
    return low * STEP


def require_refusal(tessera, model, work, edge, placement):
    """The program must take this size under the limit, and refuse the next; its words."""
    taken = tessera.run("plan", *job(model, work, edge, placement), "--memory", LIMIT_TEXT)
    refused = tessera.run("plan", *job(model, work, edge + STEP, placement), "--memory", LIMIT_TEXT)
    if (taken.returncode, refused.returncode) != (0, 4):
        raise RuntimeError(f"{placement.name}, {edge}: exit {taken.returncode}, {refused.returncode}")
    return refused.stderr.strip()


def largest_images(tessera, model):
    rows = []
    for work in WORKS:
        for placement in PLACEMENTS:
            edge = largest_edge(tessera, model, work, placement)
            found = row(model, work, edge, placement, tessera.plan(model, work, edge, placement))
            found["refusal"] = require_refusal(tessera, model, work, edge, placement)
            rows.append(found)
    return rows


def gigabytes(number):
    return f"{number / 1e9:.2f}"


def memory_table(rows, work):
    edges = sorted({r["edge"] for r in rows})
    lines = ["| image | " + " | ".join(p.name for p in PLACEMENTS) + " |",
             "|---:|" + "---:|" * len(PLACEMENTS)]
    of = {(r["placement"], r["edge"]): r for r in rows if r["work"] == work.name}
    for edge in edges:
        cells = [gigabytes(of[p.name, edge]["needed_bytes"]) for p in PLACEMENTS]
        lines.append(f"| {edge}² | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def fits_table(rows):
    of = {(r["work"], r["placement"]): r for r in rows}
    lines = ["| placement | workers | one image | pixels against one worker | eight micro-batches, 1f1b "
             "| pixels against one worker | published |", "|---|---:|---:|---:|---:|---:|---:|"]
    for placement in PLACEMENTS:
        cells = []
        for work in WORKS:
            edge = of[work.name, placement.name]["edge"]
            gain = (edge / of[work.name, "sequential"]["edge"]) ** 2
            cells.append(f"{edge}² | {gain:.1f}")
        published = f"{PUBLISHED[placement.name]}²" if placement.name in PUBLISHED else ""
        workers = of[ONE_IMAGE.name, placement.name]["workers"]
        lines.append(f"| {placement.name} | {workers} | " + " | ".join(cells) + f" | {published} |")
    return "\n".join(lines)


def markdown(rows, fits):
    return "\n\n".join([f"GB of the fullest worker, batch {work.batch}, {work.name}:\n\n"
                        + memory_table(rows, work) for work in WORKS]
                       + ["Largest image:\n\n" + fits_table(fits)])
