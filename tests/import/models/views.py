"""Axes taken apart, put in another order and together again: shuffles, groups of channels, gates by a
convolution over the channels, features as an image."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


def conv(channels_in, channels_out, **options):
    return nn.Conv2d(channels_in, channels_out, 3, padding=1, **options)


@case((2, 3, 13, 10), loss="cross_entropy")
class ShuffleByViews(nn.Module):
    """Channel shuffles by hand, with two and three axes of channels in any order."""

    def __init__(self):
        super().__init__()
        self.first = conv(3, 12)
        self.second = conv(12, 12, groups=3)
        self.third = conv(12, 4, groups=2)

    def shuffle(self, x, groups: int):
        n, c, h, w = x.size()
        x = x.view(n, groups, c // groups, h, w)
        return x.permute(0, 2, 1, 3, 4).contiguous().view(n, c, h, w)

    def forward(self, x):
        x = self.shuffle(torch.tanh(self.first(x)), 3)
        x = torch.tanh(self.second(x))
        n, c, h, w = x.size()
        x = x.reshape(n, 2, 3, 2, h, w).permute(0, 3, 1, 2, 4, 5).reshape(n, c, h, w)
        return self.third(x)


@case((2, 2, 12, 8), loss="mse")
class SpaceToDepthByViews(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = conv(8, 8)
        self.outer = conv(2, 2)

    def forward(self, x):
        n, c, h, w = x.shape
        x = x.view(n, c, h // 2, 2, w // 2, 2).permute(0, 3, 5, 1, 2, 4)
        x = torch.relu(self.inner(x.reshape(n, 4 * c, h // 2, w // 2)))
        x = x.view(n, 2, 2, c, h // 2, w // 2).permute(0, 3, 4, 1, 5, 2).reshape(n, c, h, w)
        return self.outer(x)


@case((2, 3, 11, 12), loss="cross_entropy")
class SplitAttention(nn.Module):
    """ResNeSt: branches side by side in the channels, summed, and weighed by a softmax over them."""

    def __init__(self, radix=2, channels=6):
        super().__init__()
        self.radix = radix
        self.conv = conv(3, channels * radix)
        self.bn = nn.BatchNorm2d(channels * radix)
        self.fc1 = nn.Conv2d(channels, 4, 1)
        self.fc2 = nn.Conv2d(4, channels * radix, 1)
        self.head = nn.Conv2d(channels, 3, 1)

    def forward(self, x):
        x = F.relu(self.bn(self.conv(x)))
        n, rc, h, w = x.shape
        x = x.reshape(n, self.radix, rc // self.radix, h, w)
        gap = x.sum(dim=1).mean((2, 3), keepdim=True)
        gates = self.fc2(F.relu(self.fc1(gap))).view(n, 1, self.radix, -1).transpose(1, 2)
        gates = F.softmax(gates, dim=1).reshape(n, self.radix, rc // self.radix, 1, 1)
        return self.head((x * gates).sum(dim=1))


@case((2, 3, 12, 9), loss="cross_entropy")
class SplitAttentionBySlices(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = conv(3, 8)
        self.fc = nn.Conv2d(4, 8, 1)

    def forward(self, x):
        x = self.conv(x)
        parts = torch.split(x, 4, dim=1)
        gap = F.adaptive_avg_pool2d(parts[0] + parts[1], 1)
        atten = self.fc(gap)
        atten = F.softmax(atten.view(x.size(0), 2, 4), dim=1).reshape(x.size(0), -1)
        gates = torch.split(atten.view(x.size(0), -1, 1, 1), 4, dim=1)
        return gates[0] * parts[0] + gates[1] * parts[1]


@case((2, 3, 14, 9), loss="mse")
class EfficientChannelAttention(nn.Module):
    """ECA: a convolution over the channels of a pooled image."""

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 7)
        self.avg_pool = nn.AdaptiveAvgPool2d(1)
        self.conv = nn.Conv1d(1, 1, 3, padding=1, bias=False)
        self.head = nn.Conv2d(7, 2, 1)

    def forward(self, x):
        x = self.stem(x)
        y = self.avg_pool(x)
        y = self.conv(y.squeeze(-1).transpose(-1, -2)).transpose(-1, -2).unsqueeze(-1)
        return self.head(x * torch.sigmoid(y).expand_as(x))


@case((3, 3, 10, 11), loss="l1")
class GlobalContext(nn.Module):
    """GCNet: a softmax over all pixels, and the mean that it weighs."""

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 6)
        self.mask = nn.Conv2d(6, 1, 1)
        self.softmax = nn.Softmax(dim=2)
        self.transform = nn.Sequential(
            nn.Conv2d(6, 3, 1), nn.LayerNorm([3, 1, 1]), nn.ReLU(inplace=True), nn.Conv2d(3, 6, 1)
        )

    def forward(self, x):
        x = self.stem(x)
        n, c, h, w = x.size()
        image = x.view(n, c, h * w).unsqueeze(1)
        mask = self.softmax(self.mask(x).view(n, 1, h * w)).unsqueeze(-1)
        context = torch.matmul(image, mask).view(n, c, 1, 1)
        return x + self.transform(context)


@case((2, 3, 9, 8), loss="mse")
class FeaturesToImage(nn.Module):
    """An autoencoder with a vector in the middle."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.down = nn.Linear(4 * 5 * 4, 6)
        self.up = nn.Linear(6, 5 * 4 * 3)
        self.decoder = nn.Conv2d(5, 2, 3, padding=1)

    def forward(self, x):
        x = torch.tanh(self.encoder(x))
        x = self.down(x.view(x.size(0), -1))
        x = self.up(x).view(x.size(0), 5, 4, 3)
        return self.decoder(F.interpolate(x, scale_factor=2.0))


