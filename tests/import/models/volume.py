"""Three spatial axes: a U-Net in V-Net's manner, and one by trilinear interpolation."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


def block(in_channels, out_channels):
    return nn.Sequential(
        nn.Conv3d(in_channels, out_channels, 3, padding=1, bias=False),
        nn.BatchNorm3d(out_channels),
        nn.LeakyReLU(0.01, inplace=True),
    )


@case((2, 1, 8, 10, 12), loss="cross_entropy")
class UNet3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1 = block(1, 3)
        self.enc2 = block(3, 5)
        self.bottom = block(5, 6)
        self.pool = nn.MaxPool3d(kernel_size=2)
        self.down = nn.Conv3d(5, 5, kernel_size=(1, 2, 2), stride=(1, 2, 2))
        self.up2 = nn.ConvTranspose3d(6, 5, kernel_size=(1, 2, 2), stride=(1, 2, 2))
        self.dec2 = block(10, 5)
        self.up1 = nn.ConvTranspose3d(5, 3, kernel_size=2, stride=2)
        self.dec1 = block(6, 3)
        self.head = nn.Conv3d(3, 3, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(self.pool(e1))
        b = self.bottom(self.down(e2))
        d2 = F.pad(self.up2(b), [0, 0, 0, e2.shape[3] - 2 * b.shape[3]])
        d2 = self.dec2(torch.cat([d2, e2], dim=1))
        d1 = self.dec1(torch.cat([self.up1(d2), e1], dim=1))
        return self.head(d1)


@case((1, 2, 7, 9, 8), loss="dice:activation=sigmoid")
class ResUNet3d(nn.Module):
    """Group norm, trilinear upsampling, a residual branch: as volumes with a batch of one want."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv3d(2, 4, 3, padding=1)
        self.norm1 = nn.GroupNorm(2, 4)
        self.conv2 = nn.Conv3d(4, 6, 3, stride=2, padding=1)
        self.norm2 = nn.GroupNorm(3, 6)
        self.conv3 = nn.Conv3d(6, 6, 3, padding=1)
        self.reduce = nn.Conv3d(6, 4, 1)
        self.head = nn.Conv3d(4, 1, 1)

    def forward(self, x):
        e = F.silu(self.norm1(self.conv1(x)))
        d = F.silu(self.norm2(self.conv2(e)))
        d = d + self.conv3(d)
        d = F.interpolate(self.reduce(d), e.shape[2:], mode="trilinear", align_corners=True)
        return self.head(F.avg_pool3d(d + e, 3, stride=1, padding=1))
