#!/usr/bin/env python3
"""Layers in parallel by Tessera and by TorchBraid, beside serial runs of each, in turns.

    PYTHONPATH=TORCHBRAID/src python3 bench/space-time/against_torchbraid.py PATH_OF_TESSERA

TorchBraid (github.com/Multilevel-NN/torchbraid) has to be built there; it needs mpi4py, Cython and
XBraid. One chain of 64 convolutions of 16 channels on 8x16x64x64, the same for all: Tessera reads it
as TorchScript. One thread a worker.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZE = "8x16x64x64"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          env={**os.environ, **AS_ROOT})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def tessera(options, chain, command, *more):
    return run([options.program, command, chain, "--input", SIZE, "--loss", "mse", "--threads", 1,
                "--json", *more])


def placement(options, way):
    """Of "Tessera, 2/1" or "Tessera, 2/1, none skipped"."""
    words = way.split(", ")
    forward, backward = words[1].split("/")
    skip = "no" if len(words) > 2 else "yes"
    return ["--layers", options.workers, "--multigrid", f"levels=2,coarsening=4,forward={forward},"
            f"backward={backward},relax=F,skip={skip}"]


def torch_step(options, *more, before=()):
    return run([*before, sys.executable, HERE / "torchbraid_step.py", "--steps", options.steps, *more])


def ways_of(options, chain):
    mpirun = ["mpirun", "--oversubscribe", "-n", options.workers]

    def bench(*more):
        found = tessera(options, chain, "bench", "--warmup", 1, "--iterations", options.steps, *more)
        return {"seconds": found["median_ms"] / 1e3}

    def braid(forward, backward):
        return torch_step(options, "--braid", "--forward", forward, "--backward", backward,
                          before=mpirun)

    ways = {"PyTorch, serial": lambda: torch_step(options), "Tessera, serial": bench}
    for text in options.cycles.split():
        forward, backward = text.split("/")
        ways[f"TorchBraid, {text}"] = lambda f=forward, b=backward: braid(f, b)
        for way in (f"Tessera, {text}", f"Tessera, {text}, none skipped"):
            ways[way] = lambda way=way: bench(*placement(options, way))
    return ways


def error_of(options, chain, way, rounds):
    if way.startswith("TorchBraid"):
        return rounds[0]["gradient_error"]
    if "/" not in way:
        return None
    found = tessera(options, chain, "verify", "--steps", 1, "--input-npy", chain.with_name("image.npy"),
                    "--target-npy", chain.with_name("target.npy"), *placement(options, way))
    return found["multigrid_error"]["gradient"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--cycles", default="1/1 2/1", help="forward/backward, several with spaces")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--no-errors", action="store_true", help="only times")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chain = Path(folder) / "chain.pt"
        subprocess.run([sys.executable, HERE / "torchbraid_step.py", "--save", chain], check=True)
        ways = ways_of(options, chain)
        rounds = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, step in ways.items():
                rounds[way].append(step())
        print("| way | step (s) | of its own serial run | of PyTorch | gradient error |")
        print("|---|---:|---:|---:|---:|")
        seconds = {way: statistics.median(r["seconds"] for r in found)
                   for way, found in rounds.items()}
        for way, found in rounds.items():
            own = "Tessera, serial" if way.startswith("Tessera") else "PyTorch, serial"
            error = None if options.no_errors else error_of(options, chain, way, found)
            print(f"| {way} | {seconds[way]:.3f} | {seconds[way] / seconds[own]:.2f} "
                  f"| {seconds[way] / seconds['PyTorch, serial']:.2f} "
                  f"| {'' if error is None else f'{error:.1e}'} |", flush=True)


if __name__ == "__main__":
    main()
