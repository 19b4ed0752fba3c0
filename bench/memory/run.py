"""What a training step has resident beside what Tessera accounts for, for every model of the zoo.

Usage: run.py PATH_OF_TESSERA [--models a,b] [--threads N] [--steps N]

Accounted are the arena (values and scratch) and the parameters with their gradients, as `tessera
plan` prints them before anything runs. Resident is the largest resident set of the process; the
empty process is one that trains a network of one convolution.
"""

import argparse
import json
import subprocess
import sys

# Other inputs than the zoo's own, which are small for what the networks are for.
INPUTS = {
    "unet2d": "1x3x512x512", "unet2d_valid": "1x1x572x572", "cnn1d": "8x1x65536",
    "cnn2d": "8x3x512x512", "cnn3d": "2x1x96x96x96", "resnet110_v2": "32x3x32x32",
}
MIB = 2**20
FACTOR, ALLOWANCE = 1.08, 150 * MIB


def output_of(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return json.loads(done.stdout)


def step(options, model, size):
    return output_of(options.program, "bench", model, "--input", size, "--threads",
                     options.threads, "--warmup", 1, "--iterations", options.steps, "--json")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--models", default="", help="by default all")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=2)
    options = parser.parse_args()
    known = {model["name"]: "x".join(map(str, model["default_input"]))
             for model in output_of(options.program, "models", "--json")}
    empty = step(options, "cnn2d:base=1,depth=1", "1x1x8x8")["peak_rss_bytes"][0]
    print(f"the empty process has {empty / MIB:.0f} MiB resident\n")
    print("| model | input | arena (MiB) | parameters (MiB) | accounted (MiB) | workspace (MiB) "
          "| resident above empty (MiB) | ratio | below the limit by (MiB) |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    worst = None
    for model in options.models.split(",") if options.models else known:
        size = INPUTS.get(model, known[model])
        found = step(options, model, size)
        arena, parameters, workspace, resident = (
            found[key][0] for key in
            ("arena_bytes", "parameter_bytes", "workspace_bytes", "peak_rss_bytes"))
        accounted = arena + parameters
        left = FACTOR * accounted + ALLOWANCE - (resident - empty)
        worst = left if worst is None else min(worst, left)
        columns = [each / MIB for each in
                   (arena, parameters, accounted, workspace, resident - empty)]
        print(f"| {model} | {size} | " + " | ".join(f"{each:.1f}" for each in columns) +
              f" | {(resident - empty) / accounted:.2f} | {left / MIB:.0f} |", flush=True)
    print(f"\nlimit: {FACTOR} times the accounted bytes + {ALLOWANCE // MIB} MiB")
    return 0 if worst >= 0 else 1


if __name__ == "__main__":
    sys.exit(main())
