"""Every test model, scripted and traced, trained by PyTorch and by `tessera verify` on several
placements: losses, gradients, final weights and buffers must agree to 1e-10 in float64.

    python3 equivalence.py build/tessera [--model NAME]... [--export trace] [--keep DIR]
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

import export
import outside
import reference
from models import CASES, Case
from placements import random_placements

TOLERANCE = 1e-10
FLOAT32_WEIGHTS = 1e-6  # a file that holds float32 gets float32 back
TIMEOUT_S = 120
AT_A_TIME = max(2, os.cpu_count() or 2)


@dataclass
class Job:
    case: Case
    how: str
    placement: list
    model_file: Path
    folder: Path  # of this run's output
    reference: reference.Reference

    def title(self):
        return f"{self.case.name:<22} {self.how:<6} {' '.join(self.placement)}"


@dataclass
class Result:
    worst: float
    message: str  # empty: passed


def prepare(case, hows, folder, num_placements):
    """Writes a model's files and trains it here; yields the runs to compare."""
    model = export.build(case)
    hows = [how for how in hows if case.exports is None or how in case.exports]
    for how in hows:
        export.save(case, model, how, folder / f"{case.name}.{how}.pt")
    expected = reference.train(case, model)
    outside.write_npy(folder / f"{case.name}.x.npy", expected.input)
    for i, target in enumerate(expected.targets):
        outside.write_npy(folder / f"{case.name}.t{i}.npy", target)
    for how in hows:
        placements = random_placements(case, how, num_placements)
        placements += [options.split() for options in case.placements]
        for i, placement in enumerate(placements):
            run_folder = folder / f"{case.name}.{how}.{i}"
            run_folder.mkdir(exist_ok=True)
            model_file = folder / f"{case.name}.{how}.pt"
            yield Job(case, how, placement, model_file, run_folder, expected)


def arguments(program, job, weights_file):
    base = str(job.model_file).replace(f".{job.how}.pt", "")
    targets = ",".join(f"{base}.t{i}.npy" for i in range(len(job.reference.targets)))
    command = [program, "verify", job.model_file, "--dtype", "float64", *job.placement]
    command += ["--loss", job.case.loss, "--input-npy", f"{base}.x.npy", "--target-npy", targets]
    if job.case.output_weights:
        command += ["--output-weights", ",".join(map(str, job.case.output_weights))]
    command += ["--steps", reference.STEPS, "--optimiser", "sgd"]
    command += ["--learning-rate", reference.LEARNING_RATE, "--momentum", reference.MOMENTUM]
    command += ["--print-loss", "--dump-gradients", job.folder / "g.safetensors"]
    return command + ["--save-weights", weights_file, "--json"]


def read_state(weights_file):
    if weights_file.suffix == ".pt":
        return torch.jit.load(str(weights_file)).state_dict()
    return outside.read_safetensors(weights_file)


def by_step(losses):
    return {f"of step {i + 1}": torch.tensor(v, dtype=torch.double) for i, v in enumerate(losses)}


def compare_losses(json_text, expected):
    losses = json.loads(json_text)["losses"]
    if len(losses) != len(expected):
        return float("inf"), f"{len(losses)} losses"
    return outside.difference(by_step(losses), by_step(expected))


def compare_state(job, weights_file):
    actual, expected = read_state(weights_file), job.reference.state
    counts = {name: t for name, t in expected.items() if not t.is_floating_point()}
    for name, count in counts.items():
        if name in actual and not torch.equal(actual[name], count):
            return float("inf"), f"{name} is {actual[name].tolist()} instead of {count.tolist()}"
        if name not in actual and weights_file.suffix == ".pt":
            return float("inf"), f"{name} (missing)"
    real = {name: t for name, t in expected.items() if name not in counts}
    worst, whose = outside.difference(actual, real)
    if job.case.float32 and worst <= FLOAT32_WEIGHTS:
        worst = 0.0
    return worst, whose


def compare(job, outcome, weights_file):
    if outcome.code != 0:
        return Result(float("inf"), outcome.describe())
    if json.loads(outcome.out)["ok"] is not True:
        return Result(float("inf"), f"the program's own check failed: {outcome.out}")
    if job.case.random:
        return Result(0.0, "")
    gradients = outside.read_safetensors(job.folder / "g.safetensors")
    parts = {
        "loss": compare_losses(outcome.out, job.reference.losses),
        "gradient": outside.difference(gradients, job.reference.gradients),
        "state": compare_state(job, weights_file),
    }
    worst = max(value for value, _ in parts.values())
    wrong = [f"{kind} {whose}: {v:.2e}" for kind, (v, whose) in parts.items() if v > TOLERANCE]
    return Result(worst, "; ".join(wrong))


def missing_lines(program, job):
    """Patterns of the case that `inspect` does not print."""
    shape = "x".join(map(str, job.case.input_shape))
    shown = outside.run([program, "inspect", job.model_file, "--input", shape], TIMEOUT_S).out
    return [pattern for pattern in job.case.shows if not re.search(pattern, shown)]


def run(program, job):
    # Both file types are written, by turns.
    suffix = ".pt" if job.folder.name.endswith(("0", "2")) else ".safetensors"
    weights_file = job.folder / f"w{suffix}"
    began = time.monotonic()
    try:
        outcome = outside.run(arguments(program, job, weights_file), TIMEOUT_S)
        result = compare(job, outcome, weights_file)
        if job.case.shows and not result.message:
            missing = missing_lines(program, job)
            result.message = f"inspect does not show {missing}" if missing else ""
    except Exception:  # output that cannot be read is the program's failure, not ours
        result = Result(float("inf"), traceback.format_exc(limit=2))
    seconds = time.monotonic() - began
    verdict = f"FAILED {result.message}" if result.message else "ok"
    print(f"{job.title():<60} {result.worst:.1e} {seconds:5.1f} s {verdict}", flush=True)
    return result


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("program", help="the tessera program")
    parser.add_argument("--model", action="append", choices=sorted(CASES), help="only this one")
    parser.add_argument("--export", action="append", choices=export.EXPORTS, help="only this one")
    parser.add_argument("--placements", type=int, default=1, help="per model and export")
    parser.add_argument("--keep", type=Path, help="folder that keeps all files")
    return parser.parse_args()


def run_all(options, folder):
    cases = [CASES[name] for name in options.model or CASES]
    hows = options.export or export.EXPORTS
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        pending = []
        for case in cases:
            for job in prepare(case, hows, folder, options.placements):
                pending.append((job, pool.submit(run, options.program, job)))
        return [(job, future.result()) for job, future in pending]


def main():
    options = parse_options()
    torch.set_num_threads(1)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tessera_import_") as temporary:
        folder = options.keep or Path(temporary)
        os.makedirs(folder, exist_ok=True)
        results = run_all(options, folder)
    failures = [job for job, result in results if result.message]
    worst = max(result.worst for _, result in results)
    seconds = time.monotonic() - began
    print(f"{len(results)} runs, {len(failures)} failed, worst {worst:.1e}, {seconds:.0f} s")
    for job in failures:
        print(f"  failed: {job.title()}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
