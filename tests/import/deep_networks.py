"""Deep networks with batch norm after every convolution, at small width: one rounding grows in them
from layer to layer, and far more after an update."""

import torch
import torch.nn.functional as F
from torch import nn


class ConvNormRelu(nn.Sequential):
    def __init__(self, in_channels, out_channels, dilation=1):
        super().__init__(
            nn.Conv2d(in_channels, out_channels, 3, padding=dilation, dilation=dilation),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )


def resized_like(x, other):
    return F.interpolate(x, size=other.shape[2:], mode="bilinear", align_corners=False)


class ResidualU(nn.Module):
    """A block of U²-Net: a small U-Net of its own, added to what goes in. The coarsest level is
    dilated; with `flat` all levels are, and nothing is pooled."""

    def __init__(self, depth, in_channels, middle, out_channels, flat=False):
        super().__init__()
        self.flat = flat
        self.first = ConvNormRelu(in_channels, out_channels)
        levels = [
            ConvNormRelu(middle if i else out_channels, middle, 2**i if flat else 1)
            for i in range(depth - 1)
        ]
        self.down = nn.ModuleList(levels)
        self.bottom = ConvNormRelu(middle, middle, 2 ** (depth - 1) if flat else 2)
        self.up = nn.ModuleList(
            ConvNormRelu(2 * middle, middle if i else out_channels, 2**i if flat else 1)
            for i in range(depth - 1)
        )

    def forward(self, x):
        x = self.first(x)
        skips, y = [], x
        for i, level in enumerate(self.down):
            if i > 0 and not self.flat:
                y = F.max_pool2d(y, 2, stride=2, ceil_mode=True)
            y = level(y)
            skips.append(y)
        y = self.bottom(y)
        for i in range(len(self.up) - 1, -1, -1):
            y = self.up[i](torch.cat((resized_like(y, skips[i]), skips[i]), dim=1))
        return x + y


class U2Net(nn.Module):
    """U²-Net: a U-Net whose every block is one; a map from each level, and one of all of them."""

    def __init__(self, width=4):
        super().__init__()
        depths, flat = [7, 6, 5, 4, 4, 4], [False, False, False, False, True, True]
        self.encoder = nn.ModuleList(
            ResidualU(d, 2 * width if i else 3, width, 2 * width, f)
            for i, (d, f) in enumerate(zip(depths, flat))
        )
        self.decoder = nn.ModuleList(
            ResidualU(d, 4 * width, width, 2 * width, f) for d, f in zip(depths[:5], flat[:5])
        )
        self.side = nn.ModuleList(nn.Conv2d(2 * width, 1, 3, padding=1) for _ in depths)
        self.fuse = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        skips = []
        y = x
        for i, block in enumerate(self.encoder):
            if i > 0:
                y = F.max_pool2d(y, 2, stride=2, ceil_mode=True)
            y = block(y)
            skips.append(y)
        maps = [self.side[5](y)]
        for i in range(4, -1, -1):
            y = self.decoder[i](torch.cat((resized_like(y, skips[i]), skips[i]), dim=1))
            maps.append(self.side[i](y))
        maps = [resized_like(one, x) for one in maps]
        return self.fuse(torch.cat(maps, dim=1)), maps[5], maps[4], maps[3], maps[2], maps[1], maps[0]


class Recurrent(nn.Module):
    """The same convolution and norm several times, each time on the input plus the last result."""

    def __init__(self, channels, times=2):
        super().__init__()
        self.times = times
        self.conv = ConvNormRelu(channels, channels)

    def forward(self, x):
        y = self.conv(x)
        for _ in range(self.times):
            y = self.conv(x + y)
        return y


class RecurrentResidual(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.enter = nn.Conv2d(in_channels, out_channels, 1)
        self.body = nn.Sequential(Recurrent(out_channels), Recurrent(out_channels))

    def forward(self, x):
        x = self.enter(x)
        return x + self.body(x)


class Gate(nn.Module):
    def __init__(self, channels):
        super().__init__()
        half = max(channels // 2, 1)
        self.of_gate = nn.Sequential(nn.Conv2d(channels, half, 1), nn.BatchNorm2d(half))
        self.of_skip = nn.Sequential(nn.Conv2d(channels, half, 1), nn.BatchNorm2d(half))
        self.psi = nn.Sequential(nn.Conv2d(half, 1, 1), nn.BatchNorm2d(1), nn.Sigmoid())

    def forward(self, gate, skip):
        return skip * self.psi(F.relu(self.of_gate(gate) + self.of_skip(skip)))


class R2AttentionUNet(nn.Module):
    """Recurrent residual blocks in a U-Net with attention gates on its skips."""

    def __init__(self, width=4, depth=5):
        super().__init__()
        channels = [width * 2**i for i in range(depth)]
        self.encoder = nn.ModuleList(
            RecurrentResidual(channels[i - 1] if i else 3, channels[i]) for i in range(depth)
        )
        finer = channels[:-1]
        self.up = nn.ModuleList(ConvNormRelu(2 * c, c) for c in finer)
        self.gate = nn.ModuleList(Gate(c) for c in finer)
        self.decoder = nn.ModuleList(RecurrentResidual(2 * c, c) for c in finer)
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.encoder):
            x = block(F.max_pool2d(x, 2) if i else x)
            skips.append(x)
        for i in range(len(self.up) - 1, -1, -1):
            y = self.up[i](F.interpolate(x, scale_factor=2.0, mode="nearest"))
            x = self.decoder[i](torch.cat((self.gate[i](y, skips[i]), y), dim=1))
        return self.head(x)
