"""U-Nets with attention gates, with unpadded convolutions, and with several supervised outputs."""

from typing import Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .case import case


def conv_block(in_channels, out_channels, padding=1):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, padding=padding),
        nn.ReLU(),
        nn.Conv2d(out_channels, out_channels, 3, padding=padding),
        nn.ReLU(),
    )


class AttentionGate(nn.Module):
    """Weighs each pixel of the skip by what the coarser level says of it."""

    def __init__(self, gate_channels, skip_channels, channels):
        super().__init__()
        self.W_g = nn.Sequential(nn.Conv2d(gate_channels, channels, 1), nn.BatchNorm2d(channels))
        self.W_x = nn.Sequential(nn.Conv2d(skip_channels, channels, 1), nn.BatchNorm2d(channels))
        self.psi = nn.Sequential(nn.Conv2d(channels, 1, 1), nn.BatchNorm2d(1), nn.Sigmoid())
        self.relu = nn.ReLU(inplace=True)

    def forward(self, g, x):
        psi = self.relu(self.W_g(g) + self.W_x(x))
        return x * self.psi(psi)


@case((2, 1, 20, 24), loss="dice:activation=sigmoid,target=real")
class AttentionUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1 = conv_block(1, 4)
        self.enc2 = conv_block(4, 6)
        self.enc3 = conv_block(6, 8)
        self.up2 = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(8, 6, 3, padding=1))
        self.att2 = AttentionGate(6, 6, 3)
        self.dec2 = conv_block(12, 6)
        self.up1 = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(6, 4, 3, padding=1))
        self.att1 = AttentionGate(4, 4, 2)
        self.dec1 = conv_block(8, 4)
        self.head = nn.Conv2d(4, 2, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool2d(e1, kernel_size=2, stride=2))
        e3 = self.enc3(F.max_pool2d(e2, kernel_size=2, stride=2))
        d2 = self.up2(e3)
        d2 = self.dec2(torch.cat((self.att2(g=d2, x=e2), d2), dim=1))
        d1 = self.up1(d2)
        d1 = self.dec1(torch.cat((self.att1(g=d1, x=e1), d1), dim=1))
        return self.head(d1)


def centre_crop(x: Tensor, height: int, width: int) -> Tensor:
    top = (x.shape[2] - height) // 2
    left = (x.shape[3] - width) // 2
    return x[:, :, top : top + height, left : left + width]


@case((1, 2, 44, 52), loss="cross_entropy", train=False)
class UNetValid(nn.Module):
    """The original U-Net: no padding, so that skips are cropped to the decoder's size."""

    def __init__(self):
        super().__init__()
        self.enc1 = conv_block(2, 4, padding=0)
        self.enc2 = conv_block(4, 6, padding=0)
        self.bottom = conv_block(6, 8, padding=0)
        self.up2 = nn.ConvTranspose2d(8, 6, 2, stride=2)
        self.dec2 = conv_block(12, 6, padding=0)
        self.up1 = nn.ConvTranspose2d(6, 4, 2, stride=2)
        self.dec1 = conv_block(8, 4, padding=0)
        self.head = nn.Conv2d(4, 2, 1)
        self.pool = nn.MaxPool2d(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        e1 = self.enc1(x)
        e2 = self.enc2(self.pool(e1))
        x = self.up2(self.bottom(self.pool(e2)))
        x = torch.cat([centre_crop(e2, x.shape[-2], x.shape[-1]), x], 1)
        x = self.up1(self.dec2(x))
        height, width = x.shape[2:]
        x = torch.cat([centre_crop(e1, height, width), x], 1)
        return self.head(self.dec1(x))


@case((2, 3, 24, 16), loss="cross_entropy", output_weights=(1.0, 0.5, 0.25))
class DeepSupervision(nn.Module):
    """One output a decoder level, each at its own size; one target, resized."""

    def __init__(self):
        super().__init__()
        self.enc1 = conv_block(3, 4)
        self.enc2 = conv_block(4, 6)
        self.enc3 = conv_block(6, 6)
        self.up2 = nn.ConvTranspose2d(6, 6, 4, stride=2, padding=1)
        self.dec2 = conv_block(12, 5)
        self.up1 = nn.ConvTranspose2d(5, 4, 3, stride=2, padding=1, output_padding=1)
        self.dec1 = conv_block(8, 4)
        self.heads = nn.ModuleList([nn.Conv2d(c, 3, 1) for c in (4, 5, 6)])

    def forward(self, x) -> Tuple[Tensor, Tensor, Tensor]:
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool2d(e1, 2))
        e3 = self.enc3(F.max_pool2d(e2, 2))
        d2 = self.dec2(torch.cat([self.up2(e3), e2], 1))
        d1 = self.dec1(torch.cat([self.up1(d2), e1], 1))
        return self.heads[0](d1), self.heads[1](d2), self.heads[2](e3)
