"""Super-resolution: pixel shuffle, PReLU, a bicubic skip; regression losses."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


@case((2, 3, 11, 13), loss="mse")
class PixelShuffleNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 5, padding=2)
        self.prelu1 = nn.PReLU()
        self.conv2 = nn.Conv2d(8, 12, 3, padding=1)
        self.prelu2 = nn.PReLU(num_parameters=12)
        self.pixel_shuffle = nn.PixelShuffle(2)
        self.conv3 = nn.Conv2d(3, 27, 3, padding=1)

    def forward(self, x):
        x = self.prelu1(self.conv1(x))
        x = self.pixel_shuffle(self.prelu2(self.conv2(x)))
        return F.pixel_shuffle(self.conv3(x), 3)


@case((2, 2, 12, 10), loss="l1")
class ResidualDense(nn.Module):
    """Learns what bicubic interpolation misses, starting from an unshuffled image."""

    def __init__(self):
        super().__init__()
        self.unshuffle = nn.PixelUnshuffle(2)
        self.head = nn.Conv2d(8, 6, 3, padding=1)
        self.body = nn.ModuleList([nn.Conv2d(6 + 3 * i, 3, 3, padding=1) for i in range(3)])
        self.tail = nn.Sequential(
            nn.Conv2d(15, 8 * 4, 3, padding=1), nn.PixelShuffle(4), nn.LeakyReLU(0.2, inplace=True)
        )

    def forward(self, x):
        skip = F.interpolate(x, scale_factor=2.0, mode="bicubic", align_corners=False)
        y = self.head(self.unshuffle(x))
        for conv in self.body:
            y = torch.cat((y, F.leaky_relu(conv(y), negative_slope=0.1)), dim=1)
        return self.tail(y) + skip
