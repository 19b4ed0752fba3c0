"""MNIST to MNIST-M: source only, DANN, DSN and trained on the target, over three seeds.

    python3 bench/mnist-m/digits.py runs/mnist-m-data              # fetches, needs a network
    python3 bench/mnist-m/run.py --data runs/mnist-m-data --work runs/mnist-m

Trains with `tessera train`, side by side on as many cores as are given, and scores every run on
MNIST-M's test set with `tessera evaluate`. After --minutes what still runs is stopped and scored as
it is; the same command goes on from there. Prints a table and writes scores.csv into the work
folder. Needs Python's standard library and NumPy.
"""

import argparse
import csv
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import digits

# Classifier of domains behind a reversal that grows to 1 within so many steps, as DANN has it; DSN
# adds what keeps private codes apart, and the reconstructions.
ADVERSARIAL = "base={base},norm={norm},targets=1,similarity=dann,gamma={gamma},lambda_ramp={ramp}"
ALONE = "dann:base={base},norm={norm},targets=0"


@dataclass(frozen=True)
class Method:
    name: str
    model: str
    sets: tuple  # of arrays, one for each domain
    workers: int = 1
    extra: tuple = ()


def methods(options):
    adversarial = ADVERSARIAL.format(**vars(options))
    alone = ALONE.format(**vars(options))
    private = f"alpha={options.alpha},beta={options.beta}"
    domains = {1: (), 2: ("--domains", "1"), 4: ("--domains", "2")}[options.dsn_workers]
    every = [Method("dsn", f"dsn:{adversarial},{private}", ("mnist", "mnist_m"),
                    options.dsn_workers, domains),
             Method("dann", f"dann:{adversarial}", ("mnist", "mnist_m")),
             Method("source", alone, ("mnist",)),
             Method("target", alone, ("mnist_m",))]
    return [method for method in every if method.name in options.methods.split(",")]


class Job:
    def __init__(self, options, method, seed):
        self.options, self.method, self.seed = options, method, seed
        self.folder = Path(options.work) / f"{method.name}-{seed}"
        self.cores = min(method.workers, len(options.cores))

    def files(self, name):
        arrays = Path(self.options.work) / "arrays"
        return f"files:{arrays}/{name}_images.npy,{arrays}/{name}_labels.npy"

    def data(self):
        named = zip(("source", "target1"), map(self.files, self.method.sets))
        return ";".join(f"{domain}={files}" for domain, files in named)

    def train_command(self):
        steps = str(self.options.steps)
        return [self.options.program, "train", self.method.model, "--input", "32x3x28x28",
                "--data", self.data(), "--normalise", self.options.normalise, "--validation-fraction", "0",
                "--steps", steps, "--seed", str(self.seed), "--learning-rate", self.options.rate,
                "--optimiser", self.options.optimiser, "--beta1", self.options.beta1,
                "--learning-rate-schedule", "poly", "--power", "1", "--drop-last", "--clip-norm", self.options.clip,
                "--label-check", "sample", "--log-interval", "50", "--checkpoint-interval", "500",
                "--keep", "1", "--threads", "1", "--run", str(self.folder), *self.method.extra]

    def start(self, cores):
        self.log = open(f"{self.folder}.log", "a")
        self.process = subprocess.Popen(
            self.train_command(), stdout=self.log, stderr=self.log,
            preexec_fn=lambda: os.sched_setaffinity(0, cores))
        self.held = cores

    def steps(self):
        """Done and kept; 0 where the run was stopped before it had a checkpoint."""
        found = (self.folder / "checkpoints").glob("step-*")
        return max((int(path.name.split("-")[1]) for path in found), default=0)

    def score(self):
        """Of the target."""
        command = [self.options.program, "evaluate", str(self.folder), "--threads", "1", "--data",
                   self.files(self.options.scored), "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
        return {"method": self.method.name, "seed": self.seed, "steps": self.steps(),
                "accuracy": json.loads(done.stdout)["accuracy"]}


def run_all(jobs, cores, minutes):
    """In their order, each as soon as there are cores for it, until the time is over."""
    free, waiting, running = set(cores), list(jobs), []
    end = time.monotonic() + 60 * minutes
    while (waiting or running) and time.monotonic() < end:
        for job in [job for job in running if job.process.poll() is not None]:
            running.remove(job)
            free |= job.held
            if job.process.returncode != 0:
                stop(running)
                sys.exit(f"{' '.join(job.train_command())}\nexit {job.process.returncode}, "
                         f"see {job.folder}.log")
        for job in [job for job in waiting if job.cores <= len(free)]:
            if job.cores > len(free):
                continue
            held = set(sorted(free)[:job.cores])
            free -= held
            job.start(held)
            waiting.remove(job)
            running.append(job)
        time.sleep(0.2)
    stop(running)


def stop(running):
    for job in running:
        job.process.send_signal(signal.SIGINT)  # writes a checkpoint and ends
    for job in running:
        job.process.wait()


def table(rows):
    lines = ["| method | steps | accuracy on MNIST-M, by seed | mean |", "|---|---:|---|---:|"]
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        steps = sorted({row["steps"] for row in own})
        each = ", ".join(f"{100 * row['accuracy']:.1f}%" for row in own)
        mean = statistics.mean(row["accuracy"] for row in own)
        lines.append(f"| {method} | {'-'.join(map(str, steps))} | {each} | {100 * mean:.1f}% |")
    return "\n".join(lines)


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", default="build/tessera")
    parser.add_argument("--data", default="runs/mnist-m-data", help="what digits.py fetched")
    parser.add_argument("--work", default="runs/mnist-m")
    parser.add_argument("--cores", type=int, default=1 << 20, help="at most; one for each worker")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", default="dsn,dann,source,target")
    parser.add_argument("--dsn-workers", type=int, default=1, choices=(1, 2, 4))
    parser.add_argument("--base", type=int, default=32, help="the paper's; less is faster")
    parser.add_argument("--norm", default="batch", help="of each convolution; none: the papers' networks")
    parser.add_argument("--rate", default="0.03", help="learning rate; it falls to 0")
    parser.add_argument("--optimiser", default="sgd")
    parser.add_argument("--beta1", default="0.9")
    parser.add_argument("--clip", default="2", help="limit of the gradient's norm")
    parser.add_argument("--normalise", default="z-score")
    parser.add_argument("--gamma", default="0.5")
    parser.add_argument("--ramp", default="2000", help="steps in which the reversal grows")
    parser.add_argument("--alpha", default="0.01")
    parser.add_argument("--beta", default="0.05")
    parser.add_argument("--scored", default="mnist_m_test", help="or mnist_m_held_back")
    options = parser.parse_args()
    options.cores = sorted(os.sched_getaffinity(0))[:options.cores]
    return options


def main():
    options = read_options()
    digits.write_arrays(options.data, os.path.join(options.work, "arrays"))
    jobs = [Job(options, method, seed)
            for method in methods(options) for seed in range(1, options.seeds + 1)]
    run_all(jobs, options.cores, options.minutes)
    with ThreadPoolExecutor(len(options.cores)) as pool:
        rows = list(pool.map(Job.score, [job for job in jobs if job.steps() > 0]))
    if not rows:
        sys.exit("no run has taken a step; give more --minutes")
    with open(os.path.join(options.work, "scores.csv"), "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(table(rows))


if __name__ == "__main__":
    main()
