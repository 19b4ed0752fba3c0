"""Speed-up of a pipeline over one worker that takes the whole batch at once."""

import sys

from program import load, require_equal_loss, require_predicted

STAGES = (1, 2, 4, 8)
SCHEDULES = ("1f1b", "zero-bubble", "interleaved")

# torchgpipe's U-Net (5, 64), throughput against its baseline, by number of GPUs.
TORCHGPIPE = {1: 0.858, 2: 1.246, 4: 2.352, 8: 3.105}


def arguments_of(stages, schedule, options):
    """One worker, one stage: micro-batches alone. Interleaved stages need several to take turns."""
    if stages == 1:
        return ("--micro-batches", str(options.micro_batches)) if schedule == "1f1b" else None
    if schedule == "interleaved" and options.micro_batches % stages != 0:
        return None
    return ("--stages", str(stages), "--micro-batches", str(options.micro_batches),
            "--pipeline-schedule", schedule, "--balance", options.balance)


def measure_point(tessera, base, placement, options):
    before = load()
    answer = tessera.call("bench", *base, *placement, "--threads", "1", "--warmup", "1",
                          "--iterations", str(options.iterations))
    what = " ".join(base + placement)
    require_predicted(tessera.call("plan", *base, *placement), answer, what)
    answer["predicted"] = tessera.predicted_seconds(*base, *placement)
    answer["load"] = before
    print(f"measured {what}: {answer['median_ms']:.0f} ms; load {before}", file=sys.stderr)
    return answer


def row(stages, schedule, micro_batches, answer, one):
    speedup = one["median_ms"] / answer["median_ms"]
    return {"stages": stages, "schedule": schedule, "micro_batches": micro_batches,
            "median_ms": round(answer["median_ms"], 2), "p10_ms": round(answer["p10_ms"], 2),
            "p90_ms": round(answer["p90_ms"], 2), "speedup": round(speedup, 3),
            "efficiency": round(speedup / stages, 3),
            "predicted_speedup": round(one["predicted"] / answer["predicted"], 3),
            "fullest_bytes": max(v + p for v, p in zip(answer["peak_value_bytes"],
                                                       answer["parameter_bytes"])),
            "longest_wait_ms": round(max(answer["blocked_ms"]), 2), "load": answer["load"]}


def measure(tessera, model, edge, options):
    base = (model, "--input", f"{options.batch}x3x{edge}x{edge}")
    one = measure_point(tessera, base, (), options)
    rows = [row(1, "whole batch", 1, one, one)]
    for stages in STAGES:
        for schedule in SCHEDULES:
            placement = arguments_of(stages, schedule, options)
            if placement is None:
                continue
            answer = measure_point(tessera, base, placement, options)
            require_equal_loss(one["loss"], answer["loss"], " ".join(placement))
            rows.append(row(stages, schedule, options.micro_batches, answer, one))
    return rows


def markdown(rows):
    lines = ["| stages | schedule | micro-batches | step (ms) | times as fast | efficiency | predicted "
             "| fullest worker (MiB) | torchgpipe | its efficiency |",
             "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for r in rows:
        stages = r["stages"]
        theirs = " | "
        if r["schedule"] == "1f1b":
            theirs = f"{TORCHGPIPE[stages]:.2f} | {TORCHGPIPE[stages] / stages:.2f}"
        elif r["schedule"] == "whole batch":
            theirs = "1 | 1"
        lines.append(f"| {stages} | {r['schedule']} | {r['micro_batches']} | {r['median_ms']:.0f} "
                     f"| {r['speedup']:.2f} | {r['efficiency']:.2f} | {r['predicted_speedup']:.2f} "
                     f"| {r['fullest_bytes'] / 2**20:.0f} | {theirs} |")
    return "\n".join(lines)
