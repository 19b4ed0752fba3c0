"""Weights that forward() computes from parameters: standardised, normalised, by hand and by
torch.nn.utils. The hooks and parametrizations of torch.nn.utils can be traced, not scripted."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations, spectral_norm, weight_norm

from .case import case


class StandardConv(nn.Conv2d):
    """Weight standardisation, as its paper's code has it."""

    def forward(self, x):
        weight = self.weight
        mean = weight.mean(dim=1, keepdim=True).mean(dim=2, keepdim=True).mean(dim=3, keepdim=True)
        weight = weight - mean
        std = weight.view(weight.size(0), -1).std(dim=1).view(-1, 1, 1, 1) + 1e-5
        weight = weight / std.expand_as(weight)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class GroupStandardConv(nn.Conv2d):
    """As BiT has it."""

    def forward(self, x):
        w = self.weight
        v = torch.var(w, dim=[1, 2, 3], keepdim=True, unbiased=False)
        m = torch.mean(w, dim=[1, 2, 3], keepdim=True)
        w = (w - m) / torch.sqrt(v + 1e-10)
        return F.conv2d(x, w, self.bias, self.stride, self.padding, self.dilation, self.groups)


class BatchStandardConv(nn.Conv2d):
    """As timm has it: a batch norm standardises, a gain scales."""

    def __init__(self, *args, **others):
        super().__init__(*args, **others)
        self.gain = nn.Parameter(torch.full((self.out_channels, 1, 1, 1), 1.1))
        self.scale = 0.7

    def forward(self, x):
        weight = F.batch_norm(
            self.weight.reshape(1, self.out_channels, -1),
            None,
            None,
            weight=(self.gain * self.scale).view(-1),
            training=True,
            momentum=0.0,
            eps=1e-6,
        ).reshape_as(self.weight)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


@case((2, 3, 17, 14), loss="mse")
class WeightStandardisation(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = StandardConv(3, 4, 3, padding=1)
        self.norm = nn.GroupNorm(2, 4)
        self.conv2 = GroupStandardConv(4, 6, 3, stride=2, padding=1, groups=2)
        self.conv3 = BatchStandardConv(6, 4, 1)

    def forward(self, x):
        x = F.relu(self.norm(self.conv1(x)))
        x = F.relu(self.conv2(x))
        # One weight, computed twice.
        return self.conv3(x) + self.conv3(torch.tanh(x))


@case((2, 3, 13, 16), loss="mse")
class WeightsByHand(nn.Module):
    """Norms, products and views of weights; a weight that is read directly as well."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.left = nn.Parameter(torch.randn(4, 2))
        self.right = nn.Parameter(torch.randn(2, 4))
        self.gamma = nn.Parameter(torch.ones(4))
        self.linear = nn.Linear(4, 4, bias=False)

    def forward(self, x):
        y = F.conv2d(x, self.conv.weight / torch.norm(self.conv.weight), self.conv.bias, padding=1)
        y = y + self.conv(x)
        low_rank = torch.mm(self.left, self.right).view(4, 4, 1, 1)
        y = F.conv2d(torch.tanh(y), low_rank)
        y = y * (1 + self.gamma.clamp(min=0.5)).view(1, -1, 1, 1) - (2 - self.gamma.abs()).exp().mean()
        tied = F.linear(y.permute(0, 2, 3, 1), self.linear.weight.t())
        return F.linear(tied, self.linear.weight).permute(0, 3, 1, 2)


@case((2, 3, 15, 14), loss="mse", exports=("trace",))
class WeightNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = weight_norm(nn.Conv2d(3, 4, 3, padding=1))
        self.conv2 = weight_norm(nn.Conv2d(4, 4, 3, padding=1), dim=None)
        self.up = weight_norm(nn.ConvTranspose2d(4, 3, 2, stride=2), dim=1)

    def forward(self, x):
        return self.up(F.silu(self.conv2(F.silu(self.conv1(x)))))


@case((2, 3, 15, 14), loss="mse", exports=("trace",))
class SpectralNorm(nn.Module):
    """Its vectors move with every step, without a gradient."""

    def __init__(self):
        super().__init__()
        self.conv1 = spectral_norm(nn.Conv2d(3, 4, 3, padding=1))
        self.conv2 = spectral_norm(nn.Conv2d(4, 4, 3, padding=1), n_power_iterations=2)
        self.conv3 = parametrizations.spectral_norm(nn.Conv2d(4, 5, 3, stride=2, padding=1))
        self.head = parametrizations.spectral_norm(nn.Conv2d(5, 2, 1), n_power_iterations=1)

    def forward(self, x):
        x = F.leaky_relu(self.conv2(F.leaky_relu(self.conv1(x), 0.2)), 0.2)
        return self.head(F.leaky_relu(self.conv3(x), 0.2))


@case((2, 3, 12, 11), loss="mse", exports=("trace",), train=False)
class SpectralNormInEval(SpectralNorm):
    pass


@case((2, 3, 11, 9), loss="mse")
class WrittenWeights(nn.Module):
    """A copy of a weight that is written part by part; views of it see what is written."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3, 3, 3) * 0.3)
        self.gain = nn.Parameter(torch.randn(4))
        self.head = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        weight = self.weight.clone()
        last = weight[3]
        weight[0, :, 1] = 0
        weight[1].mul_(2.0)
        weight.view(4, -1)[2:, 3:5].fill_(0.25)
        weight[:, :, 0, 0] = self.gain.unsqueeze(1)
        gain = self.gain.clone()
        gain[1:3].zero_()
        weight.add_(last.mean())
        return self.head(F.conv2d(x, weight, gain, padding=1))


@case((2, 3, 10, 9), loss="mse")
class PartsOfWeights(nn.Module):
    """Parts of one weight for several layers, and one weight of several parts."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.randn(3, 3, 3, 3) * 0.3)
        self.second = nn.Parameter(torch.randn(2, 3, 3, 3) * 0.3)
        self.both = nn.Parameter(torch.randn(6, 5, 1, 1) * 0.3)
        self.table = nn.Parameter(torch.randn(4, 6))
        self.register_buffer("index", torch.tensor([[2, 0, 0], [-1, 3, 1]]))
        self.scales = nn.Parameter(torch.randn(2, 2))

    def forward(self, x):
        x = F.conv2d(x, torch.cat([self.first, self.second]), self.table[self.index[1], 1:6][1])
        a, b = self.both.chunk(2)
        y = F.conv2d(x, a) * torch.tanh(F.conv2d(x, b, self.both[1:4, 0].reshape(-1)))
        by_row = self.table[:, self.index.view(-1)][1, :3]
        y = y + by_row[:, None, None] + self.table[self.index][0, :, 5].view(1, -1, 1, 1)
        scale = self.scales.repeat(1, 3)[1].view(3, 2).sum(1)
        return y * scale[:, None, None] + self.scales.repeat_interleave(2, dim=1)[0, :3, None, None]
