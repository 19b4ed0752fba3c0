"""ConvNeXt: channels-last layer norm and linear layers between permutes, layer scale."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


class LayerNorm2d(nn.LayerNorm):
    """Over the channels of an image that stays channels-first outside."""

    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1 = nn.Linear(dim, 2 * dim)
        self.act = nn.GELU()
        self.pwconv2 = nn.Linear(2 * dim, dim)
        self.gamma = nn.Parameter(0.5 * torch.ones(dim))

    def forward(self, x):
        input = x
        x = self.dwconv(x)
        x = x.permute(0, 2, 3, 1)  # (N, C, H, W) -> (N, H, W, C)
        x = self.norm(x)
        x = self.pwconv1(x)
        x = self.act(x)
        x = self.pwconv2(x)
        x = self.gamma * x
        x = x.permute(0, 3, 1, 2)  # (N, H, W, C) -> (N, C, H, W)
        return input + x


class ChannelLayerNorm(nn.Module):
    """The channels-first formula spelled out, as ConvNeXt's own code has it."""

    def __init__(self, channels, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


@case((2, 3, 24, 28), loss="cross_entropy", name="convnext")
class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, kernel_size=4, stride=4), LayerNorm2d(6))
        self.stage = nn.Sequential(Block(6), Block(6))
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        x = self.stage(self.stem(x))
        x = self.norm(x.mean([-2, -1]))
        return self.head(x)


@case((2, 3, 16, 13), loss="cross_entropy", name="convnext_dense")
class ConvNeXtDense(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 5, 3, padding=1)
        self.norm = ChannelLayerNorm(5)
        self.block = Block(5)
        self.head = nn.Conv2d(5, 3, 1)

    def forward(self, x):
        return self.head(self.block(self.norm(self.stem(x))))
