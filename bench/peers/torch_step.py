"""Steps of one network in PyTorch (forward, loss, backward), timed. Prints one JSON object.

Usage: torch_step.py NETWORK INPUT [--channels-last] [--threads N] [--warmup N] [--steps N]
                                   [--save FILE]

Networks are those of run.py's table; `empty` makes nothing, and tells the memory of the process. --save
writes the network as TorchScript instead.
"""

import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn.functional as functional
from torch import nn


def convolutions(dims):
    names = ("Conv", "ConvTranspose", "BatchNorm", "MaxPool")
    return [getattr(nn, f"{name}{dims}d") for name in names]


def block(dims, channels_in, channels_out, norm):
    conv, _, batch_norm, _ = convolutions(dims)
    layers = []
    for channels in (channels_in, channels_out):
        layers.append(conv(channels, channels_out, 3, padding=1, bias=not norm))
        if norm:
            layers.append(batch_norm(channels_out))
        layers.append(nn.ReLU(inplace=True))
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """The zoo's unet2d and unet3d: depth levels, a transposed convolution on the way up."""

    def __init__(self, dims, base, depth, norm, channels, classes=2):
        super().__init__()
        conv, transposed, _, pool = convolutions(dims)
        widths = [base * 2**level for level in range(depth)]
        pairs = list(zip(widths[:-1], widths[1:]))
        self.pool = pool(2)
        self.down = nn.ModuleList(
            [block(dims, i, o, norm) for i, o in [(channels, base), *pairs]])
        self.up = nn.ModuleList([transposed(o, i, 2, stride=2) for i, o in reversed(pairs)])
        self.merge = nn.ModuleList([block(dims, o, i, norm) for i, o in reversed(pairs)])
        self.head = conv(base, classes, 1)

    def forward(self, x):
        skips = []
        for level, down in enumerate(self.down):
            x = down(self.pool(x) if level > 0 else x)
            skips.append(x)
        skips.pop()
        for up, merge in zip(self.up, self.merge):
            x = merge(torch.cat([skips.pop(), up(x)], 1))
        return self.head(x)


def chain3d(channels=16, layers=8):
    parts = []
    for layer in range(layers):
        parts += [nn.Conv3d(channels if layer else 1, channels, 3, padding=1), nn.ReLU(inplace=True)]
    return nn.Sequential(*parts, nn.Conv3d(channels, 2, 1))


def network_of(name):
    if name in ("vgg19", "resnet50", "mobilenet_v2", "inception_v3"):
        import torchvision  # slow to import

        return getattr(torchvision.models, name)()
    return {
        "unet2d": lambda: UNet(2, 64, 5, True, 3),
        "unet2d_base32": lambda: UNet(2, 32, 5, True, 3),
        "unet2d_no_norm": lambda: UNet(2, 64, 5, False, 3),
        "unet3d": lambda: UNet(3, 32, 4, True, 1),
        "chain3d": chain3d,
    }[name]()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("network")
    parser.add_argument("input")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--warmup", type=int, default=1)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--save")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.save:
        torch.jit.script(network_of(options.network)).save(options.save)
        return
    seconds = [0.0]
    if options.network != "empty":
        seconds = time_steps(options)
    print(json.dumps({
        "seconds": statistics.median(seconds),
        "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }))


def time_steps(options):
    network = network_of(options.network).train()
    x = torch.randn(*map(int, options.input.split("x")))
    if options.channels_last:
        form = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
        network, x = network.to(memory_format=form), x.contiguous(memory_format=form)
    with torch.no_grad():
        out = network.eval()(x[:1])
    network.train()
    target = torch.randint(0, out.shape[1], (x.shape[0], *out.shape[2:]))
    del out
    seconds = []
    for _ in range(options.warmup + options.steps):
        network.zero_grad(set_to_none=True)
        begin = time.perf_counter()
        functional.cross_entropy(network(x), target).backward()
        seconds.append(time.perf_counter() - begin)
    return seconds[options.warmup:]


if __name__ == "__main__":
    main()
