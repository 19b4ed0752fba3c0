#!/usr/bin/env python3
"""Memory per worker against input size, for the four models of BigConv's figures 2 to 5.

    python3 bench/spatial-memory/run.py            all of it, some minutes
    python3 bench/spatial-memory/run.py --predict  predictions only; measured rows are kept

Writes memory.csv, fits.csv and memory.svg beside this file and prints README's tables. Predictions
come from `tessera plan`, measurements from one step of `tessera bench`. Every measured point must hold
exactly the predicted value and parameter bytes on every worker, or the script fails.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import time
from dataclasses import dataclass

sys.dont_write_bytecode = True  # before our own modules: leave no cache in the working tree
import fit
import plot

HERE = pathlib.Path(__file__).resolve().parent
WORKERS = [1, 4, 6, 9, 12, 28]
FIELDS = ["model", "input", "edge", "workers", "grid", "kind", "launch", "value_bytes", "parameter_bytes",
          "workspace_bytes", "resident_bytes"]


@dataclass
class Model:
    name: str        # of the zoo
    spec: str        # with options
    channels: int
    axes: int
    edges: list      # predicted, pixels along each axis
    processes: dict  # measured: worker counts by edge, each worker a process with its resident set
    threads: dict    # measured: the same as threads of one process, which starts in less time
    unit: int        # steps of the search for the largest edge

    def input(self, edge):
        return "x".join(map(str, [1, self.channels] + [edge] * self.axes))


MODELS = [
    Model("cnn1d", "cnn1d:base=64,depth=5", 1, 1, [2**k for k in range(16, 29, 2)],
          {2**16: [1, 4, 6, 9, 12], 2**18: [1], 2**20: [1]}, {2**16: [28], 2**18: [4, 12]}, 2**16),
    Model("cnn2d", "cnn2d:base=64,depth=5", 3, 2, [2**k for k in range(8, 16)],
          {256: [1, 4, 6, 9, 12, 28], 512: [1], 1024: [1]}, {512: [4, 12, 28]}, 32),
    Model("cnn3d", "cnn3d:base=64,depth=5", 1, 3, [32, 64, 128, 256, 512, 1024],
          {32: [1, 4, 6], 64: [1]}, {64: [4, 9, 12, 28]}, 8),
    # Each worker holds 1 GiB of parameters and gradients, and its kernels as much again and more.
    Model("fcn2d", "fcn2d:width=1,classes=21", 3, 2, [2**k for k in range(7, 15)],
          {128: [1, 4], 256: [1], 512: [1]}, {}, 32),
]


class Tessera:
    """The program, with an answer kept for each question asked before."""

    def __init__(self, path):
        self.path = path
        self.plans = {}

    def call(self, *arguments):
        done = subprocess.run([self.path, *arguments, "--json"], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"tessera {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout)

    def plan(self, model, edge, workers):
        key = (model.name, edge, workers)
        if key not in self.plans:
            self.plans[key] = self.call("plan", model.spec, "--input", model.input(edge),
                                        "--workers", str(workers))
        return self.plans[key]

    def bench(self, model, edge, workers, launch):
        return self.call("bench", model.spec, "--input", model.input(edge), "--workers", str(workers),
                         "--launch", launch, "--iterations", "1", "--warmup", "0")


def row(model, edge, workers, launch, answer):
    """The fullest worker's bytes; workspace and resident set are known only where measured."""
    resident = answer["peak_rss_bytes"] if launch == "mpi" else [""]
    return {"model": model.name, "input": model.input(edge), "edge": edge, "workers": workers,
            "grid": "x".join(map(str, answer["plan"]["space"])),
            "kind": "measured" if launch else "predicted", "launch": launch,
            "value_bytes": max(answer["peak_value_bytes"]),
            "parameter_bytes": max(answer["parameter_bytes"]),
            "workspace_bytes": max(answer.get("workspace_bytes", [""])),
            "resident_bytes": max(resident)}


def predict(tessera):
    return [row(model, edge, workers, "", tessera.plan(model, edge, workers))
            for model in MODELS
            for edge in sorted({*model.edges, *model.processes, *model.threads})
            for workers in WORKERS]


def measure_point(tessera, model, edge, workers, launch):
    start = time.monotonic()
    predicted = tessera.plan(model, edge, workers)
    measured = tessera.bench(model, edge, workers, launch)
    for field in ("plan", "peak_value_bytes", "parameter_bytes"):
        if predicted[field] != measured[field]:
            sys.exit(f"{model.spec} {model.input(edge)} on {workers}: {field} measured "
                     f"{measured[field]}, predicted {predicted[field]}")
    print(f"measured {model.name} {model.input(edge)} on {workers} ({launch}), as predicted: "
          f"{time.monotonic() - start:.1f} s", file=sys.stderr)
    return row(model, edge, workers, launch, measured)


def measure(tessera):
    return [measure_point(tessera, model, edge, workers, launch)
            for model in MODELS
            for launch, points in (("mpi", model.processes), ("threads", model.threads))
            for edge, counts in points.items()
            for workers in counts]


def write_csv(path, fields, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def kept_measurements(path):
    if not path.exists():
        return []
    with open(path, newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["kind"] == "measured"]
    return [{name: int(text) if text.isdigit() else text for name, text in r.items()} for r in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tessera", default=str(HERE.parents[1] / "build" / "tessera"))
    parser.add_argument("--predict", action="store_true", help="do not measure again")
    options = parser.parse_args()
    tessera = Tessera(options.tessera)

    measured = kept_measurements(HERE / "memory.csv") if options.predict else measure(tessera)
    rows = predict(tessera) + measured
    write_csv(HERE / "memory.csv", FIELDS, rows)
    (HERE / "memory.svg").write_text(plot.memory_plot([m.name for m in MODELS], WORKERS, rows))
    fits = fit.largest_inputs(tessera, MODELS)
    write_csv(HERE / "fits.csv", fit.FIELDS, fits)
    print(fit.markdown(MODELS, fits))


if __name__ == "__main__":
    main()
