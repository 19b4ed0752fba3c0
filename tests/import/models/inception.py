"""Inception: parallel branches, asymmetric kernels, average pooling at stride one."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


class BasicConv2d(nn.Module):
    def __init__(self, in_channels, out_channels, **kwargs):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)), inplace=True)


class InceptionBlock(nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.branch1x1 = BasicConv2d(in_channels, 2, kernel_size=1)
        self.branch7x7_1 = BasicConv2d(in_channels, 3, kernel_size=1)
        self.branch7x7_2 = BasicConv2d(3, 3, kernel_size=(1, 7), padding=(0, 3))
        self.branch7x7_3 = BasicConv2d(3, 3, kernel_size=(5, 1), padding=(2, 0))
        self.branch3x3 = BasicConv2d(in_channels, 2, kernel_size=(3, 5), padding="same")
        self.branch_pool = BasicConv2d(in_channels, 2, kernel_size=1)

    def _forward(self, x):
        branch1x1 = self.branch1x1(x)
        branch7x7 = self.branch7x7_3(self.branch7x7_2(self.branch7x7_1(x)))
        branch3x3 = self.branch3x3(x)
        branch_pool = F.avg_pool2d(x, kernel_size=3, stride=1, padding=1)
        branch_pool = self.branch_pool(branch_pool)
        return [branch1x1, branch7x7, branch3x3, branch_pool]

    def forward(self, x):
        return torch.cat(self._forward(x), 1)


class Reduction(nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.branch3x3 = BasicConv2d(in_channels, 3, kernel_size=3, stride=2)

    def forward(self, x):
        return torch.cat([self.branch3x3(x), F.max_pool2d(x, kernel_size=3, stride=2)], 1)


@case((2, 3, 25, 21), loss="cross_entropy")
class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = BasicConv2d(3, 4, kernel_size=3, padding=1)
        self.mixed1 = InceptionBlock(4)
        self.reduction = Reduction(9)
        self.mixed2 = InceptionBlock(12)
        self.classes = nn.Conv2d(9, 4, 1)

    def forward(self, x):
        x = self.mixed1(self.stem(x))
        x = self.mixed2(self.reduction(x))
        return self.classes(x)
