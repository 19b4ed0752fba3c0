"""Squeeze and excitation: a gate per channel from the mean over the image."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


class SELayer(nn.Module):
    def __init__(self, channel, reduction=2):
        super().__init__()
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Sequential(
            nn.Linear(channel, channel // reduction, bias=False),
            nn.ReLU(inplace=True),
            nn.Linear(channel // reduction, channel, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, x):
        b, c, _, _ = x.size()
        y = self.avg_pool(x).view(b, c)
        y = self.fc(y).view(b, c, 1, 1)
        return x * y.expand_as(x)


class SqueezeExcitation(nn.Module):
    """With 1x1 convolutions, as torchvision writes it."""

    def __init__(self, channels, squeezed):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x):
        scale = F.adaptive_avg_pool2d(x, 1)
        scale = F.relu(self.fc1(scale), inplace=True)
        scale = torch.sigmoid(self.fc2(scale))
        return scale * x


class SpatialSqueeze(nn.Module):
    """A gate per channel by torch.mean, broadcast with None indices, and one per pixel."""

    def __init__(self, channels):
        super().__init__()
        self.channel = nn.Linear(channels, channels)
        self.pixel = nn.Conv2d(channels, 1, 1)

    def forward(self, x):
        gate = torch.sigmoid(self.channel(torch.mean(x, dim=(2, 3))))
        return x * gate[:, :, None, None] + x * self.pixel(x).sigmoid()


@case((2, 3, 22, 18), loss="cross_entropy")
class SqueezeLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(6)
        self.se1 = SELayer(6)
        self.conv2 = nn.Conv2d(6, 4, 3, padding=1)
        self.se2 = SELayer(4)

    def forward(self, x):
        x = self.se1(F.relu(self.bn1(self.conv1(x)))) + 0.1 * x.mean(dim=1, keepdim=True)
        return self.se2(self.conv2(x))


@case((2, 3, 18, 21), loss="l1")
class SqueezeConv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.se1 = SqueezeExcitation(6, 2)
        self.se2 = SpatialSqueeze(6)
        self.conv2 = nn.Conv2d(6, 2, 3, padding=1)

    def forward(self, x):
        return self.conv2(self.se2(self.se1(self.conv1(x))))
