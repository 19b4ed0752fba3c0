"""Tessera beside PyTorch: time and memory of a training step, in one table; and how Tessera scales.

Usage: run.py PATH_OF_TESSERA [--cases a,b] [--threads N] [--rounds N] [--steps N] [--scaling]

For each network the programs take turns: Tessera, PyTorch with contiguous tensors, PyTorch with
channels last. The medians of the rounds are compared, with the better of PyTorch's ways. PyTorch
runs with jemalloc (Debian's libjemalloc2) that never gives memory back, which is its fastest.

With --scaling the second table is made instead: one worker with one thread, one with all of
--threads, as many workers with one thread each, in turns; their times and what all of them hold.
Beside them stand what the machine can give, as many programs at once that each have a part of the image
and nothing to exchange, and PyTorch with all threads.
"""

import argparse
import atexit
import json
import math
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
    "mobilenet_v2": ("8x3x224x224", "mobilenet_v2"),
    "unet3d": ("1x1x64x64x64", "unet3d:base=32,depth=4,classes=2"),
    "chain3d": ("1x1x96x96x96", None),
}


# Name: network, and the input and the grid of 2, 4 and 16 workers.
SCALED = {
    "unet2d_base32": ("unet2d:base=32,depth=5,classes=2", {2: ("1x3x512x512", "2x1"),
                                                           4: ("1x3x512x512", "2x2"),
                                                           16: ("1x3x1024x1024", "4x4")}),
    "chain3d": (None, {2: ("1x1x96x96x96", "2x1x1"),
                       4: ("1x1x96x96x96", "2x2x1"),
                       16: ("1x1x96x96x96", "4x2x2")}),
}


def start(words, **environment):
    return subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})


def result_of(process):
    out, errors = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{' '.join(process.args)}\n{out}{errors}")
    return json.loads(next(line for line in out.splitlines() if line.startswith("{")))


def run(words, **environment):
    return result_of(start(words, **environment))


def saved(name, size):
    """The network as a file, which goes with the process."""
    path = Path(tempfile.mkdtemp()) / f"{name}.pt"
    atexit.register(shutil.rmtree, path.parent)
    subprocess.run([sys.executable, HERE / "torch_step.py", name, size, "--save", path], check=True)
    return path


def bench_command(options, network, size, threads):
    loss = ["--loss", "cross_entropy"] if isinstance(network, Path) else []
    return [options.program, "bench", network, "--input", size, "--threads", threads,
            "--warmup", 1, "--iterations", options.steps, "--json", *loss]


def figures(found):
    """One process: all workers of it hold what is resident, and each accounts for its own."""
    return {"seconds": found["median_ms"] / 1e3, "resident": found["peak_rss_bytes"][0],
            "accounted": sum(found["arena_bytes"]) + sum(found["parameter_bytes"])}


def tessera_step(options, network, size, threads, *more):
    return figures(run([*bench_command(options, network, size, threads), *more]))


def steps_apart(options, network, size, grid):
    """As many programs as the grid has cells, a core for each; the mean of their medians."""
    parts = [1, 1, *map(int, grid.split("x"))]
    part = "x".join(str(int(n) // p) for n, p in zip(size.split("x"), parts))
    programs = [start(["taskset", "-c", core, *bench_command(options, network, part, 1)])
                for core in range(math.prod(parts))]
    found = [figures(result_of(program)) for program in programs]
    return {"seconds": statistics.mean(each["seconds"] for each in found),
            "accounted": sum(each["accounted"] for each in found)}


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
    many = options.threads
    for name in options.cases.split(","):
        network, sizes = SCALED[name]
        network = network or saved(name, sizes[many][0])
        size, grid = sizes[many]
        ways = {
            "1 worker, 1 thread": lambda: tessera_step(options, network, size, 1),
            f"1 worker, {many} threads": lambda: tessera_step(options, network, size, many),
            f"{many} workers ({grid}), 1 thread each":
                lambda: tessera_step(options, network, size, 1, "--space", grid),
            f"{many} programs, each with a part": lambda: steps_apart(options, network, size, grid),
            f"PyTorch, {many} threads": lambda: torch_step(options, name, size),
            f"PyTorch, {many} threads, channels last":
                lambda: torch_step(options, name, size, "--channels-last"),
        }
        rounds = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, step in ways.items():
                rounds[way].append(step())
        alone = rounds["1 worker, 1 thread"]
        for way, found in rounds.items():
            print(f"| {name} | {size} | {way} | {median(found, 'seconds'):.2f} "
                  f"| {median(alone, 'seconds') / median(found, 'seconds'):.2f} "
                  f"{memory_cells(found, alone)}", flush=True)


def memory_cells(found, alone):
    if "accounted" not in found[0]:
        return "| | |"
    held = median(found, "accounted")
    return f"| {held / 2**20:.0f} | {held / median(alone, 'accounted'):.2f} |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--cases")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--scaling", action="store_true")
    options = parser.parse_args()
    if options.scaling:
        if options.threads not in (2, 4, 16):
            parser.error("--scaling takes --threads 2, 4 or 16")
        options.cases = options.cases or ",".join(SCALED)
        return scaling_table(options)
    options.cases = options.cases or ",".join(CASES)
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
