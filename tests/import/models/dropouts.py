"""Dropout in training: in place, of channels, of samples. The masks are Tessera's own, so only what
is dropped or kept for certain can be compared with PyTorch; the others are compared with the
program's oracle alone, and what they became with what `inspect` shows."""

import torch
from torch import nn
from torchvision.ops import StochasticDepth

from .case import case


class Block(nn.Module):
    def __init__(self, drop):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.drop = drop

    def forward(self, x):
        return x + self.drop(self.conv(torch.tanh(x)))


def drop_path(x, drop_prob: float = 0.0, training: bool = False, scale_by_keep: bool = True):
    """As timm has it."""
    if drop_prob == 0.0 or not training:
        return x
    keep_prob = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    random_tensor = x.new_empty(shape).bernoulli_(keep_prob)
    if keep_prob > 0.0 and scale_by_keep:
        random_tensor.div_(keep_prob)
    return x * random_tensor


class DropPath(nn.Module):
    def __init__(self, drop_prob, scale_by_keep=True):
        super().__init__()
        self.drop_prob = drop_prob
        self.scale_by_keep = scale_by_keep

    def forward(self, x):
        return drop_path(x, self.drop_prob, self.training, self.scale_by_keep)


class FloorDropPath(nn.Module):
    """As older repositories have it."""

    def __init__(self, drop_prob: float):
        super().__init__()
        self.keep_prob = 1 - drop_prob

    def forward(self, x):
        mask = self.keep_prob + torch.rand((x.shape[0], 1, 1, 1), dtype=x.dtype, device=x.device)
        mask.floor_()
        return x.div(self.keep_prob) * mask


class ChannelMask(nn.Module):
    """DropBlock's cousins: a mask of channels by hand."""

    def forward(self, x):
        mask = torch.empty([x.shape[0], x.shape[1], 1, 1], dtype=x.dtype).bernoulli_(0.6)
        return mask * x


def certain(probability):
    return [
        nn.Dropout(probability, inplace=True),
        nn.Dropout2d(probability),
        nn.Dropout2d(probability, inplace=True),
        nn.AlphaDropout(probability),
        StochasticDepth(probability, "row"),
        StochasticDepth(probability, "batch"),
        DropPath(probability),
    ]


class Blocks(nn.Module):
    def __init__(self, drops):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*[Block(drop) for drop in drops])
        self.head = nn.Conv2d(4, 3, 1)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


@case((3, 3, 15, 18), loss="mse")
class DropsNothingOrAll(Blocks):
    def __init__(self):
        super().__init__(certain(0.0) + certain(1.0) + [FloorDropPath(0.0)])


@case(
    (4, 3, 15, 18),
    loss="mse",
    random=True,
    shows=(
        r"blocks\.0\.drop\S* +dropout +p 0\.3  ",
        r"blocks\.1\.drop\S* +dropout +p 0\.4, whole channels ",
        r"blocks\.2\.drop\S* +dropout +p 0\.2, whole samples ",
        r"blocks\.3\.drop\S* +dropout +p 0\.1, whole batches ",
        r"blocks\.4\.drop\S* +dropout +p 0\.25, whole samples ",
        r"blocks\.5\.drop\S* +dropout +p 0\.25, whole samples, scale 1 ",
        r"blocks\.6\.drop\S* +dropout +p 0\.25, whole samples ",
        r"blocks\.7\.drop\S* +dropout +p 0\.4, whole channels, scale 1 ",
        r"blocks\.8\.drop\S* +dropout +p 0\.3, alpha ",
        r"blocks\.9\.drop\S* +dropout +p 0\.3, whole channels, alpha ",
    ),
)
class RandomMasks(Blocks):
    def __init__(self):
        super().__init__(
            [
                nn.Dropout(0.3, inplace=True),
                nn.Dropout2d(0.4, inplace=True),
                StochasticDepth(0.2, "row"),
                StochasticDepth(0.1, "batch"),
                DropPath(0.25),
                DropPath(0.25, scale_by_keep=False),
                FloorDropPath(0.25),
                ChannelMask(),
                nn.AlphaDropout(0.3),
                nn.FeatureAlphaDropout(0.3),
            ]
        )


@case((2, 2, 6, 7, 8), loss="mse", random=True, shows=(r"drop\S* +dropout +p 0\.5, whole channels ",))
class Dropout3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv3d(2, 6, 3, padding=1)
        self.drop = nn.Dropout3d(0.5)
        self.head = nn.Conv3d(6, 2, 1)

    def forward(self, x):
        return self.head(self.drop(torch.relu(self.conv(x))))
