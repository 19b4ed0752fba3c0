"""One spatial axis: a classifier, a U-Net with linear interpolation, a gated dilated network."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


@case((4, 2, 61), loss="cross_entropy")
class SignalClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(2, 6, kernel_size=7, stride=2, padding=3),
            nn.BatchNorm1d(6),
            nn.ReLU(),
            nn.MaxPool1d(kernel_size=3, stride=2, padding=1),
            nn.Conv1d(6, 8, kernel_size=3, padding=1),
            nn.ELU(),
            nn.AvgPool1d(2),
        )
        self.head = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3))

    def forward(self, x):
        x = self.features(x)
        return self.head(x.mean(dim=-1))


@case((2, 1, 47), loss="bce:target=real")
class SignalUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1 = nn.Sequential(nn.Conv1d(1, 4, 9, padding=4), nn.InstanceNorm1d(4), nn.ReLU())
        self.enc2 = nn.Sequential(nn.Conv1d(4, 6, 5, padding=2), nn.ReLU())
        self.dec1 = nn.Conv1d(10, 4, 3, padding=1)
        self.up = nn.ConvTranspose1d(4, 4, 3, padding=1)
        self.head = nn.Conv1d(4, 2, 1)

    def forward(self, x):
        e1 = self.enc1(x)
        e2 = self.enc2(F.max_pool1d(e1, 2))
        d = F.interpolate(e2, size=e1.size(2), mode="linear", align_corners=False)
        d = F.relu(self.dec1(torch.cat([d, e1], dim=1)))
        return self.head(F.relu(self.up(d)))


class GatedLayer(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.causal = nn.Conv1d(channels, 2 * channels, 2, dilation=dilation)
        self.left = dilation
        self.skip = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        y = self.causal(F.pad(x, (self.left, 0)))
        filtered, gate = torch.chunk(y, 2, dim=1)
        y = torch.tanh(filtered) * torch.sigmoid(gate)
        return x + self.skip(y), y


@case((2, 3, 50), loss="cross_entropy", name="wavenet")
class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Conv1d(3, 4, 1)
        self.layers = nn.ModuleList([GatedLayer(4, 2**i) for i in range(4)])
        self.out = nn.Conv1d(4, 5, 1)

    def forward(self, x):
        x = self.inp(x)
        total = torch.zeros_like(x)
        for layer in self.layers:
            x, y = layer(x)
            total = total + y
        return self.out(F.relu(total))


@case((3, 2, 12), loss="mse")
class OneChannelAsFeatures(nn.Module):
    """A signal of one channel, squeezed, is the features of a linear layer."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 1, 3, padding=1)
        self.f = nn.Linear(12, 3)
        self.g = nn.Linear(12, 3)

    def forward(self, x):
        x = self.conv(x).squeeze(1)
        return self.f(x) + self.f(F.softmax(x, dim=-1)) + self.g(F.interpolate(x[:, None], 12)[:, 0])
