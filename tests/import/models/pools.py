"""Pooling with every setting, and strided convolutions with even kernels."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


@case((2, 3, 27, 23), loss="cross_entropy")
class Pools(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.max1 = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.avg1 = nn.AvgPool2d(2, ceil_mode=True)
        self.avg2 = nn.AvgPool2d((3, 2), stride=1, padding=(1, 0), count_include_pad=False)
        self.max2 = nn.MaxPool2d((2, 3), stride=(1, 1), dilation=(2, 1), padding=(1, 1))
        self.head = nn.Conv2d(4, 3, 1)

    def forward(self, x):
        x = self.max1(torch.relu(self.conv1(x)))
        x = self.avg1(torch.relu(self.conv2(x)))
        x = self.avg2(x) + F.avg_pool2d(x, (3, 2), 1, (1, 0), divisor_override=5)
        return self.head(self.max2(x))


@case((2, 3, 26, 30), loss="cross_entropy")
class EvenKernels(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 4, kernel_size=4, stride=2, padding=1)
        self.down = nn.Conv2d(4, 5, kernel_size=2, stride=2)
        self.skip = nn.Conv2d(5, 5, kernel_size=(6, 4), stride=(3, 2), padding=(2, 1))
        self.up = nn.ConvTranspose2d(5, 4, kernel_size=4, stride=2, padding=1, bias=False)
        self.grouped = nn.ConvTranspose2d(4, 4, kernel_size=3, stride=1, dilation=2, groups=2)
        self.head = nn.Conv2d(4, 3, 1)

    def forward(self, x):
        x = F.relu(self.patch(x))
        x = F.relu(self.down(x))
        x = F.relu(self.skip(x))
        return self.head(F.relu(self.grouped(self.up(x))))


@case((2, 3, 20, 17), loss="cross_entropy")
class AdaptivePools(nn.Module):
    """To fixed sizes that do not divide the image: windows overlap and differ in size."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.avg = nn.AdaptiveAvgPool2d((7, 5))
        self.max = nn.AdaptiveMaxPool2d((7, 5))
        self.head = nn.Conv2d(4, 3, 3, padding=1)

    def forward(self, x):
        x = self.conv(x)
        return self.head(self.avg(x) + self.max(x))