@case((4, 2, 9, 10), loss="bce")
class OneNumberEach(nn.Module):
    """A critic whose output is a vector with a number for each sample."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, stride=2)
        self.score = nn.Conv2d(4, 1, (4, 4))

    def forward(self, x):
        return self.score(F.leaky_relu(self.conv(x), 0.2)).view(x.size(0), -1).mean(1).view(-1)


@case((4, 2, 9, 10), loss="mse")
class OneRealNumberEach(OneNumberEach):
    """Its targets are a vector, too."""


@case((3, 2, 8, 9), loss="bce:target=real")
class SqueezedMap(nn.Module):
    """A map without its channel, as binary segmentation often has it."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1)
        self.head = nn.Conv2d(3, 1, 1)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x))).squeeze(1)


@case((3, 2, 13), loss="cross_entropy")
class PositionsAsClasses(nn.Module):
    """A signal of one channel, squeezed, is the logits of its positions."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 1, 3, padding=1)

    def forward(self, x):
        return self.conv(x).squeeze(1)


@case((2, 4, 10, 6), loss="l1")
class PermutedArithmetic(nn.Module):
    """Tokens and images in one sum, and reductions over axes in other orders."""

    def __init__(self):
        super().__init__()
        self.conv = conv(4, 6)
        self.linear = nn.Linear(6, 6)
        self.head = nn.Conv2d(6, 2, 1)

    def forward(self, x):
        x = self.conv(x)
        n, c, h, w = x.shape
        tokens = self.linear(x.flatten(2).transpose(1, 2))
        tokens = tokens - tokens.mean(dim=1, keepdim=True)
        last = x.permute(0, 2, 3, 1)
        gate = torch.sigmoid(last.mean(dim=(1, 2)))
        last = last * gate[:, None, None, :] + tokens.view(n, h, w, c)
        rows = last.sum(dim=-1).unsqueeze(1).transpose(2, 3).transpose(2, 3)
        return self.head(last.permute(0, 3, 1, 2) + rows)


@case((2, 3, 8, 8), loss="mse")
class TransposedSpace(nn.Module):
    """Rows and columns change places, channels become rows, and a softmax goes over columns."""

    def __init__(self):
        super().__init__()
        self.conv = conv(3, 4)
        self.head = conv(4, 2)

    def forward(self, x):
        x = self.conv(x)
        x = x + x.transpose(2, 3)
        n, c, h, w = x.shape
        tall = x.view(n, 2, 2 * h, w)
        tall = tall + torch.roll(tall, shifts=(1, -3), dims=(2, 3))
        return self.head(F.softmax(tall, dim=3).view(n, c, h, w))
