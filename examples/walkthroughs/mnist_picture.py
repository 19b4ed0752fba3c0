"""Test digits and what the network says to them: some of all, and some that it takes for others.

Usage: mnist_picture.py FOLDER CLASSES.npy PICTURE.png

The first rows are digits drawn from the whole test, with the answer below each; the last row is
drawn from the errors, with the truth and the answer below each, in red.
"""

import random
import sys
from pathlib import Path

import numpy
from PIL import Image, ImageDraw

COLUMNS, ROWS = 16, 2
ZOOM, MARGIN, LINE = 2, 4, 14
SIDE = 28 * ZOOM


def main(folder, classes_path, picture_path):
    paths = sorted(Path(folder).glob("digits/test/*/*.png"))
    said = numpy.load(classes_path)
    assert len(said) == len(paths), (len(said), len(paths))
    truths = [int(path.parent.name) for path in paths]
    wrong = [i for i, truth in enumerate(truths) if said[i] != truth]
    draw = random.Random(1)
    shown = draw.sample(range(len(paths)), COLUMNS * ROWS)
    shown += draw.sample(wrong, min(COLUMNS, len(wrong)))
    rows = -(-len(shown) // COLUMNS)
    picture = Image.new(
        "RGB", (COLUMNS * (SIDE + MARGIN) + MARGIN, rows * (SIDE + LINE + MARGIN)), "white"
    )
    pen = ImageDraw.Draw(picture)
    for place, index in enumerate(shown):
        x = MARGIN + place % COLUMNS * (SIDE + MARGIN)
        y = MARGIN + place // COLUMNS * (SIDE + LINE + MARGIN)
        picture.paste(Image.open(paths[index]).resize((SIDE, SIDE), Image.BILINEAR), (x, y))
        right = said[index] == truths[index]
        text = f"{said[index]}" if right else f"{truths[index]} as {said[index]}"
        width = pen.textlength(text)
        pen.text((x + (SIDE - width) / 2, y + SIDE + 1), text, "black" if right else "red")
    picture.quantize(64).save(picture_path, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
