#!/usr/bin/env python3
"""Layers in parallel, alone and with space: the tables of README.md, measured.

    python3 bench/space-time/run.py PATH_OF_TESSERA --tables layers,weak,strong [--minutes M]
                                    [--workers N] [--steps N] [--small]

Adds rows to results.csv beside this file and prints them. After --minutes no measurement is begun;
the most important come first. One kernel thread a worker; needs nothing but Python.
"""

import argparse
import csv
import datetime
import os
import time
from pathlib import Path

from cases import TABLES
from program import Program

RESULTS = Path(__file__).resolve().parent / "results.csv"
COLUMNS = ["date", "machine", "cores", "table", "way", "norm", "input", "layers", "width",
           "workers", "space", "slices", "multigrid", "seconds", "fullest_bytes", "loss_error",
           "gradient_error"]


def processor():
    """Its name, where Linux says it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")


def measured(program, case, steps):
    seconds, held = program.step(case, steps)
    errors = program.errors(case) if case.table == "layers" and case.multigrid else ("", "")
    return {"date": datetime.date.today().isoformat(), "machine": processor(),
            "cores": len(os.sched_getaffinity(0)), "table": case.table, "way": case.way,
            "norm": case.norm, "input": case.size, "layers": case.layers, "width": case.width,
            "workers": case.workers,
            "space": "x".join(map(str, case.space)), "slices": case.slices,
            "multigrid": case.multigrid, "seconds": f"{seconds:.4f}", "fullest_bytes": held,
            "loss_error": errors[0], "gradient_error": errors[1]}


def append(row, path):
    is_new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--tables", default="layers,weak,strong")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--steps", type=int, default=3, help="that a median is of")
    parser.add_argument("--small", action="store_true", help="tiny networks, to try the script")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    program = Program(options.program)
    end = time.monotonic() + 60 * options.minutes
    left_out = 0
    for table in options.tables.split(","):
        steps = 1 if table == "strong" else options.steps
        for case in TABLES[table](options.workers, options.small):
            if time.monotonic() > end:
                left_out += 1
                continue
            row = measured(program, case, steps)
            append(row, options.results)
            print(" ".join(str(row[key]) for key in COLUMNS[3:]), flush=True)
    if left_out:
        print(f"{left_out} measurements were left out: no time")


if __name__ == "__main__":
    main()
