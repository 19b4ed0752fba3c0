"""Two halves of a brain as NIfTI images with labels, from Debian's package mricron-data.

Usage: brain_data.py FOLDER

The T1 image of one head (ch2) and the AAL atlas of its regions lie in one grid. The left half is
for training, the right half for the test. Regions are joined into classes: 0 outside, 1 cortex,
2 deep grey nuclei, 3 cerebellum.

    FOLDER/images/left.nii.gz    FOLDER/masks/left.nii.gz
    FOLDER/test/images/right.nii.gz    FOLDER/test/masks/right.nii.gz
"""

import gzip
import struct
import sys
from pathlib import Path

import numpy

TEMPLATES = Path("/usr/share/mricron/templates")
MIDDLE = 91  # of 181 sagittal slices; the atlas is nearly symmetric


def read(name):
    """The header of a NIfTI-1 file of bytes, and its voxels as z, y, x."""
    content = gzip.open(TEMPLATES / f"{name}.nii.gz").read()
    x, y, z = struct.unpack_from("<3h", content, 42)
    begin = int(struct.unpack_from("<f", content, 108)[0])
    return content[:begin], numpy.frombuffer(content[begin:], numpy.uint8).reshape(z, y, x)


def write(path, header, voxels, first_x):
    """The same header with the sizes of `voxels`, whose first slice was slice `first_x`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = bytearray(header)
    struct.pack_into("<3h", header, 42, *reversed(voxels.shape))
    origin = struct.unpack_from("<f", header, 292)[0]  # of x, the last number of the first row
    struct.pack_into("<f", header, 292, origin + first_x)
    with gzip.open(path, "wb", compresslevel=4) as file:
        file.write(bytes(header) + voxels.tobytes())


def classes_of(regions):
    table = numpy.zeros(256, numpy.uint8)
    table[1:91] = 1
    table[71:79] = 2
    table[91:117] = 3
    return table[regions]


def main(folder):
    header, head = read("ch2")
    _, regions = read("aal")
    labels = classes_of(regions)
    for part, name, begin, end in (("", "left", 0, MIDDLE), ("test", "right", MIDDLE, 181)):
        write(folder / part / "images" / f"{name}.nii.gz", header, head[..., begin:end], begin)
        write(folder / part / "masks" / f"{name}.nii.gz", header, labels[..., begin:end], begin)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
