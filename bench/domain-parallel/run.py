#!/usr/bin/env python3
"""What each worker holds when domains have workers of their own: figure 7 of the study as tables.

    python3 bench/domain-parallel/run.py [--program build/tessera]
    python3 bench/domain-parallel/run.py --measure     # busy shares of two workers on two cores

Predicted by `tessera plan`, which runs nothing. Writes memory.csv, fits.csv and memory.svg beside
this file and prints the tables of README.md.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import plot

HERE = os.path.dirname(os.path.abspath(__file__))
EDGES = (64, 128, 256, 512, 768, 1024, 2048)
TARGETS = (1, 4, 7)
LIMIT = 16 * 10**9
STEP = 32  # pixels, of the search for the largest image
FLATNESS = 0.03
MEASURED_EDGES = (128, 256)
REPEATS = 7


@dataclass(frozen=True)
class Placement:
    name: str
    targets: int
    arguments: tuple


def placements():
    one = [Placement("one worker", targets, ()) for targets in TARGETS]
    domain = [Placement("a worker a domain", targets, ("--domains", "1")) for targets in TARGETS]
    encoder = [Placement("a worker an encoder", targets, ("--domains", "2")) for targets in TARGETS]
    grid = [Placement("2x2 workers a domain", targets, ("--domains", "1", "--space", "2x2"))
            for targets in TARGETS]
    return one + domain + encoder + grid


def shares(durations, step):
    """`durations`: of workers, with their number."""
    busy = {}
    for worker, duration in durations:
        busy[worker] = busy.get(worker, 0) + duration
    return [busy[worker] / step for worker in sorted(busy)]


class Program:
    def __init__(self, path, base, depth):
        self.path = path
        self.base = base
        self.depth = depth
        self.plans = {}

    def job(self, placement, edge):
        model = f"dsn_unet2d:base={self.base},depth={self.depth},targets={placement.targets}"
        return [model, "--input", f"2x1x{edge}x{edge}", *placement.arguments]

    def call(self, *arguments):
        done = subprocess.run([self.path, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"tessera {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout)

    def plan(self, placement, edge):
        key = (placement, edge)
        if key not in self.plans:
            self.plans[key] = self.call("plan", *self.job(placement, edge), "--json")
        return self.plans[key]

    def held(self, placement, edge):
        """Bytes of each worker: the arena of its values, parameters and their gradients."""
        answer = self.plan(placement, edge)
        return [a + p for a, p in zip(answer["arena_bytes"], answer["parameter_bytes"])]

    def trace(self, *arguments):
        """The events of a step, and how long it takes."""
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            self.call(*arguments, "--trace", trace, "--json")
            with open(trace) as file:
                events = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
        return events, max(e["ts"] + e["dur"] for e in events) - min(e["ts"] for e in events)

    def busy(self, placement, edge):
        """Per worker, the part of a predicted step in which it computes."""
        events, step = self.trace("plan", *self.job(placement, edge))
        # Waits lie inside tasks.
        signs = {"wait": -1}
        return shares([(e["tid"], signs.get(e["cat"], 1) * e["dur"]) for e in events], step)

    def measured(self, placement, edge):
        """Per worker, the part of a real step that passes in kernels."""
        job = self.job(placement, edge)
        events, step = self.trace("bench", *job, "--iterations", "3")
        return shares([(e["tid"], e["dur"]) for e in events if e["cat"] == "kernel"], step)


def largest_edge(program, placement):
    low, high = 1, 2
    while max(program.held(placement, high * STEP)) <= LIMIT:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = max(program.held(placement, middle * STEP)) <= LIMIT
        low, high = (middle, high) if fits else (low, middle)
    return low * STEP


def row(program, placement, edge):
    held = program.held(placement, edge)
    return {"placement": placement.name, "targets": placement.targets, "workers": len(held),
            "edge": edge, "fullest_bytes": max(held), "least_bytes": min(held),
            "bytes_sent": max(program.plan(placement, edge)["bytes_sent"])}


def write_csv(name, rows):
    with open(os.path.join(HERE, name), "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def memory_table(rows):
    names = list(dict.fromkeys((r["placement"], r["targets"]) for r in rows))
    of = {(r["placement"], r["targets"], r["edge"]): r["fullest_bytes"] for r in rows}
    lines = ["| placement | targets | " + " | ".join(f"{edge}²" for edge in EDGES) + " |",
             "|---|---:|" + "---:|" * len(EDGES)]
    for name, targets in names:
        cells = [f"{of[name, targets, edge] / 1e9:.3f}" for edge in EDGES]
        lines.append(f"| {name} | {targets} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def flatness(rows):
    """How much more the fullest worker holds with 7 targets than with 1, at its worst size."""
    of = {(r["placement"], r["targets"], r["edge"]): r["fullest_bytes"] for r in rows}
    names = dict.fromkeys(r["placement"] for r in rows)
    return {name: max(of[name, TARGETS[-1], e] / of[name, TARGETS[0], e] - 1 for e in EDGES)
            for name in names}


def busy_table(program, edge):
    lines = ["| placement | targets | least | mean | most |", "|---|---:|---:|---:|---:|"]
    for placement in placements():
        if not placement.arguments:
            continue
        busy = program.busy(placement, edge)
        cells = [f"{100 * part:.0f}%" for part in (min(busy), sum(busy) / len(busy), max(busy))]
        lines.append(f"| {placement.name} | {placement.targets} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def fits_table(rows):
    lines = ["| placement | targets | workers | largest image | the study |", "|---|---:|---:|---:|---:|"]
    for r in rows:
        study = "768²" if r["placement"] == "one worker" else ""
        lines.append(f"| {r['placement']} | {r['targets']} | {r['workers']} | {r['edge']}² | {study} |")
    return "\n".join(lines)


def measured_table(program):
    """Two workers: the source's and the target's, on a core each."""
    placement = Placement("a worker a domain", 1, ("--domains", "1"))
    lines = [f"| image | worker | predicted | measured | least to most of {REPEATS} |",
             "|---|---|---:|---:|---|"]
    for edge in MEASURED_EDGES:
        predicted = program.busy(placement, edge)
        repeated = list(zip(*[program.measured(placement, edge) for _ in range(REPEATS)]))
        for name, share, measured in zip(("source", "target1"), predicted, repeated):
            figures = share, statistics.median(measured), min(measured), max(measured)
            cells = [f"{100 * x:.0f}%" for x in figures]
            lines.append(f"| {edge}² | {name} | {cells[0]} | {cells[1]} | {cells[2]} to {cells[3]} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default="build/tessera")
    parser.add_argument("--base", type=int, default=32)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--measure", action="store_true", help="run steps, and predict nothing else")
    options = parser.parse_args()
    program = Program(options.program, options.base, options.depth)
    if options.measure:
        return print(measured_table(program))
    rows = [row(program, placement, edge) for placement in placements() for edge in EDGES]
    write_csv("memory.csv", rows)
    with open(os.path.join(HERE, "memory.svg"), "w") as file:
        file.write(plot.to_svg(rows))
    print("GB of the fullest worker:\n\n" + memory_table(rows) + "\n")
    for name, more in flatness(rows).items():
        print(f"{name}: {100 * more:+.1f}% from {TARGETS[0]} to {TARGETS[-1]} targets at most")
        if name != "one worker" and more > FLATNESS:
            sys.exit(f"{name} is not flat within {100 * FLATNESS:.0f}%")
    print("\nBusy part of a predicted step at 512², over the workers:\n\n" + busy_table(program, 512))
    fits = [row(program, placement, largest_edge(program, placement)) for placement in placements()]
    write_csv("fits.csv", fits)
    print("\nLargest image in 16 GB per worker, batch 2:\n\n" + fits_table(fits))


if __name__ == "__main__":
    main()
