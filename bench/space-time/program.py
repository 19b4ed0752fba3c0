"""What the tables ask of Tessera: how long a step takes, how far its gradient is, what it needs."""

import csv
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TIMEOUT = 900  # seconds that one measurement may take


class Program:
    def __init__(self, path):
        self.path = str(Path(path).resolve())

    def call(self, *words):
        command = [self.path, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def step(self, case, steps):
        """Seconds of a step (median) with one thread a worker, and bytes of the fullest worker."""
        found = json.loads(self.call("bench", case.network, "--input", case.size, "--threads", 1,
                                     "--warmup", 1, "--iterations", steps, "--json",
                                     *case.placement()))
        held = [a + p for a, p in zip(found["arena_bytes"], found["parameter_bytes"])]
        return found["median_ms"] / 1e3, max(held)

    def errors(self, case):
        """Of loss and gradient against the serial network: the run's first step, taken twice."""
        batch = case.size.split("x")[0]
        with tempfile.TemporaryDirectory() as folder:
            self.call("train", case.network, "--input", case.size, "--threads", 1, "--steps", 1,
                      "--data", f"synthetic:kind=classification,samples={batch},classes=4",
                      "--validation-fraction", 0, "--check-serial", 1, "--run", f"{folder}/run",
                      *case.placement())
            with open(f"{folder}/run/metrics.csv") as file:
                row = next(csv.DictReader(file))
        return float(row["serial_loss_error"]), float(row["serial_gradient_error"])

    def timeline(self, case, latency, rate):
        """Seconds of a step by the timeline's rates; of a message: microseconds and GB/s."""
        drawn = self.call("plan", case.network, "--input", case.size, "--timeline", "--width", 10,
                          "--message-latency", latency, "--message-rate", rate, *case.placement())
        number, unit = re.search(r"step ([0-9.e+-]+) (us|ms|s)\b", drawn).groups()
        return float(number) * {"s": 1, "ms": 1e-3, "us": 1e-6}[unit]
