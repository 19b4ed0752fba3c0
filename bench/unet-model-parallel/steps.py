"""Time of a step on the study's placements: one image, one stage at work at a time."""

import sys

from program import ONE_IMAGE, STUDY, job, load, require_equal_loss, require_predicted


def measure_point(tessera, model, edge, placement, options):
    arguments = job(model, ONE_IMAGE, edge, placement)
    before = load()
    answer = tessera.call("bench", *arguments, "--iterations", str(options.iterations), "--warmup", "1",
                          "--threads", str(options.threads))
    what = f"{model} {ONE_IMAGE.input(edge)}, {placement.name}"
    require_predicted(tessera.plan(model, ONE_IMAGE, edge, placement), answer, what)
    answer["load"] = before
    print(f"measured {what}: {answer['median_ms']:.0f} ms, bytes as predicted; load {before}", file=sys.stderr)
    return answer


def measure(tessera, model, edges, options):
    rows = []
    for edge in edges:
        one = None
        for placement in STUDY:
            answer = measure_point(tessera, model, edge, placement, options)
            one = one or answer
            require_equal_loss(one["loss"], answer["loss"], f"{placement.name}, {edge}")
            rows.append({"model": model, "edge": edge, "placement": placement.name,
                         "workers": answer["ranks"], "threads": options.threads,
                         "median_ms": round(answer["median_ms"], 2), "p10_ms": round(answer["p10_ms"], 2),
                         "p90_ms": round(answer["p90_ms"], 2),
                         "against_one": round(answer["median_ms"] / one["median_ms"], 3),
                         "workspace_bytes": max(answer["workspace_bytes"]),
                         "sent_bytes": sum(answer["bytes_sent"]), "messages": sum(answer["messages"]),
                         "load": answer["load"], "iterations": options.iterations})
    return rows


def markdown(rows):
    edges = sorted({r["edge"] for r in rows})
    lines = ["| image | " + " | ".join(f"{p.name} (ms)" for p in STUDY) + " | naive / sequential "
             "| memory-aware / sequential | sent, naive (MiB) | sent, memory-aware (MiB) |",
             "|---:|" + "---:|" * (len(STUDY) + 4)]
    of = {(r["placement"], r["edge"]): r for r in rows}
    for edge in edges:
        cells = [f"{of[p.name, edge]['median_ms']:.0f}" for p in STUDY]
        cells += [f"{of[p.name, edge]['against_one']:.2f}" for p in STUDY[1:]]
        cells += [f"{of[p.name, edge]['sent_bytes'] / 2**20:.1f}" for p in STUDY[1:]]
        lines.append(f"| {edge}² | " + " | ".join(cells) + " |")
    return "\n".join(lines)
