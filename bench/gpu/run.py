"""Tessera beside PyTorch on one GPU: time and memory of a training step, in one table.

Usage: run.py PATH_OF_TESSERA [--cases a,b] [--dtypes tf32,bf16] [--rounds N] [--steps N]

For each network and element type the programs take turns: Tessera, PyTorch as it is, and PyTorch after
torch.compile. The medians of the rounds are compared: time with the better of PyTorch's ways, memory
with PyTorch as it is.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Name: input, and what Tessera calls the network.
CASES = {
    "unet2d": ("1x3x1024x1024", "unet2d:base=64,depth=5,classes=2"),
    "resnet50": ("32x3x224x224", "resnet50"),
    "vgg19": ("32x3x224x224", "vgg19"),
    "unet3d": ("1x1x128x128x128", "unet3d:base=32,depth=4,classes=2"),
    "inception_v3": ("32x3x299x299", "inception_v3"),
}


def run(words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(done.args)}\n{done.stdout}{done.stderr}")
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))


def tessera_step(options, network, size, dtype):
    numbers = ["--dtype", "bf16"] if dtype == "bf16" else ["--dtype", "float32"]
    if dtype == "tf32":
        numbers.append("--tf32")
    found = run([options.program, "bench", network, "--input", size, "--device", "cuda", *numbers,
                 "--warmup", 8, "--iterations", options.steps, "--json"])
    return {"median_ms": found["median_ms"], "peak_bytes": found["device_bytes"][0]}


def torch_step(options, name, size, dtype, *more):
    return run([sys.executable, HERE / "torch_step.py", name, size, "--dtype", dtype,
                "--steps", options.steps, *more])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--dtypes", default="tf32,bf16")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    print("| network | input | numbers | Tessera (ms) | eager (ms) | compiled (ms) | time "
          "| Tessera (MiB) | eager (MiB) | memory |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in options.cases.split(","):
        size, network = CASES[name]
        for dtype in options.dtypes.split(","):
            ways = {"tessera": [], "eager": [], "compiled": []}
            for _ in range(options.rounds):
                ways["tessera"].append(tessera_step(options, network, size, dtype))
                ways["eager"].append(torch_step(options, name, size, dtype))
                ways["compiled"].append(torch_step(options, name, size, dtype, "--compile"))
            ms = {way: statistics.median(each["median_ms"] for each in rounds)
                  for way, rounds in ways.items()}
            mib = {way: statistics.median(each["peak_bytes"] for each in rounds) / 2**20
                   for way, rounds in ways.items()}
            print(f"| {name} | {size} | {dtype} | {ms['tessera']:.1f} | {ms['eager']:.1f} "
                  f"| {ms['compiled']:.1f} "
                  f"| {ms['tessera'] / min(ms['eager'], ms['compiled']):.2f} "
                  f"| {mib['tessera']:.0f} | {mib['eager']:.0f} "
                  f"| {mib['tessera'] / mib['eager']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
