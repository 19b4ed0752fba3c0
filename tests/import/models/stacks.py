"""torch.stack and what comes after it; copies along channels and space; channels of zeros."""

from typing import List

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


class Branches(nn.Module):
    def __init__(self, count=3):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.branches = nn.ModuleList(
            [nn.Conv2d(4, 4, 3, padding=i + 1, dilation=i + 1) for i in range(count)]
        )

    def features(self, x):
        x = self.stem(x)
        features: List[torch.Tensor] = []
        for branch in self.branches:
            features.append(F.relu(branch(x)))
        return features


@case((2, 3, 13, 16), loss="mse")
class StackedBranches(Branches):
    """Sums, means and maxima of branches; ReLU makes many of them equal."""

    def forward(self, x):
        features = self.features(x)
        total = torch.stack(features, dim=0).sum(dim=0)
        mean = torch.stack(features).mean(0)
        largest, _ = torch.stack(features, dim=1).max(dim=1)
        pair = torch.stack([total, mean], dim=-1).amax(-1)
        last = torch.stack(features, dim=2)[:, :, -1]
        first, second, third = torch.stack(features, dim=1).unbind(1)
        return total * mean + largest - pair + 0.5 * last + first - second * third


@case((2, 3, 16, 13), loss="mse")
class SelectiveKernel(Branches):
    """SKNet: a softmax over branches weighs them."""

    def __init__(self):
        super().__init__(2)
        self.squeeze = nn.Conv2d(4, 3, 1)
        self.excite = nn.ModuleList([nn.Conv2d(3, 4, 1) for _ in range(2)])

    def forward(self, x):
        stack = torch.stack(self.features(x), dim=1)
        squeezed = F.relu(self.squeeze(stack.sum(1).mean([2, 3], keepdim=True)))
        weights: List[torch.Tensor] = []
        for excite in self.excite:
            weights.append(excite(squeezed))
        attention = torch.softmax(torch.stack(weights, dim=1), dim=1)
        return (stack * attention).sum(dim=1)


@case((2, 3, 12, 11), loss="mse")
class StackOfChannels(Branches):
    """Stacks that become channels: interleaved, one after the other, of maps without channels."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(12, 4, 3, padding=1, groups=2)
        self.mix2 = nn.Conv2d(12, 4, 1, groups=4)
        self.head = nn.Conv2d(3, 2, 1)

    def forward(self, x):
        features = self.features(x)
        n, c, h, w = features[0].shape
        a = self.mix(torch.stack(features, dim=1).view(n, 3 * c, h, w))
        b = self.mix2(torch.stack(features, dim=2).flatten(1, 2))
        maps: List[torch.Tensor] = [a.mean(1), b.amax(1), (a * b)[:, 1]]
        return self.head(torch.stack(maps, dim=1))


@case((2, 2, 10, 12), loss="mse")
class Copies(nn.Module):
    """repeat and expand where other operators than arithmetic read them."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)
        self.one = nn.Conv2d(3, 1, 1)
        self.mix = nn.Conv2d(3 + 3 + 3 + 6 + 6, 3, 3, padding=1)

    def forward(self, x):
        x = torch.tanh(self.conv(x))
        n, c, h, w = x.shape
        one = self.one(x)
        pooled = F.adaptive_avg_pool2d(x, 1)
        parts = [
            x,
            one.repeat(1, 3, 1, 1),
            pooled.expand(-1, -1, h, w),
            x.repeat_interleave(2, dim=1),
            torch.cat([one.expand(n, 3, h, w) ** 2, pooled.repeat(1, 1, h, w)], dim=1),
        ]
        y = self.mix(torch.cat(parts, dim=1))
        both = one.mean([2, 3], keepdim=True).expand_as(y) + pooled.expand_as(y)
        tall = F.max_pool2d(y, 2).repeat_interleave(2, dim=2).tile(1, 1, 1, 2)
        square = pooled.expand_as(y) ** 2
        return y + both.sum([2, 3], keepdim=True) * tall - square.mean([2, 3], keepdim=True)


@case((2, 2, 11, 9), loss="mse")
class ChannelsOfZeros(nn.Module):
    """Shortcuts of the first ResNets: pooled, with channels of zeros to make up the number."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 3, 3, padding=1)
        self.conv2 = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(8, 20, 1)
        self.conv4 = nn.Conv2d(20, 26, 1)

    def forward(self, x):
        x = torch.tanh(self.conv1(x))
        y = self.conv2(x) + F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 2, 3), "constant", 0.5)
        n, c, h, w = y.shape
        zeros = torch.zeros(n, 12, h, w, dtype=y.dtype, device=y.device)
        z = self.conv3(torch.relu(y)) + torch.cat([zeros, y], dim=1)
        more = z.new_zeros([n, 3, h, w])
        z = self.conv4(torch.relu(z)) + torch.cat([more, z, torch.full_like(more, 2.0)], 1)
        z = F.pad(z, (1, 0, 0, 1, -20, 0))
        return z * torch.ones([1], dtype=z.dtype) + torch.zeros_like(z)


@case((2, 3, 11, 10), loss="mse")
class MostOfFour(Branches):
    """Equal maxima share a gradient, however many there are."""

    def forward(self, x):
        a, b, c = self.features(x)
        most = torch.stack([a, F.relu(a), b, c], dim=1).amax(dim=1)
        return most + torch.stack([b, a, b], dim=-1).amax(dim=-1, keepdim=True)[..., 0]


@case((2, 3, 10, 12), loss="mse")
class BesideConstants(nn.Module):
    """Coordinates as channels, rows of zeros, and weights beside tokens."""

    def __init__(self):
        super().__init__()
        rows = torch.linspace(-1, 1, 10).view(1, 1, 10, 1).expand(1, 1, 10, 12)
        columns = torch.linspace(-1, 1, 12).view(1, 1, 1, 12).expand(1, 1, 10, 12)
        self.register_buffer("coordinates", torch.cat([rows, columns], dim=1))
        self.conv = nn.Conv2d(5, 4, 2, stride=2)
        self.tokens = nn.Parameter(torch.randn(1, 3, 4))
        self.mix = nn.Linear(4, 4)
        self.head = nn.Conv2d(4, 2, 3)

    def forward(self, x):
        n = x.size(0)
        x = torch.cat([x, self.coordinates.expand(n, -1, -1, -1)], dim=1)
        x = self.conv(x)
        x = torch.cat([x, torch.zeros(n, 4, 2, 6, dtype=x.dtype)], dim=2)
        y = x.flatten(2).transpose(1, 2)
        y = self.mix(torch.cat([self.tokens.repeat(n, 1, 1), y], dim=1))
        y = y + y[:, :3].sum(dim=1, keepdim=True)
        return self.head(y[:, 3:].transpose(1, 2).reshape(x.shape))
