"""Deep networks with batch norm, in which one rounding grows beyond the fixed limit: `tessera verify`
must pass on every placement, say by what it judged, and not cry wolf.

    python3 conditioning.py build/tessera
"""

import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

import deep_networks
import outside

TIMEOUT_S = 240
FIXED_LIMIT = 1e-10

# A model, its input, and where it runs. Files are traced from this folder's networks.
RUNS = [
    ("resnet50:width=4,classes=10", "2x3x64x64", ["--space", "2x2"]),
    ("inception_v3:width=4,classes=10,aux=no", "2x3x83x79", ["--space", "1x3"]),
    ("u2net.pt", "2x3x64x48", ["--space", "2x2"]),
    ("u2net.pt", "2x3x64x48", ["--replicas", "2", "--stages", "2"]),
    ("r2_attention_unet.pt", "2x3x48x48", ["--space", "3x1"]),
]
FILES = {"u2net.pt": deep_networks.U2Net, "r2_attention_unet.pt": deep_networks.R2AttentionUNet}


def save_networks(folder):
    for name, build in FILES.items():
        torch.manual_seed(3)
        example = torch.randn(2, 3, 64, 48, dtype=torch.double)
        torch.jit.trace(build().double(), example, check_trace=False).save(str(folder / name))


def command(program, folder, run):
    model, size, placement = run
    if model in FILES:
        return [program, "verify", folder / model, "--input", size, "--loss", "bce", *placement]
    return [program, "verify", model, "--input", size, *placement]


def check(program, folder, run):
    """Empty, or what is wrong."""
    began = time.monotonic()
    outcome = outside.run([*command(program, folder, run), "--json"], TIMEOUT_S)
    wrong = ""
    if outcome.code != 0:
        wrong = outcome.describe()
    else:
        wrong = check_report(json.loads(outcome.out))
    print(f"{' '.join([run[0], *run[2]]):<60} {time.monotonic() - began:5.1f} s {wrong or 'ok'}")
    return wrong


def check_report(report):
    judgement = report["judgement"]
    kinds = ("loss", "output", "input_grad", "param_grad", "updated_param", "buffer")
    beyond = any(report[kind + "_rel"] > FIXED_LIMIT for kind in kinds)
    if not report["ok"] or judgement["failure"]:
        return f"not ok: {judgement}"
    if beyond != (judgement["by"] == "conditioning"):
        return f"beyond the limit: {beyond}, but judged by {judgement['by']}"
    if beyond and len(judgement["one_rounding"]) != 2:
        return "what was measured is not said"
    return ""


def main():
    program = sys.argv[1]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="tessera_conditioning_") as temporary:
        folder = Path(temporary)
        save_networks(folder)
        with ThreadPoolExecutor(2) as pool:
            wrongs = list(pool.map(lambda run: check(program, folder, run), RUNS))
    print(f"{len(RUNS)} runs, {sum(map(bool, wrongs))} failed")
    return 1 if any(wrongs) else 0


if __name__ == "__main__":
    sys.exit(main())
