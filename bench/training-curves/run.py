"""Loss curves of a U-Net on a real photograph, with direct convolutions and with tiles.

Usage: run.py PATH_OF_TESSERA [FOLDER]     (needs Debian's python3-skimage, for the photograph)

Trains the network of the walk-through "retina" (examples/walkthroughs) five times: from one seed
with --convolution direct and auto, and direct on a grid of 2x2, where the same numbers are added in
another order; and direct and auto from another seed. So what tiles change can be compared with what
any rounding changes, and with what a seed changes. Prints a table and writes curves.svg and
curves.csv beside this file.
"""

import csv
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "examples/walkthroughs/retina_data.py"
# Method, seed, grid.
RUNS = [("direct", 1, "1x1"), ("auto", 1, "1x1"), ("direct", 1, "2x2"), ("direct", 2, "1x1"),
        ("auto", 2, "1x1")]
EVERY = 20  # steps of a row of the table, and of the mean in the picture
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 790, 380, 56, 180, 40, 44
COLOURS = ("#1b1b1b", "#e08214", "#5aae61", "#8cb3d9", "#2166ac")
WIDTHS = (3.2, 1.4, 1.4, 3.2, 1.4)
STYLES = {run: f'stroke="{colour}" stroke-width="{width}"'
          for run, colour, width in zip(RUNS, COLOURS, WIDTHS)}


def name_of(run):
    method, seed, grid = run
    return f"{method}, seed {seed}" + (f", {grid}" if grid != "1x1" else "")


def train(program, folder, method, seed, grid):
    """The loss of every step, and the Dice of the vessels in the half that was not trained on."""
    run = folder / f"{method}-{seed}-{grid}"
    subprocess.run(
        [program, "train", "unet2d:base=8,depth=4,classes=2", "--input", "4x3x128x128",
         "--data", "folder:data", "--validation-fraction", "0", "--normalise", "scale",
         "--augment", "flip+rotate90", "--crop-centres", "foreground:share=0.7",
         "--patches-per-image", "160", "--epochs", "4", "--optimiser", "adamw",
         "--learning-rate", "0.003", "--learning-rate-schedule", "cosine",
         "--loss", "cross_entropy+dice", "--threads", "1", "--log-interval", "1",
         "--convolution", method, "--seed", str(seed), "--space", grid, "--run", run.name],
        cwd=folder, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    with open(run / "metrics.csv") as file:
        losses = [float(row["loss"]) for row in csv.DictReader(file) if row["loss"]]
    scores = subprocess.run([program, "evaluate", run.name, "--data", "folder:data/test", "--json"],
                            cwd=folder, check=True, capture_output=True, text=True).stdout
    return losses, json.loads(scores)["classes"][1]["dice"]


def means(losses, count):
    return [sum(losses[i:i + count]) / count for i in range(0, len(losses) - count + 1, count)]


def text(x, y, content, anchor="middle", extra=""):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{extra}>{content}</text>'


def picture(curves):
    """Means of five steps: single ones differ by their patches."""
    lines = {run: means(losses, 5) for run, losses in curves.items()}
    count, high = len(next(iter(lines.values()))), max(map(max, lines.values()))

    def place(index, loss):
        return (f"{LEFT + index / (count - 1) * (WIDTH - LEFT - RIGHT):.1f} "
                f"{HEIGHT - BOTTOM - loss / high * (HEIGHT - TOP - BOTTOM):.1f}")

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
           'font-family="sans-serif" font-size="11.5" fill="#222">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           text(LEFT, 20, "Loss in training (means of five steps), U-Net on a retina", "start",
                ' font-size="14" font-weight="bold"')]
    tenth = 0
    while tenth * 0.2 <= high:
        x, y = place(0, tenth * 0.2).split()
        out.append(f'<path d="M{x} {y}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        out.append(text(LEFT - 6, float(y) + 4, f"{tenth * 0.2:.1f}", "end"))
        tenth += 1
    for index in range(0, count, max(1, count // 8)):
        out.append(text(place(index, 0).split()[0], HEIGHT - BOTTOM + 18, index * 5))
    out.append(text((LEFT + WIDTH - RIGHT) // 2, HEIGHT - 8, "step"))
    for number, (run, line) in enumerate(lines.items()):
        path = "L".join(place(index, loss) for index, loss in enumerate(line))
        out.append(f'<path d="M{path}" fill="none" {STYLES[run]}/>')
        y = TOP + 24 * number + 10
        out.append(f'<path d="M{WIDTH - RIGHT + 14} {y}h26" {STYLES[run]}/>')
        out.append(text(WIDTH - RIGHT + 46, y + 4, name_of(run), "start"))
    return "\n".join(out + ["</svg>", ""])


def main(program, folder):
    program = Path(program).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, DATA, folder / "data"], check=True)
    curves, dice = {}, {}
    for run in RUNS:
        curves[run], dice[run] = train(program, folder, *run)
    with open(HERE / "curves.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        names = [name_of(run).replace(", ", "_").replace(" ", "") for run in RUNS]
        writer.writerow(["step"] + names)
        writer.writerows([step + 1, *row] for step, row in enumerate(zip(*curves.values())))
    (HERE / "curves.svg").write_text(picture(curves))
    print("| steps | " + " | ".join(map(name_of, RUNS)) + " |")
    print("|---|" + "---:|" * len(RUNS))
    for index, row in enumerate(zip(*(means(losses, EVERY) for losses in curves.values()))):
        print(f"| {index * EVERY + 1} to {(index + 1) * EVERY} | " +
              " | ".join(f"{loss:.4f}" for loss in row) + " |")
    print("| Dice of the vessels, test | " + " | ".join(f"{dice[run]:.4f}" for run in RUNS) + " |")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2] if len(sys.argv) > 2 else "runs/training-curves"))
