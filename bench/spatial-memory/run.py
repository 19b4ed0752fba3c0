#!/usr/bin/env python3
"""Memory per worker against input size, for the four models of BigConv's figures 2 to 5.

    python3 bench/spatial-memory/run.py            all of it, some minutes
    python3 bench/spatial-memory/run.py --predict  predictions only; measured rows are kept

Writes memory.csv, fits.csv and memory.svg beside this file and prints README's tables. Predictions
come from `tessera plan`, measurements from `tessera bench`: one step with each worker a process of
its own. Every measured point must hold exactly the predicted value and parameter bytes on every
worker, or the script fails.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import time
from dataclasses import dataclass

import fit
import plot

HERE = pathlib.Path(__file__).resolve().parent
WORKERS = [1, 4, 6, 9, 12, 28]
FIELDS = ["model", "input", "edge", "workers", "grid", "kind", "value_bytes", "parameter_bytes",
          "workspace_bytes", "resident_bytes"]


@dataclass
class Model:
    name: str        # of the zoo
    spec: str        # with options
    channels: int
    axes: int
    edges: list      # predicted, pixels along each axis
    measured: list   # (edge, worker counts)
    unit: int        # steps of the search for the largest edge

    def input(self, edge):
        return "x".join(map(str, [1, self.channels] + [edge] * self.axes))


FEW = [1, 4, 6, 9, 12]
MODELS = [
    Model("cnn1d", "cnn1d:base=64,depth=5", 1, 1, [2**k for k in range(16, 29, 2)],
          [(2**16, WORKERS), (2**18, WORKERS), (2**20, [1, 4, 12])], 2**16),
    Model("cnn2d", "cnn2d:base=64,depth=5", 3, 2, [2**k for k in range(8, 16)],
          [(256, WORKERS), (512, WORKERS), (1024, [1, 4, 12])], 32),
    Model("cnn3d", "cnn3d:base=64,depth=5", 1, 3, [32, 64, 128, 256, 512, 1024],
          [(32, FEW), (64, WORKERS), (96, [1, 4])], 8),
    # 1 GiB of parameters and gradients on each worker: 28 do not fit this machine.
    Model("fcn2d", "fcn2d:width=1,classes=21", 3, 2, [2**k for k in range(8, 15)],
          [(128, [1, 4]), (256, [1, 4, 6, 9]), (512, [1])], 32),
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

    def bench(self, model, edge, workers):
        return self.call("bench", model.spec, "--input", model.input(edge), "--workers",
                         str(workers), "--launch", "mpi" if workers > 1 else "threads",
                         "--iterations", "1", "--warmup", "0")


def row(model, edge, workers, kind, answer):
    """The fullest worker's bytes; workspace and resident set are known only where measured."""
    return {"model": model.name, "input": model.input(edge), "edge": edge, "workers": workers,
            "grid": "x".join(map(str, answer["plan"]["space"])) or "1", "kind": kind,
            "value_bytes": max(answer["peak_value_bytes"]),
            "parameter_bytes": max(answer["parameter_bytes"]),
            "workspace_bytes": max(answer.get("workspace_bytes", [""])),
            "resident_bytes": max(answer.get("peak_rss_bytes", [""]))}


def predict(tessera):
    return [row(model, edge, workers, "predicted", tessera.plan(model, edge, workers))
            for model in MODELS
            for edge in sorted(set(model.edges) | {edge for edge, _ in model.measured})
            for workers in WORKERS]


def measure(tessera):
    rows = []
    for model in MODELS:
        for edge, counts in model.measured:
            for workers in counts:
                start = time.monotonic()
                predicted, measured = tessera.plan(model, edge, workers), tessera.bench(model, edge, workers)
                for field in ("plan", "peak_value_bytes", "parameter_bytes"):
                    if predicted[field] != measured[field]:
                        sys.exit(f"{model.spec} {model.input(edge)} on {workers}: {field} measured "
                                 f"{measured[field]}, predicted {predicted[field]}")
                rows.append(row(model, edge, workers, "measured", measured))
                print(f"measured {model.name} {model.input(edge)} on {workers}, as predicted "
                      f"({time.monotonic() - start:.1f} s)", file=sys.stderr)
    return rows


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
    whole = ["edge", "workers", "value_bytes", "parameter_bytes", "workspace_bytes", "resident_bytes"]
    return [{**r, **{name: int(r[name]) for name in whole}} for r in rows]


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
