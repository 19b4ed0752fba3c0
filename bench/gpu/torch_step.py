"""Steps of one network in PyTorch on a GPU (forward, loss, backward), timed by the device. Prints one
JSON object: the median in milliseconds, and the most that tensors held.

Usage: torch_step.py NETWORK INPUT [--dtype tf32|bf16|float32] [--compile] [--warmup N] [--steps N]

Images have their channels last, cuDNN chooses its algorithms by measurement, and bf16 is autocast's:
weights stay in float32, as Tessera's do.
"""

import argparse
import contextlib
import json
import statistics
import sys
from pathlib import Path

import torch
import torch.nn.functional as functional

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "peers"))
from torch_step import network_of  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("network")
    parser.add_argument("input")
    parser.add_argument("--dtype", default="tf32", choices=("tf32", "bf16", "float32"))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--warmup", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    options = parser.parse_args()
    print(json.dumps(time_steps(options)))


def numbers_of(dtype):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    if dtype == "bf16":
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return contextlib.nullcontext()


def time_steps(options):
    numbers = numbers_of(options.dtype)
    shape = tuple(map(int, options.input.split("x")))
    form = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    network = network_of(options.network).cuda().train().to(memory_format=form)
    x = torch.randn(*shape, device="cuda").contiguous(memory_format=form)
    with torch.no_grad(), numbers:
        scores = scores_of(network(x))
    target = torch.randint(0, scores.shape[1], (shape[0], *scores.shape[2:]), device="cuda")
    del scores
    run = torch.compile(network) if options.compile else network
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(options.warmup + options.steps):
        network.zero_grad(set_to_none=True)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        with numbers:
            loss = functional.cross_entropy(scores_of(run(x)).float(), target)
        loss.backward()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return {"median_ms": statistics.median(times[options.warmup:]),
            "peak_bytes": torch.cuda.max_memory_allocated()}


def scores_of(output):
    """Inception has an output beside the one that counts."""
    return getattr(output, "logits", output)


if __name__ == "__main__":
    main()
