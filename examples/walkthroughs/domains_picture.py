"""What codes and reconstructions of dsn_unet2d hold: an image of the source and one of a target.

Usage: domains_picture.py PROGRAM WEIGHTS.safetensors SOURCE TARGET PICTURE.png

SOURCE and TARGET are data sets as --data takes them. Columns: the image; the decoder's image of both
codes, of the shared code alone, and of the private one alone; the channels of the shared and of the
private code, as the mean of their sizes. Means of images are left out: the loss does not see them.
"""

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F
from PIL import Image

EDGE, ZOOM, MARGIN = 64, 2, 4


def read_weights(path):
    raw = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    header.pop("__metadata__", None)
    return {
        name: torch.frombuffer(bytearray(data[slice(*entry["data_offsets"])]), dtype=torch.float32)
        .reshape(entry["shape"])
        for name, entry in header.items()
    }


def first_image(program, data):
    """Through a network that gives what it gets."""

    class Same(torch.nn.Module):
        def forward(self, x):
            return x * 1.0

    with tempfile.TemporaryDirectory() as folder:
        torch.jit.script(Same()).save(f"{folder}/same.pt")
        command = [program, "predict", f"{folder}/same.pt", "--input", f"1x1x{EDGE}x{EDGE}"]
        command += ["--images", data, "--raw", f"{folder}/x.npy"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return torch.from_numpy(numpy.load(f"{folder}/x.npy")[:1])


def block(weights, x, name):
    """Two convolutions with instance norm and ReLU."""
    for i in (1, 2):
        x = F.conv2d(x, weights[f"{name}.conv{i}.weight"], padding=1)
        scale, shift = weights[f"{name}.norm{i}.weight"], weights[f"{name}.norm{i}.bias"]
        x = F.relu(F.instance_norm(x, weight=scale, bias=shift))
    return x


def encode(weights, x, prefix):
    level = 1
    while f"{prefix}.enc{level}.conv1.weight" in weights:
        x = F.max_pool2d(block(weights, x, f"{prefix}.enc{level}"), 2)
        level += 1
    return block(weights, x, f"{prefix}.bottleneck")


def decode(weights, code):
    level = sum(name.startswith("decoder.up") for name in weights) // 2
    for level in range(level, 0, -1):
        up = weights[f"decoder.up{level}.weight"], weights[f"decoder.up{level}.bias"]
        code = block(weights, F.conv_transpose2d(code, *up, stride=2), f"decoder.dec{level}")
    return F.conv2d(code, weights["decoder.out.weight"], weights["decoder.out.bias"])


def grey(x, span):
    """0 is the middle, for images; codes begin with black."""
    pixels = (x / span).clamp(-1, 1) * 127.5 + 127.5
    size = (EDGE * ZOOM, EDGE * ZOOM)
    return Image.fromarray(pixels.numpy().astype("uint8")).resize(size, Image.NEAREST)


def row_of(weights, x, domain):
    shared, own = encode(weights, x, "shared"), encode(weights, x, f"private{domain}")
    images = [x] + [decode(weights, code) for code in (shared + own, shared, own)]
    images = [image[0, 0] - image.mean() for image in images]
    error = 1 - ((images[1] - images[0]) ** 2).mean() / (images[0] ** 2).mean()
    print(f"domain {domain}: {100 * error:.0f}% of the image's variance is in its reconstruction")
    row = [grey(image, 3 * images[0].std()) for image in images]
    sizes = [code[0].abs().mean(dim=0) for code in (shared, own)]
    return row + [grey(2 * size / size.max() - 1, 1) for size in sizes]


def main(program, weights_path, source, target, picture_path):
    weights = read_weights(weights_path)
    rows = [row_of(weights, first_image(program, data), domain)
            for domain, data in enumerate((source, target))]
    step = EDGE * ZOOM + MARGIN
    picture = Image.new("L", (step * len(rows[0]) + MARGIN, step * len(rows) + MARGIN), 255)
    for y, row in enumerate(rows):
        for x, tile in enumerate(row):
            picture.paste(tile, (MARGIN + x * step, MARGIN + y * step))
    picture.save(picture_path, optimize=True)


if __name__ == "__main__":
    with torch.no_grad():
        main(*sys.argv[1:])
