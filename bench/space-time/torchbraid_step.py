"""Time of a step of a residual chain by PyTorch or, under mpirun, by TorchBraid, as one JSON line.

    torchbraid_step.py --save FILE            the chain as TorchScript, for Tessera; image and target
    torchbraid_step.py                        PyTorch, layer after layer
    mpirun -n P torchbraid_step.py --braid    TorchBraid, 2 levels, F on the fine one, the first cycle skipped

A step is forward, the mean of the squares as loss, and backward: the median of --steps after one.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy
import torch


def options_of():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save")
    parser.add_argument("--braid", action="store_true")
    parser.add_argument("--layers", type=int, default=64)
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--coarsening", type=int, default=4)
    parser.add_argument("--forward", type=int, default=2)
    parser.add_argument("--backward", type=int, default=1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


class Change(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(x))


class Layer(torch.nn.Module):
    def __init__(self, channels, step):
        super().__init__()
        self.change = Change(channels)
        self.step = step

    def forward(self, x):
        return x + self.step * self.change(x)


def chain(options):
    return torch.nn.Sequential(
        *[Layer(options.channels, 1 / options.layers) for _ in range(options.layers)])


def braided(options, comm):
    import torchbraid
    network = torchbraid.LayerParallel(comm, lambda: Change(options.channels), options.layers, 1.0,
                                       max_fwd_levels=2, max_bwd_levels=2,
                                       max_iters=options.forward)
    network.setFwdMaxIters(options.forward)
    network.setBwdMaxIters(options.backward)
    network.setPrintLevel(0, True)
    network.setPrintLevel(0, False)
    network.setCFactor(options.coarsening)
    network.setSkipDowncycle(True)
    network.setNumRelax(1)
    network.setNumRelax(0, level=0)
    return network


def timed(network, x, barrier, rank):
    for parameter in network.parameters():
        parameter.grad = None
    image = x.clone().requires_grad_(True)
    barrier()
    begin = time.perf_counter()
    out = network(image)
    # The state at the end is on the last rank; the others' outputs have no part in the loss.
    out.backward(2 * out.detach() / out.numel())
    barrier()
    return time.perf_counter() - begin, image.grad


def gradients_of(network):
    return [parameter.grad.clone() for parameter in network.parameters()]


def error(found, right):
    squares = sum(float((a - b).double().square().sum()) for a, b in zip(found, right))
    return (squares / sum(float(b.double().square().sum()) for b in right)) ** 0.5


def main():
    options = options_of()
    torch.set_num_threads(options.threads)
    shape = (options.batch, options.channels, options.size, options.size)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    if options.save:
        torch.manual_seed(2)
        torch.jit.script(chain(options)).save(options.save)
        numpy.save(Path(options.save).with_name("image.npy"), x.numpy())
        numpy.save(Path(options.save).with_name("target.npy"), 0 * x.numpy())
        return
    rank, comm = 0, None
    if options.braid:
        from mpi4py import MPI
        comm = MPI.COMM_WORLD
        rank = comm.rank
    torch.manual_seed(2 + rank)  # every rank draws the weights of its own layers
    network = braided(options, comm) if options.braid else chain(options)
    barrier = comm.Barrier if comm else lambda: None
    seconds = [timed(network, x, barrier, rank)[0] for _ in range(options.steps + 1)][1:]
    report = {"seconds": statistics.median(seconds)}
    if options.braid:
        own = gradients_of(network)
        serial = network.buildSequentialOnRoot()
        every = comm.gather(own, root=0)
        if rank == 0:
            timed(serial, x, lambda: None, 0)
            report["gradient_error"] = error([g for each in every for g in each],
                                             gradients_of(serial))
    if rank == 0:
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main()
