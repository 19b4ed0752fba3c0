#!/usr/bin/env python3
"""The strong scaling of README.md to 1,024 workers, predicted.

    python3 bench/space-time/predict.py PATH_OF_TESSERA --one-worker SECONDS [--workers 1024]

SECONDS is what a step takes one worker (run.py, the row "one worker"). A step is predicted as

    timeline x (SECONDS / the timeline of one worker)  +  messages x latency  +  bytes / rate

The timeline is that of `tessera plan` for the slices of layers on one part of the image: in space all
parts work alike. Messages and bytes are those of the worker that sends most, as `plan` counts them
for all workers; nothing of them is taken to be hidden. Writes predicted.csv beside this file.
"""

import argparse
import csv
from dataclasses import replace
from pathlib import Path

from cases import grid_of, sized, strong_problem, usual_cycles
from program import Program

MOST_SLICES = 64  # whose timeline is drawn
COLUMNS = ["way", "workers", "slices", "space", "seconds", "timeline", "messages", "bytes_sent"]


def placed(base, image, workers, slices):
    grid = grid_of(image, workers // slices)[1]
    multigrid = usual_cycles(base.layers, slices) if slices > 1 else ""
    return replace(base, space=grid, slices=slices, multigrid=multigrid)


def predicted(program, case, image, scale, options):
    part = grid_of(image, case.workers // case.slices)[0]
    seconds = scale * program.timeline(replace(case, size=sized(part), space=()))
    messages, sent = program.traffic(case)
    total = seconds + messages * options.latency * 1e-6 + sent / (options.rate * 1e9)
    return {"workers": case.workers, "slices": case.slices, "space": "x".join(map(str, case.space)),
            "seconds": f"{total:.5f}", "timeline": f"{seconds:.5f}", "messages": messages,
            "bytes_sent": sent}


def powers_of_two(first, last):
    while first <= last:
        yield first
        first *= 2


def rows_for(program, base, image, workers, scale, options):
    """Space only, layers only, and the fastest of those that have both."""
    def row(way, slices):
        case = placed(base, image, workers, slices)
        return {"way": way, **predicted(program, case, image, scale, options)}

    yield row("space", 1)
    most = min(MOST_SLICES, base.layers // 2)
    if 1 < workers <= most:
        yield row("layers", workers)
    both = [row("space x layers", slices)
            for slices in powers_of_two(2, min(workers // 2, most))]
    if both:
        yield min(both, key=lambda found: float(found["seconds"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--one-worker", type=float, required=True, metavar="SECONDS")
    parser.add_argument("--workers", type=int, default=1024)
    parser.add_argument("--latency", type=float, default=5, help="microseconds of a message")
    parser.add_argument("--rate", type=float, default=10, help="GB/s of a worker")
    parser.add_argument("--small", action="store_true", help="a tiny problem, to try the script")
    parser.add_argument("--results", type=Path,
                        default=Path(__file__).resolve().parent / "predicted.csv")
    options = parser.parse_args()
    program = Program(options.program)
    base, image = strong_problem(options.small)
    scale = options.one_worker / program.timeline(replace(base, size=sized(image)))
    with open(options.results, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for workers in powers_of_two(1, options.workers):
            for row in rows_for(program, base, image, workers, scale, options):
                writer.writerow(row)
                print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
