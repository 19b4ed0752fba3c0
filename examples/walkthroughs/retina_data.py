"""A retina as tiled TIFF images with a mask of its vessels, from Debian's package python3-skimage.

Usage: retina_data.py FOLDER

The photograph has no labels of a physician. The mask is what a ridge filter (Sato) finds in the
green channel: the network learns to do what the filter does. The left half is for training, the
right half for the test.

    FOLDER/images/left.tif    FOLDER/masks/left.png
    FOLDER/test/images/right.tif    FOLDER/test/masks/right.png
"""

import sys
from pathlib import Path

import numpy
import skimage.data
import skimage.filters
import skimage.morphology
import tifffile
from PIL import Image


def vessels_of(photograph):
    green = photograph[..., 1] / 255
    inside = skimage.morphology.binary_erosion(green > 0.1, skimage.morphology.disk(15))
    ridges = skimage.filters.sato(green, sigmas=(2, 3, 4), black_ridges=True) * inside
    strong, weak = numpy.percentile(ridges[inside], (94, 88))
    found = skimage.filters.apply_hysteresis_threshold(ridges, weak, strong)
    return skimage.morphology.remove_small_objects(found, 300)


def main(folder):
    photograph = skimage.data.retina()
    vessels = vessels_of(photograph).astype(numpy.uint8)
    middle = photograph.shape[1] // 2
    for part, name, columns in (
        ("", "left", slice(0, middle)),
        ("test", "right", slice(middle, None)),
    ):
        for kind in ("images", "masks"):
            (folder / part / kind).mkdir(parents=True, exist_ok=True)
        tifffile.imwrite(
            folder / part / "images" / f"{name}.tif",
            photograph[:, columns],
            photometric="rgb",
            tile=(256, 256),
            compression="zlib",
        )
        Image.fromarray(vessels[:, columns]).save(folder / part / "masks" / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
