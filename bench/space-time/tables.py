#!/usr/bin/env python3
"""The tables of README.md from results.csv, predicted.csv and checked.csv, as Markdown.

    python3 bench/space-time/tables.py
"""

from cases import NORMS
from plot import newest, read


def one_worker(rows, **of):
    return next((float(row["seconds"]) for row in rows if row["way"] == "one worker"
                 and all(row[key] == value for key, value in of.items())), None)


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


def scaling_table(rows, heading, ratio):
    """`ratio`: of a row's seconds to those of one worker, whose norm is the same."""
    print(f"| workers | input | layers | norm | way | space | slices | step (s) | {heading} "
          "| fullest worker (MiB) |")
    print("|---:|---|---:|---|---|---|---:|---:|---:|---:|")
    for row in sorted(rows, key=lambda r: (r["norm"] != "none", int(r["workers"]))):
        seconds, one = float(row["seconds"]), one_worker(rows, norm=row["norm"])
        space = row["space"] if set(row["space"]) & set("23456789") else ""
        print(f"| {row['workers']} | {row['input']} | {row['layers']} | {row['norm']} | {row['way']} "
              f"| {space} | {row['slices']} | {seconds:.4g} | {ratio(seconds, one):.2f} "
              f"| {mib(row)} |")


def predicted_table(rows, latency, norm):
    print(f"\npredicted, norm {norm}, messages of {latency} us\n")
    print("| workers | space (s) | layers (s) | space x layers (s) | its slices | its grid |")
    print("|---:|---:|---:|---:|---:|---|")
    of = {(int(row["workers"]), row["way"]): row for row in rows
          if row["norm"] == norm and row["latency"] == latency}
    for workers in sorted({workers for workers, _ in of}):
        cells = [of.get((workers, way)) for way in ("space", "layers", "space x layers")]
        seconds = [f"{float(cell['seconds']):.4g}" if cell else "" for cell in cells]
        both = cells[2]
        print(f"| {workers} | {' | '.join(seconds)} | {both['slices'] if both else ''} "
              f"| {both['space'] if both else ''} |")


def checked_table(rows):
    """Predicted beside measured: of the placements of a way, the least and the most."""
    latencies = list(dict.fromkeys(row["latency"] for row in rows))
    print("| table | workers | way | " + " | ".join(f"messages of {each} us" for each in latencies)
          + " |")
    print("|---|---:|---|" + "---|" * len(latencies))
    of = {}
    for row in rows:
        ratios = of.setdefault((row["table"], int(row["workers"]), row["way"]), {})
        ratio = f"{float(row['predicted']) / float(row['measured']):.2f}"
        ratios.setdefault(row["latency"], set()).add(ratio)
    for (table, workers, way), ratios in sorted(of.items()):
        cells = [" to ".join(sorted({min(ratios[each]), max(ratios[each])})) for each in latencies]
        print(f"| {table} | {workers} | {way} | {' | '.join(cells)} |")


def main():
    rows = newest(read("results.csv"))
    of = {table: [row for row in rows if row["table"] == table]
          for table in ("layers", "weak", "strong")}
    print("\nlayers\n")
    layers_table(of["layers"])
    print("\nweak\n")
    scaling_table(of["weak"], "of one worker's step", lambda seconds, one: seconds / one)
    print("\nstrong\n")
    scaling_table(of["strong"], "times as fast", lambda seconds, one: one / seconds)
    predicted = read("predicted.csv")
    for latency in dict.fromkeys(row["latency"] for row in predicted):
        for norm in NORMS:
            predicted_table(predicted, latency, norm)
    print("\nchecked\n")
    checked_table(read("checked.csv"))


if __name__ == "__main__":
    main()
