"""SegNet: pooled values go back to where they came from. PyTorch 1.13 cannot script nn.MaxUnpool2d,
so scripts call the operator itself."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


@case((2, 2, 18, 21), loss="mse")
class SegNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.down2 = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU())
        self.up2 = nn.Sequential(nn.Conv2d(6, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        self.up1 = nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x):
        fine = self.down1(x)
        x, first = F.max_pool2d(fine, 2, return_indices=True)
        middle = self.down2(x)
        # Overlapping windows: some pixels are chosen by two of them.
        x, second = F.max_pool2d(middle, 3, stride=2, padding=1, return_indices=True)
        x = torch.ops.aten.max_unpool2d(torch.tanh(x), second, middle.shape[2:])
        x = torch.ops.aten.max_unpool2d(self.up2(x), first, fine.shape[2:])
        return self.up1(x)


@case((2, 2, 16, 12), loss="mse", exports=("trace",))
class UnpoolModules(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.pool = nn.MaxPool2d(2, stride=2, return_indices=True)
        self.unpool = nn.MaxUnpool2d(2, stride=2)
        self.head = nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x):
        y, indices = self.pool(self.conv(x))
        return self.head(self.unpool(F.silu(y), indices))


@case((2, 2, 8, 6, 7), loss="mse", exports=("trace",))
class Unpool3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(2, 3, 3, padding=1)
        self.head = nn.Conv3d(3, 2, 1)

    def forward(self, x):
        x = self.conv(x)
        y, indices = F.max_pool3d(x, 2, stride=2, return_indices=True)
        return self.head(F.max_unpool3d(y * y, indices, 2, stride=2, output_size=x.shape[2:]))


@case((2, 2, 41), loss="mse", exports=("trace",))
class Unpool1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3, padding=1)
        self.head = nn.Conv1d(3, 2, 3, padding=1)

    def forward(self, x):
        x = self.conv(x)
        y, indices = F.max_pool1d(x, 3, stride=2, return_indices=True)
        return self.head(F.max_unpool1d(torch.sigmoid(y), indices, 3, 2, output_size=x.shape[2:]))
