"""A sparse tiled BigTIFF is predicted and written in memory and disk space that do not depend on its
size: what is resident stays within --memory beyond what the program needs anyway, and the files of the
prediction are never near the size of the pixels.

    python3 large_image.py build/tessera           16384 x 16384 pixels, seconds
    python3 large_image.py build/tessera 65536     4 gigapixels, minutes
"""

import os
import struct
import subprocess
import sys
import tempfile
import threading
import time
import zlib

import numpy
import torch

MIB = 1 << 20
MEMORY_MIB = 512
TILE = 256
THRESHOLD = 5
# Struct formats of the tags' types that are read and written here.
FORMATS = {3: "H", 4: "I", 16: "Q"}


def save_network(path):
    """Class 1 where the sum of 3 x 3 pixels is above the threshold."""
    network = torch.nn.Conv2d(1, 2, 3, padding=1)
    with torch.no_grad():
        network.weight.zero_()
        network.weight[1] = 1
        network.bias.copy_(torch.tensor([THRESHOLD, 0.0]))
    torch.jit.script(network).save(path)


def make_tiles(columns):
    """A few tiles of noise by (row, column) of the grid: corners, two neighbours, some in between."""
    random = numpy.random.default_rng(7)
    last = columns - 1
    places = {(0, 0), (last, last), (0, last), (columns // 2, 3), (columns // 2, 4)}
    places |= {tuple(place) for place in random.integers(0, columns, (6, 2)).tolist()}
    return {p: random.integers(0, 2, (TILE, TILE), dtype=numpy.uint8) for p in sorted(places)}


def write_sparse_tiff(path, side, tiles):
    """A BigTIFF in which all other tiles are left out."""
    columns = side // TILE
    offsets = numpy.zeros(columns * columns, numpy.uint64)
    counts = numpy.zeros_like(offsets)
    with open(path, "wb") as file:
        file.write(struct.pack("<2sHHHQ", b"II", 43, 8, 0, 0))
        for (row, column), pixels in tiles.items():
            packed = zlib.compress(pixels.tobytes())
            offsets[row * columns + column] = file.tell()
            counts[row * columns + column] = len(packed)
            file.write(packed)
        places = []
        for numbers in (offsets, counts):
            places.append(file.tell())
            file.write(numbers.tobytes())
        one = {256: side, 257: side, 258: 8, 259: 8, 262: 1, 277: 1, 284: 1, 322: TILE, 323: TILE}
        entries = [(tag, 4, 1, value) for tag, value in one.items()]
        entries += [(324, 16, offsets.size, places[0]), (325, 16, counts.size, places[1])]
        directory = file.tell()
        file.write(struct.pack("<Q", len(entries)))
        for entry in entries:
            file.write(struct.pack("<HHQQ", *entry))
        file.write(struct.pack("<Q", 0))
        file.seek(8)
        file.write(struct.pack("<Q", directory))


class TiledResult:
    """The tiles of a BigTIFF of one directory, deflated."""

    def __init__(self, path):
        self.file = open(path, "rb")
        magic, version, _, _, directory = struct.unpack("<2sHHHQ", self.file.read(16))
        assert (magic, version) == (b"II", 43), "not a BigTIFF"
        self.file.seek(directory)
        (count,) = struct.unpack("<Q", self.file.read(8))
        entries = [struct.unpack("<HHQ8s", self.file.read(20)) for _ in range(count)]
        self.tags = {tag: self.numbers(*entry) for tag, *entry in entries if entry[0] in FORMATS}
        self.height, self.width = self.tags[257][0], self.tags[256][0]
        self.tile = self.tags[322][0]

    def numbers(self, kind, count, value):
        layout = f"<{count}{FORMATS[kind]}"
        size = struct.calcsize(layout)
        if size > 8:
            self.file.seek(struct.unpack("<Q", value)[0])
            value = self.file.read(size)
        return struct.unpack(layout, value[:size])

    def pixels(self, row, column):
        """Of the tile at that place of the grid."""
        index = row * -(-self.width // self.tile) + column
        self.file.seek(self.tags[324][index])
        data = zlib.decompress(self.file.read(self.tags[325][index]))
        return numpy.frombuffer(data, numpy.uint8).reshape(self.tile, self.tile)


def expected(tiles, side, top, left, size):
    """The classes of a square of the image."""
    padded = numpy.zeros((size + 2, size + 2), numpy.int64)
    for (row, column), pixels in tiles.items():
        y, x = row * TILE - (top - 1), column * TILE - (left - 1)
        y0, y1 = max(y, 0), min(y + TILE, size + 2)
        x0, x1 = max(x, 0), min(x + TILE, size + 2)
        if y0 < y1 and x0 < x1:
            padded[y0:y1, x0:x1] = pixels[y0 - y : y1 - y, x0 - x : x1 - x]
    sums = sum(padded[y : y + size, x : x + size] for y in range(3) for x in range(3))
    return (sums > THRESHOLD).astype(numpy.uint8)


def check_result(path, side, tiles):
    result = TiledResult(path)
    assert (result.height, result.width) == (side, side), (result.height, result.width)
    size = result.tile
    last = side // size - 1
    places = {(row * TILE // size, column * TILE // size) for row, column in tiles}
    places |= {(min(row + 1, last), column) for row, column in places}
    places |= {(row, max(column - 1, 0)) for row, column in places}
    ones = 0
    for row, column in sorted(places):
        classes = result.pixels(row, column)
        wanted = expected(tiles, side, row * size, column * size, size)
        if not numpy.array_equal(classes, wanted):
            sys.exit(f"the tile at row {row}, column {column} of the result is wrong")
        ones += int(classes.sum())
    assert ones > 1000, f"{ones} pixels of class 1 prove nothing"
    print(f"{len(places)} tiles of the result are right, with {ones} pixels of class 1")


class DiskWatch(threading.Thread):
    """The largest disk space of a folder's files, looked at all the time."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.most, self.done = folder, 0, False

    def run(self):
        while not self.done:
            total = 0
            for name in os.listdir(self.folder):
                try:
                    total += os.stat(os.path.join(self.folder, name)).st_blocks * 512
                except FileNotFoundError:  # renamed meanwhile
                    pass
            self.most = max(self.most, total)
            time.sleep(0.02)


def peak_bytes(arguments):
    """The largest resident set of a run that must succeed."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{arguments} ended with {process.returncode}: {errors}")
    print(errors.strip())
    return usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


def main():
    program = os.path.abspath(sys.argv[1])
    side = int(sys.argv[2]) if len(sys.argv) > 2 else 16384
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("result")
        save_network("network.pt")
        predict = [program, "predict", "network.pt", "--input", "1x1x64x64"]
        write_sparse_tiff("small.tif", 2 * TILE, {(0, 0): numpy.ones((TILE, TILE), numpy.uint8)})
        idle, _ = peak_bytes([*predict, "--images", "files:small.tif", "--output", "small_classes.tif"])
        tiles = make_tiles(side // TILE)
        write_sparse_tiff("large.tif", side, tiles)
        disk = DiskWatch("result")
        disk.start()
        begin = time.time()
        large = ["--images", "files:large.tif", "--output", "result/classes.tif"]
        peak, seconds = peak_bytes([*predict, *large, "--memory", f"{MEMORY_MIB}MiB"])
        wall = time.time() - begin
        disk.done = True
        disk.join()
        print(
            f"{side} x {side} pixels: {wall:.0f} s, {seconds:.0f} s of a core; resident {peak / MIB:.0f} "
            f"MiB, {idle / MIB:.0f} MiB for a small image; disk {disk.most / MIB:.0f} MiB"
        )
        check_result("result/classes.tif", side, tiles)
        if peak - idle > MEMORY_MIB * MIB:
            sys.exit(f"resident memory beyond that of a small image is more than {MEMORY_MIB} MiB")
        if disk.most > side * side / 8:
            sys.exit("the files of the prediction took more than an eighth of the pixels' size")


if __name__ == "__main__":
    main()
