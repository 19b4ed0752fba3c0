"""U-Nets whose decoder learns to upsample, or interpolates and pads to the skip's size."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


class DoubleConv(nn.Module):
    """(convolution => batch norm => ReLU) twice."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.double_conv(x)


class UpTransposed(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.up = nn.ConvTranspose2d(in_channels, out_channels, kernel_size=2, stride=2)
        self.conv = DoubleConv(2 * out_channels, out_channels)

    def forward(self, x, skip):
        x = self.up(x)
        return self.conv(torch.cat([skip, x], dim=1))


@case((2, 3, 24, 20), loss="cross_entropy")
class UNetTransposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = DoubleConv(3, 4)
        self.pool = nn.MaxPool2d(2)
        self.down1 = DoubleConv(4, 6)
        self.down2 = DoubleConv(6, 8)
        self.up1 = UpTransposed(8, 6)
        self.up2 = UpTransposed(6, 4)
        self.outc = nn.Conv2d(4, 5, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(self.pool(x1))
        x3 = self.down2(self.pool(x2))
        x = self.up1(x3, x2)
        x = self.up2(x, x1)
        return self.outc(x)


class UpBilinear(nn.Module):
    """Doubles the size, then pads what an odd size lost in the encoder's pools."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv = DoubleConv(in_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        diff_y = x2.size()[2] - x1.size()[2]
        diff_x = x2.size()[3] - x1.size()[3]
        x1 = F.pad(
            x1, [diff_x // 2, diff_x - diff_x // 2, diff_y // 2, diff_y - diff_y // 2]
        )
        x = torch.cat([x2, x1], dim=1)
        return self.conv(x)


@case((2, 3, 23, 19), loss="0.5*bce+0.5*dice:activation=sigmoid")
class UNetBilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc = DoubleConv(3, 4)
        self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 6))
        self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(6, 6))
        self.up1 = UpBilinear(12, 4)
        self.conv = DoubleConv(8, 4)
        self.outc = nn.Conv2d(4, 1, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        x = self.up1(x3, x2)
        x = F.interpolate(x, size=x1.shape[2:], mode="bilinear", align_corners=False)
        x = self.conv(torch.cat([x1, x], dim=1))
        return self.outc(x)
