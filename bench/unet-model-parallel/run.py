#!/usr/bin/env python3
"""U-Net training on eight workers: how large an image, how long a step, how much faster.

    python3 bench/unet-model-parallel/run.py             what fits, predicted: memory.csv, fits.csv
    python3 bench/unet-model-parallel/run.py --measure   time of a step: steps.csv
    python3 bench/unet-model-parallel/run.py --pipeline  speed-up of a pipeline: pipeline.csv

Each writes its files beside this one (or to --output) and prints README's tables. Predictions come
from `tessera plan`, times from `tessera bench`. Measured bytes and messages must be the predicted
ones on every worker, and the loss that of one worker, or the script fails.
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True  # before our own modules: leave no cache in the working tree
import memory
import pipeline
import steps
from program import Tessera, load_and_cores, write_csv

HERE = pathlib.Path(__file__).resolve().parent
MEMORY_EDGES = (64, 128, 256, 512, 768, 1024, 1536, 2048)
MEASURED_EDGES = (64, 128, 256, 512, 768, 1024)


def numbers(text):
    return [int(part) for part in text.split(",")]


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tessera", default=str(HERE.parents[1] / "build" / "tessera"))
    parser.add_argument("--output", type=pathlib.Path, default=HERE, help="folder for the CSV files")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--measure", action="store_true", help="time steps of the study's placements")
    mode.add_argument("--pipeline", action="store_true", help="time pipelines of 1, 2, 4 and 8 stages")
    parser.add_argument("--sizes", type=numbers, help="image sizes, 64,128,256; of --pipeline one")
    parser.add_argument("--base", type=int,
                        help="channels of the first level (64; --measure 16, --pipeline 32)")
    parser.add_argument("--iterations", type=int, default=3, help="timed steps after one of warm-up")
    parser.add_argument("--threads", type=int, default=1, help="per worker, of --measure")
    parser.add_argument("--batch", type=int, default=32, help="of --pipeline")
    parser.add_argument("--micro-batches", type=int, default=32, help="of --pipeline")
    parser.add_argument("--balance", default="time", help="of --pipeline")
    return parser.parse_args()


def main():
    options = parse_options()
    tessera = Tessera(options.tessera)
    folder = options.output
    if options.pipeline:
        model = f"unet2d:base={options.base or 32},norm=none"
        rows = pipeline.measure(tessera, model, (options.sizes or [128])[0], options)
        write_csv(folder / "pipeline.csv", rows)
        print(pipeline.markdown(rows))
    elif options.measure:
        model = f"unet2d:base={options.base or 16}"
        rows = steps.measure(tessera, model, options.sizes or MEASURED_EDGES, options)
        write_csv(folder / "steps.csv", rows)
        print(steps.markdown(rows))
    else:
        model = f"unet2d:base={options.base or 64}"
        rows = memory.predict(tessera, model, options.sizes or MEMORY_EDGES)
        write_csv(folder / "memory.csv", rows)
        fits = memory.largest_images(tessera, model)
        write_csv(folder / "fits.csv", fits)
        print(memory.markdown(rows, fits))
    print(f"finished at {load_and_cores()}", file=sys.stderr)


if __name__ == "__main__":
    main()
