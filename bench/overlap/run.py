"""Which share of the time of messages is hidden behind work? A table as Markdown.

Usage: run.py PATH_OF_TESSERA [--delays 50,1GB 200,1GB] [--iterations N] [--models unet2d ...]

Workers are threads of this machine. Where there are more of them than cores, each works more slowly
and hides more than it would alone; the delay is stretched by the same factor.
"""

import argparse
import json
import os
import subprocess

ROWS = [
    ("unet2d:base=32", "1x3x512x512", ["--space", "2x1"]),
    ("unet2d:base=32", "1x3x512x512", ["--space", "2x2"]),
    ("unet2d:base=32,norm=none", "1x3x512x512", ["--space", "2x2"]),
    ("cnn3d:base=16,depth=4", "1x1x96x96x96", ["--space", "2x2x1"]),
    ("resnet50", "4x3x448x448", ["--space", "2x2"]),
    ("resnet50", "8x3x224x224", ["--replicas", "4"]),
]


def stretched(delay, factor):
    """As `bench` takes it: microseconds and bytes a second."""
    latency, _, rate = delay.partition(",")
    units = {"GB": 1e9, "MB": 1e6}
    bytes_per_second = float(rate[:-2]) * units[rate[-2:]]
    return f"{float(latency) * factor:g},{int(bytes_per_second / factor)}"


def workers_of(placement):
    product = 1
    for number in placement[1].split("x"):
        product *= int(number)
    return product


def measure(program, model, size, placement, delay, iterations):
    factor = max(1, workers_of(placement) / len(os.sched_getaffinity(0)))
    command = [program, "bench", model, "--input", size, *placement, "--threads", "1", "--json"]
    command += ["--iterations", str(iterations), "--warmup", "1"]
    command += ["--delay", stretched(delay, factor)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--delays", nargs="+", default=["50,1GB", "200,1GB"])
    parser.add_argument("--models", nargs="+", default=[])
    parser.add_argument("--iterations", type=int, default=5)
    options = parser.parse_args()
    print("| network | input | placement | delay | step (ms) | messages take (ms) | left (ms) | hidden |")
    print("|---|---|---|---|---|---|---|---|")
    for model, size, placement in ROWS:
        if options.models and not any(model.startswith(name) for name in options.models):
            continue
        for delay in options.delays:
            report = measure(options.program, model, size, placement, delay, options.iterations)
            mean = lambda key: sum(report[key]) / len(report[key])
            print(
                f"| `{model}` | {size} | `{' '.join(placement)}` | {delay} | {report['median_ms']:.0f} "
                f"| {mean('transfer_ms'):.1f} | {mean('exposed_ms'):.1f} "
                f"| {report['hidden_share']:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
