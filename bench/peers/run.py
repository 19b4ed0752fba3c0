"""Tessera beside PyTorch: time and memory of a training step, in one table; and how Tessera scales.

Usage: run.py PATH_OF_TESSERA [--cases a,b] [--threads N] [--rounds N] [--steps N] [--scaling]

For each network the programs take turns: Tessera, PyTorch with contiguous tensors, PyTorch with
channels last. The medians of the rounds are compared, with the better of PyTorch's ways. PyTorch
runs with jemalloc (Debian's libjemalloc2) that never gives memory back, which is its fastest.

With --scaling the second table is made instead: one worker with one thread, one with all of
--threads, and as many workers with one thread each, in turns; their times and what all of them hold.
"""

import argparse
import atexit
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
# Name: input, and what Tessera calls the network; nothing: it reads PyTorch's as TorchScript.
CASES = {
    "unet2d": ("1x3x512x512", "unet2d:base=64,depth=5,classes=2"),
    "unet2d_no_norm": ("1x3x512x512", "unet2d:base=64,depth=5,classes=2,norm=none"),
    "vgg19": ("8x3x224x224", "vgg19"),
    "resnet50": ("8x3x224x224", "resnet50"),
    "unet3d": ("1x1x64x64x64", "unet3d:base=32,depth=4,classes=2"),
    "chain3d": ("1x1x96x96x96", None),
}


# Name: input, network, and the grid of 2, 4 and 16 workers.
SCALED = {
    "unet2d": ("1x3x512x512", "unet2d:base=32,depth=5,classes=2", {2: "2x1", 4: "2x2", 16: "4x4"}),
    "chain3d": ("1x1x96x96x96", None, {2: "2x1x1", 4: "2x2x1", 16: "4x2x2"}),
}


def run(words, **environment):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def saved(name, size):
    """The network as a file, which goes with the process."""
    path = Path(tempfile.mkdtemp()) / f"{name}.pt"
    atexit.register(shutil.rmtree, path.parent)
    subprocess.run([sys.executable, HERE / "torch_step.py", name, size, "--save", path], check=True)
    return path


def tessera_step(options, network, size, threads, *more):
    """One process: all workers of it hold what is resident, and each accounts for its own."""
    loss = ["--loss", "cross_entropy"] if isinstance(network, Path) else []
    found = run([options.program, "bench", network, "--input", size, "--threads", threads,
                 "--warmup", 1, "--iterations", options.steps, "--json", *loss, *more])
    return {"seconds": found["median_ms"] / 1e3, "resident": found["peak_rss_bytes"][0],
            "accounted": sum(found["arena_bytes"]) + sum(found["parameter_bytes"])}


def torch_step(options, network, size, *more):
    environment = {}
    if Path(JEMALLOC).exists():
        environment = {"LD_PRELOAD": JEMALLOC,
                       "MALLOC_CONF": "dirty_decay_ms:-1,muzzy_decay_ms:-1"}
    return run([sys.executable, HERE / "torch_step.py", network, size, "--threads",
                options.threads, "--steps", options.steps, *more], **environment)


def median(rounds, key):
    return statistics.median(each[key] for each in rounds)


def scaling_table(options):
    print("| network | input | runs | step (s) | times as fast | accounted (MiB) | share |")
    print("|---|---|---|---:|---:|---:|---:|")
    for name, (size, network, grids) in SCALED.items():
        network = network or saved(name, size)
        many = options.threads
        ways = {"1 worker, 1 thread": (1, []),
                f"1 worker, {many} threads": (many, []),
                f"{many} workers ({grids[many]}), 1 thread each": (1, ["--space", grids[many]])}
        rounds = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, (threads, more) in ways.items():
                rounds[way].append(tessera_step(options, network, size, threads, *more))
        alone = rounds["1 worker, 1 thread"]
        for way, found in rounds.items():
            print(f"| {name} | {size} | {way} | {median(found, 'seconds'):.2f} "
                  f"| {median(alone, 'seconds') / median(found, 'seconds'):.2f} "
                  f"| {median(found, 'accounted') / 2**20:.0f} "
                  f"| {median(found, 'accounted') / median(alone, 'accounted'):.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--scaling", action="store_true")
    options = parser.parse_args()
    if options.scaling:
        if options.threads not in (2, 4, 16):
            parser.error("--scaling takes --threads 2, 4 or 16")
        return scaling_table(options)
    empty = {"tessera": tessera_step(options, "cnn2d:base=1,depth=1", "1x1x8x8",
                                     options.threads)["resident"],
             "torch": torch_step(options, "empty", "1")["resident"]}
    print("| network | input | Tessera (s) | contiguous (s) | channels last (s) | time "
          "| Tessera (MiB) | accounted (MiB) | PyTorch (MiB) | memory |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name in options.cases.split(","):
        size, network = CASES[name]
        network = network or saved(name, size)
        ways = {"tessera": [], "contiguous": [], "last": []}
        for _ in range(options.rounds):
            ways["tessera"].append(tessera_step(options, network, size, options.threads))
            ways["contiguous"].append(torch_step(options, name, size))
            ways["last"].append(torch_step(options, name, size, "--channels-last"))
        seconds = {way: median(rounds, "seconds") for way, rounds in ways.items()}
        best = min(("contiguous", "last"), key=seconds.get)
        ours = (median(ways["tessera"], "resident") - empty["tessera"]) / 2**20
        theirs = (median(ways[best], "resident") - empty["torch"]) / 2**20
        print(f"| {name} | {size} | {seconds['tessera']:.2f} | {seconds['contiguous']:.2f} "
              f"| {seconds['last']:.2f} | {seconds['tessera'] / seconds[best]:.2f} | {ours:.0f} "
              f"| {median(ways['tessera'], 'accounted') / 2**20:.0f} | {theirs:.0f} "
              f"| {ours / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main()
