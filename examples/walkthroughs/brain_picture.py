"""One slice of the brain: the image, its true classes, and what the network says.

Usage: brain_picture.py IMAGE.nii.gz TRUTH.nii.gz PREDICTION.nii.gz PICTURE.png

The slice is sagittal, 14 mm from the middle, where all classes are: cortex (orange), deep grey
nuclei (blue) and cerebellum (green). The front of the head is on the right.
"""

import gzip
import struct
import sys

import numpy
from PIL import Image

MILLIMETRES = 14
COLOURS = {1: (230, 159, 0), 2: (86, 180, 233), 3: (0, 158, 115)}  # of the program's pictures
GAP = 8


def read(path):
    """The voxels of a NIfTI-1 file of bytes as z, y, x, and where the first lies along x (mm)."""
    content = gzip.open(path).read()
    x, y, z = struct.unpack_from("<3h", content, 42)
    kind = struct.unpack_from("<h", content, 70)[0]
    if kind != 2:
        sys.exit(f"brain_picture.py: {path} does not hold bytes")
    begin = int(struct.unpack_from("<f", content, 108)[0])
    voxels = numpy.frombuffer(content, numpy.uint8, x * y * z, begin).reshape(z, y, x)
    return voxels, struct.unpack_from("<f", content, 292)[0]


def slice_of(path):
    """Seen from the side: the first row is the top of the head."""
    voxels, first = read(path)
    return voxels[::-1, :, round(MILLIMETRES - first)]


def panel(image, labels):
    """The grey image, with half of the colour of its class over each pixel that has one."""
    colours = numpy.repeat(image[..., None], 3, axis=2).astype(float)
    for label, colour in COLOURS.items():
        colours[labels == label] = (colours[labels == label] + colour) / 2
    return colours.astype(numpy.uint8)


def main(image_path, truth_path, prediction_path, picture_path):
    image = slice_of(image_path)
    nothing = numpy.zeros_like(image)
    gap = numpy.full((image.shape[0], GAP, 3), 255, numpy.uint8)
    panels = []
    for labels in (nothing, slice_of(truth_path), slice_of(prediction_path)):
        panels += [panel(image, labels), gap]
    picture = Image.fromarray(numpy.concatenate(panels[:-1], axis=1))
    picture.quantize(128).save(picture_path, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
