"""The program under test, and what both halves of the study share: placements and CSV files."""

import csv
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Placement:
    name: str         # as tables call it
    arguments: tuple  # of the command line


@dataclass(frozen=True)
class Work:
    """What one step computes, and in which order."""

    name: str
    batch: int
    arguments: tuple

    def input(self, edge):
        return f"{self.batch}x3x{edge}x{edge}"


ONE_IMAGE = Work("one image", 1, ("--pipeline-schedule", "sequential"))
EIGHT_IMAGES = Work("eight micro-batches", 8,
                    ("--micro-batches", "8", "--pipeline-schedule", "1f1b", "--norm", "micro-batch"))

# The study's three, all others of eight workers are ours.
STUDY = (Placement("sequential", ()),
         Placement("naive", ("--stages", "8", "--balance", "layers")),
         Placement("memory-aware", ("--stages", "8", "--balance", "memory")))
COMBINED = (Placement("4 stages of 2x1", ("--stages", "4", "--space", "2x1", "--balance", "memory")),
            Placement("2 stages of 2x2", ("--stages", "2", "--space", "2x2", "--balance", "memory")),
            Placement("space 4x2", ("--space", "4x2")))


class Tessera:
    """Plans are kept: the search for what fits comes by some of them again."""

    def __init__(self, path):
        self.path = path
        self.plans = {}

    def run(self, *arguments):
        return subprocess.run([self.path, *arguments], capture_output=True, text=True)

    def call(self, *arguments):
        done = self.run(*arguments, "--json")
        if done.returncode != 0:
            raise RuntimeError(f"tessera {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
        return json.loads(done.stdout)

    def plan(self, model, work, edge, placement):
        key = (model, work, edge, placement)
        if key not in self.plans:
            self.plans[key] = self.call("plan", *job(*key))
        return self.plans[key]

    def predicted_seconds(self, *arguments):
        """The step of `plan`'s timeline: FLOPs at a fixed rate, free messages, what waits for what."""
        with tempfile.TemporaryDirectory() as folder:
            trace = os.path.join(folder, "trace.json")
            self.call("plan", *arguments, "--trace", trace)
            with open(trace) as file:
                events = json.load(file)["traceEvents"]
        return max(e["ts"] + e["dur"] for e in events if e["ph"] == "X") / 1e6


def job(model, work, edge, placement):
    """Model, input and placement, as every command takes them."""
    return (model, "--input", work.input(edge), *placement.arguments, *work.arguments)


def needed(answer):
    """Bytes of the fullest worker: values, parameters and gradients."""
    return max(v + p for v, p in zip(answer["peak_value_bytes"], answer["parameter_bytes"]))


def require_predicted(predicted, measured, what):
    """Measured bytes and messages are those of the plan, on every worker, or something is wrong."""
    for field in ("peak_value_bytes", "parameter_bytes", "bytes_sent", "messages"):
        if predicted[field] != measured[field]:
            sys.exit(f"{what}: {field} measured {measured[field]}, predicted {predicted[field]}")


def require_equal_loss(reference, loss, what):
    if abs(loss - reference) > 1e-5 * abs(reference):
        sys.exit(f"{what}: loss {loss}, on one worker {reference}")


def load():
    """Processes that were running or waiting for a core in the last minute, ours among them."""
    return round(os.getloadavg()[0], 1)


def load_and_cores():
    return f"load {load()} on {len(os.sched_getaffinity(0))} cores"


def write_csv(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
