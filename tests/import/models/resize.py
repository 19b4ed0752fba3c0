"""Interpolation: each mode by size and by factor, up and down, corners aligned or not."""

import torch.nn.functional as F
from torch import nn

from .case import case


@case((2, 3, 14, 11), loss="mse")
class ResizeModes(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.up = nn.UpsamplingBilinear2d(scale_factor=2)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.nearest = nn.UpsamplingNearest2d(size=(17, 15))
        self.conv3 = nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x):
        h, w = x.shape[-2:]
        a = self.conv1(x)
        b = F.interpolate(self.up(a), size=(h, w), mode="nearest-exact")
        c = F.interpolate(a, scale_factor=0.5, mode="bicubic", align_corners=True)
        c = F.interpolate(c, size=[h, w], mode="bilinear")
        x = self.conv2(a + b + c)
        return self.conv3(self.nearest(x))


@case((2, 3, 13, 16), loss="mse")
class ResizeFactors(nn.Module):
    """Factors that are not whole numbers: PyTorch then uses the factor itself, not the sizes."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x):
        x = self.conv1(x)
        x = F.interpolate(x, scale_factor=1.7, mode="bilinear", align_corners=False)
        x = F.interpolate(
            x, scale_factor=(0.6, 1.3), mode="bilinear", recompute_scale_factor=True
        )
        x = F.interpolate(x, scale_factor=1.5, mode="nearest")
        return self.conv2(F.interpolate(x, scale_factor=0.8, mode="bicubic"))
