"""Norms of the response: GRN of ConvNeXt V2 in both layouts, F.normalize."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


class ResponseNorm(nn.Module):
    """Channels last, as the paper's code has it."""

    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.zeros(1, 1, 1, dim) + 0.3)
        self.beta = nn.Parameter(torch.zeros(1, 1, 1, dim))

    def forward(self, x):
        gx = torch.norm(x, p=2, dim=(1, 2), keepdim=True)
        nx = gx / (gx.mean(dim=-1, keepdim=True) + 1e-6)
        return self.gamma * (x * nx) + self.beta + x


@case((2, 3, 14, 15), loss="mse")
class ConvNextV2(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 2, stride=2)
        self.dwconv = nn.Conv2d(4, 4, 7, padding=3, groups=4)
        self.norm = nn.LayerNorm(4, eps=1e-6)
        self.pwconv1 = nn.Linear(4, 8)
        self.grn = ResponseNorm(8)
        self.pwconv2 = nn.Linear(8, 4)

    def forward(self, x):
        x = self.stem(x)
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = self.pwconv2(self.grn(F.gelu(self.pwconv1(y))))
        return x + y.permute(0, 3, 1, 2)


@case((2, 3, 12, 13), loss="mse")
class Norms(nn.Module):
    """Orders 1, 2 and infinity; a channel of zeros, whose norm has no gradient."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Conv2d(4, 3, 1)

    def forward(self, x):
        x = self.conv(x)
        x = x * torch.tensor([1.0, 0.0, 1.0, 1.0], dtype=x.dtype).view(1, 4, 1, 1)
        grn = x.norm(p=2, dim=(2, 3), keepdim=True)
        x = x * grn / (grn.mean(dim=1, keepdim=True) + 1e-6)
        unit = F.normalize(x, dim=1)
        other = torch.linalg.vector_norm(x, dim=1, keepdim=True) + x.norm(1, [1], True)
        rows = torch.linalg.vector_norm(x, ord=float("inf"), dim=(2, 3), keepdim=True)
        return self.head(unit + other) + x.norm(2, [2, 3])[:, :3, None, None] * rows[:, :3]
