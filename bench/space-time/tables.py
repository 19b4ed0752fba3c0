#!/usr/bin/env python3
"""The tables of README.md from results.csv and predicted.csv, as Markdown.

    python3 bench/space-time/tables.py
"""

from plot import newest, read


def one_worker(rows):
    return next((float(row["seconds"]) for row in rows if row["way"] == "one worker"), None)


def times(rows, seconds):
    one = one_worker(rows)
    return "" if one is None else f"{one / seconds:.2f}"


def mib(row):
    return f"{int(row['fullest_bytes']) / 2**20:.0f}"


def options_of(multigrid):
    return dict(word.split("=") for word in multigrid.split(","))


def layers_table(rows):
    print("| workers | levels | coarsening | relax | V-cycles | step (s) | times as fast | loss error "
          "| gradient error | fullest worker (MiB) |")
    print("|---:|---:|---:|---|---|---:|---:|---:|---:|---:|")
    for row in sorted(rows, key=lambda r: -int(r["workers"])):
        seconds = float(row["seconds"])
        if not row["multigrid"]:
            print(f"| 1 | | | | | {one_worker(rows):.3f} | 1 | 0 | 0 | {mib(row)} |")
            break
        options = options_of(row["multigrid"])
        skipped = ", first skipped" if options.get("skip") == "yes" else ""
        print(f"| {row['workers']} | {options['levels']} | {options['coarsening']} "
              f"| {options['relax']} | {options['forward']}/{options['backward']}{skipped} "
              f"| {seconds:.3f} | {times(rows, seconds)} | {float(row['loss_error']):.1e} "
              f"| {float(row['gradient_error']):.1e} | {mib(row)} |")


def scaling_table(rows):
    print("| workers | input | layers | norm | way | space | slices | step (s) | times as fast "
          "| fullest worker (MiB) |")
    print("|---:|---|---:|---|---|---|---:|---:|---:|---:|")
    for row in sorted(rows, key=lambda r: (r["norm"] != "none", int(r["workers"]))):
        seconds = float(row["seconds"])
        # Problems that grow with the workers are not the one worker's.
        fast = times(rows, seconds) if row["table"] == "strong" else ""
        print(f"| {row['workers']} | {row['input']} | {row['layers']} | {row['norm']} | {row['way']} "
              f"| {row['space']} | {row['slices']} | {seconds:.4f} | {fast} | {mib(row)} |")


def predicted_table(rows):
    print("| workers | space (s) | layers (s) | space x layers (s) | its slices |")
    print("|---:|---:|---:|---:|---:|")
    of = {(int(row["workers"]), row["way"]): row for row in rows}
    for workers in sorted({workers for workers, _ in of}):
        cells = [of.get((workers, way)) for way in ("space", "layers", "space x layers")]
        seconds = [f"{float(cell['seconds']):.4f}" if cell else "" for cell in cells]
        print(f"| {workers} | {' | '.join(seconds)} | {cells[2]['slices'] if cells[2] else ''} |")


def main():
    rows = newest(read("results.csv"))
    for table, show in (("layers", layers_table), ("weak", scaling_table),
                        ("strong", scaling_table)):
        of = [row for row in rows if row["table"] == table]
        if of:
            print(f"\n{table}\n")
            show(of)
    predicted = read("predicted.csv")
    if predicted:
        print("\npredicted\n")
        predicted_table(predicted)


if __name__ == "__main__":
    main()
