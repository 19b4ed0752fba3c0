"""Residual chains, whose layers multigrid puts on slices: after enough V-cycles that is exact."""

import torch.nn.functional as F
from torch import nn

from .case import case


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm2d(width)
        self.first = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.second = nn.Conv2d(width, width, 1)

    def forward(self, x):
        return x + 0.5 * self.second(F.relu(self.first(self.norm(x))))


@case(
    (2, 3, 12, 10),
    loss="cross_entropy",
    placements=(
        "--layers 2 --multigrid coarsening=2,relax=F,forward=3,backward=3,measure=both",
        "--layers 3 --multigrid coarsening=2,relax=FCF,forward=2,backward=2",
        "--layers 2 --space 2x1 --multigrid levels=3,coarsening=2,forward=3,backward=3,skip=yes",
    ),
)
class ResidualChain(nn.Module):
    def __init__(self):
        super().__init__()
        self.open = nn.Conv2d(3, 4, 3, padding=1)
        self.blocks = nn.Sequential(*[Block(4) for _ in range(8)])
        self.close = nn.Conv2d(4, 3, 1)

    def forward(self, x):
        return self.close(F.relu(self.blocks(self.open(x))))
