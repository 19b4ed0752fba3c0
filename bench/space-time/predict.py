#!/usr/bin/env python3
"""The strong scaling of README.md to 1,024 workers, predicted; and how far predictions are off.

    python3 bench/space-time/predict.py PATH_OF_TESSERA [--workers 1024] [--latency 5,500] [--rate 10]
    python3 bench/space-time/predict.py PATH_OF_TESSERA --check

A step is predicted as the timeline of all workers (tessera plan --timeline), which has every kernel,
every message and who waits for whom. Its kernels are those of an ideal device; so it is scaled such
that one worker takes what one worker was measured to take (results.csv), and messages take
--latency and --rate after that. Of space x layers the fastest number of slices is shown, of those
next to the one that was fastest on half as many workers. Writes predicted.csv beside this file.
The programs of 1,024 workers take 12 GB.

--check does the same for all placements that results.csv has measured, each by the one worker of its
own table and machine, and writes checked.csv.
"""

import argparse
import csv
from dataclasses import replace
from pathlib import Path

from cases import NORMS, Case, grid_of, strong_problem, usual_cycles
from plot import newest, read
from program import Program

HERE = Path(__file__).resolve().parent
MOST_SLICES = 64


class Predictor:
    """Scaled to what one worker takes."""

    def __init__(self, program, one, seconds, latency, rate):
        self.program = program
        self.scale = seconds / program.timeline(one, 0, 0)
        self.latency, self.rate = latency, rate

    def seconds(self, case):
        return self.scale * self.program.timeline(case, self.latency / self.scale,
                                                  self.rate * self.scale)


def case_of(row):
    return Case(row["table"], row["way"], row["norm"], row["input"], int(row["layers"]),
                tuple(map(int, filter(None, row["space"].split("x")))), int(row["slices"]),
                row["multigrid"], int(row["width"]))


def one_worker_of(rows, **of):
    return next((row for row in reversed(rows) if row["way"] == "one worker"
                 and all(row[key] == value for key, value in of.items())), None)


def powers_of_two(first, last):
    while first <= last:
        yield first
        first *= 2


def placed(base, image, way, workers, slices):
    grid = grid_of(image, workers // slices)[1]
    multigrid = usual_cycles(base.layers, slices) if slices > 1 else ""
    return replace(base, way=way, space=grid, slices=slices, multigrid=multigrid)


def fastest_ways(predictor, base, image, most_workers):
    """(seconds, case) of each way on 1, 2, 4, ... workers."""
    most, best = min(MOST_SLICES, base.layers // 2), 2
    for workers in powers_of_two(1, most_workers):
        ways = [[placed(base, image, "space", workers, 1)]]
        if 1 < workers <= most:
            ways.append([placed(base, image, "layers", workers, workers)])
        ways.append([placed(base, image, "space x layers", workers, slices)
                     for slices in (best // 2, best, 2 * best)
                     if 2 <= slices <= min(workers // 2, most)])
        for cases in filter(None, ways):
            found = min(((predictor.seconds(case), case) for case in cases), key=lambda one: one[0])
            if found[1].way == "space x layers":
                best = found[1].slices
            yield found


def predictions(program, rows, options):
    for latency in map(float, options.latency.split(",")):
        for norm in options.norms.split(","):
            base, image = strong_problem(options.small, norm)
            one = one_worker_of(rows, table="strong", norm=norm, input=base.size)
            predictor = Predictor(program, base, float(one["seconds"]), latency, options.rate)
            for seconds, case in fastest_ways(predictor, base, image, options.workers):
                yield {"latency": f"{latency:g}", "norm": norm, "way": case.way,
                       "workers": case.workers, "slices": case.slices,
                       "space": "x".join(map(str, case.space)), "seconds": f"{seconds:.5f}"}


def checks(program, rows, options):
    for row in rows:
        one = one_worker_of(rows, machine=row["machine"], table=row["table"], norm=row["norm"])
        if row["way"] == "one worker" or one is None:
            continue
        for latency in map(float, options.latency.split(",")):
            predictor = Predictor(program, case_of(one), float(one["seconds"]), latency,
                                  options.rate)
            yield {**{key: row[key] for key in ("machine", "table", "way", "norm", "workers",
                                                "space", "slices", "multigrid")},
                   "measured": row["seconds"], "latency": f"{latency:g}",
                   "predicted": f"{predictor.seconds(case_of(row)):.4f}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--check", action="store_true", help="against what was measured")
    parser.add_argument("--workers", type=int, default=1024)
    parser.add_argument("--latency", default="5,500", help="microseconds of a message, one or several")
    parser.add_argument("--rate", type=float, default=10, help="GB/s of a message")
    parser.add_argument("--norms", default=",".join(NORMS))
    parser.add_argument("--small", action="store_true", help="a tiny problem, to try the script")
    parser.add_argument("--measured", type=Path, default=HERE / "results.csv")
    parser.add_argument("--results", type=Path, help="predicted.csv or checked.csv beside this file")
    options = parser.parse_args()
    rows = newest(read(options.measured))
    found = (checks if options.check else predictions)(Program(options.program), rows, options)
    writer = None
    with open(options.results or HERE / ("checked.csv" if options.check else "predicted.csv"), "w",
              newline="") as file:
        for row in found:
            if writer is None:
                writer = csv.DictWriter(file, row, lineterminator="\n")
                writer.writeheader()
            writer.writerow(row)
            file.flush()
            print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
