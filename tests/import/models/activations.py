"""Pointwise functions as modules, as functions and as methods; channel softmax as a head."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


@case((2, 3, 14, 13), loss="mse")
class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 3, 1) for _ in range(12)])
        self.acts = nn.ModuleList(
            [
                nn.LeakyReLU(0.1),
                nn.ELU(alpha=1.3),
                nn.SiLU(),
                nn.GELU(),
                nn.Softplus(),
                nn.Hardtanh(-0.8, 1.1),
                nn.ReLU6(inplace=True),
                nn.Tanh(),
                nn.Sigmoid(),
                nn.Hardswish(),
                nn.Mish(),
                nn.SELU(),
            ]
        )

    def forward(self, x):
        for conv, act in zip(self.convs, self.acts):
            x = x + act(conv(x))
        return x


@case((2, 3, 12, 15), loss="mse")
class SoftmaxHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 4, 3, padding=1)

    def forward(self, x):
        x = F.elu(self.conv1(x), inplace=True)
        x = x.clamp(min=-0.5, max=2.0).tanh() + torch.relu(x) + F.gelu(x, approximate="tanh")
        return F.softmax(self.conv2(x), dim=1)


@case((2, 3, 15, 12), loss="mse")
class Arithmetic(nn.Module):
    """Numbers and tensors mixed by operators: both orders, powers, roots, minima."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.conv3 = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        a = self.conv1(x)
        b = self.conv2(a)
        c = 1 - a * 0.5 + b / 3.0
        d = torch.sqrt(a**2 + 1.0) - torch.abs(b)
        e = torch.maximum(c, d) + torch.min(c, d) * 2
        f = torch.exp(-e.abs()) / (1.0 + b.pow(2)) + torch.log1p(d.square())
        return self.conv3(2.0 / (1.5 + f) - torch.add(a, b, alpha=0.25))
