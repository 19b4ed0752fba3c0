"""Attention without matrix products: CBAM's channel and pixel gates, and a residual gate."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


class ChannelAttention(nn.Module):
    def __init__(self, channels, ratio=2):
        super().__init__()
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.max_pool = nn.AdaptiveMaxPool2d(1)
        self.fc = nn.Sequential(
            nn.Conv2d(channels, channels // ratio, 1, bias=False),
            nn.ReLU(),
            nn.Conv2d(channels // ratio, channels, 1, bias=False),
        )
        self.sigmoid = nn.Sigmoid()

    def forward(self, x):
        avg_out = self.fc(self.avg_pool(x))
        max_out = self.fc(self.max_pool(x))
        return self.sigmoid(avg_out + max_out)


class SpatialAttention(nn.Module):
    def __init__(self, kernel_size=7):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 1, kernel_size, padding=kernel_size // 2, bias=False)

    def forward(self, x):
        avg_out = torch.mean(x, dim=1, keepdim=True)
        max_out, _ = torch.max(x, dim=1, keepdim=True)
        x = torch.cat([avg_out, max_out], dim=1)
        return torch.sigmoid(self.conv1(x))


@case((2, 3, 20, 17), loss="cross_entropy")
class Cbam(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(6)
        self.ca = ChannelAttention(6)
        self.sa = SpatialAttention(5)
        self.conv2 = nn.Conv2d(6, 4, 3, stride=2, padding=1)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        out = self.ca(x) * x
        out = self.sa(out) * out
        return self.conv2(out + x)


@case((2, 2, 17, 20), loss="mse")
class ResidualGate(nn.Module):
    """(1 + mask) * trunk, the mask from a small hourglass."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 3, padding=1)
        self.trunk = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.Tanh())
        self.mask_down = nn.Conv2d(4, 4, 3, stride=2, padding=1)
        self.mask_up = nn.ConvTranspose2d(4, 4, 3, stride=2, padding=1)
        self.out = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        x = self.stem(x)
        mask = self.mask_up(F.relu(self.mask_down(x)), output_size=x.size()[2:])
        return self.out((1 + torch.sigmoid(mask)) * self.trunk(x))
