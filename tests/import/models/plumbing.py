"""How modules are wired: loops, nesting, sharing, slices, branches decided at export."""

from typing import List, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .case import case


@case((2, 3, 16, 18), loss="cross_entropy")
class Nested(nn.Module):
    """Sequentials in lists in sequentials, a ModuleDict, an Identity, a loop by index."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList()
        channels = 3
        for width in (4, 5):
            stage = nn.Sequential(
                nn.Sequential(nn.Conv2d(channels, width, 3, padding=1), nn.Identity()),
                nn.Sequential(nn.Sequential(nn.BatchNorm2d(width), nn.ReLU())),
            )
            self.stages.append(stage)
            channels = width
        self.parts = nn.ModuleDict({"body": nn.Conv2d(5, 5, 1), "head": nn.Conv2d(5, 3, 1)})
        self.norm = nn.Identity()

    def forward(self, x):
        for i, stage in enumerate(self.stages):
            x = stage(x)
            if i < len(self.stages) - 1:
                x = F.max_pool2d(x, 2)
        for name, part in self.parts.items():
            x = part(x)
        return self.norm(x)


@case((2, 3, 15, 17), loss="cross_entropy")
class SharedTwice(nn.Module):
    """One convolution and one norm used twice: gradients add, statistics move twice a step."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Conv2d(4, 3, 1)

    def forward(self, x):
        x = self.stem(x)
        for _ in range(2):
            x = F.relu(self.norm(self.conv(x)))
        return self.head(x)


@case((2, 6, 14, 16), loss="cross_entropy")
class Slices(nn.Module):
    """Channel slices, chunk, split, stack-free regrouping, a channel shuffle by views."""

    def __init__(self):
        super().__init__()
        self.left = nn.Conv2d(2, 3, 3, padding=1)
        self.right = nn.Conv2d(4, 3, 3, padding=1)
        self.mix = nn.Conv2d(6, 6, 3, padding=1, groups=2)
        self.a = nn.Conv2d(3, 3, 1)
        self.b = nn.Conv2d(2, 3, 1)
        self.head = nn.Conv2d(7, 3, 1)

    def forward(self, x):
        x = torch.cat([self.left(x[:, :2]), self.right(x[:, 2:, ...])], 1)
        n, c, h, w = x.shape
        x = x.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w)
        x = F.relu(self.mix(x))
        first, second = x.chunk(2, dim=1)
        third, fourth = torch.split(x, [2, 4], dim=1)
        y = self.a(first) + second
        z = self.b(third) * fourth[:, 1:4]
        return self.head(torch.cat([y, z, x.narrow(1, 0, 1)], 1))


@case((2, 3, 18, 20), loss="cross_entropy", train=False)
class Conditionals(nn.Module):
    """Branches on self.training, on attributes, on None and on shapes, all known at export."""

    scale: Optional[float]

    def __init__(self):
        super().__init__()
        self.depth = 2
        self.scale = None
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 4, 3, padding=1)
        self.aux = nn.Conv2d(4, 3, 1)
        self.head = nn.Conv2d(4, 3, 1)
        self.drop = nn.Dropout2d(0.3)

    def refine(self, x: Tensor, times: int = 1) -> Tensor:
        for _ in range(times):
            x = self.conv2(x).relu_()
        return x

    def forward(self, x: Tensor) -> Tensor:
        assert x.dim() == 4, "expected a batch of images"
        assert x.shape[1] == 3 and x.shape[2] % 2 == 0, f"wrong shape {x.shape}"
        x = self.drop(self.conv1(x))
        if x.shape[-1] > 16 and x.size(2) >= 16:
            x = F.avg_pool2d(x, 2)
        else:
            x = torch.tanh(x)
        x = self.refine(x, times=self.depth)
        scale = self.scale
        if scale is not None:
            x = x * scale
        if self.training:
            return self.head(x) + self.aux(x)
        sizes: List[int] = [int(s) for s in x.shape]
        while len(sizes) > 4:
            sizes.pop()
        if sizes[0] == 0:
            raise ValueError("empty batch")
        return self.head(x)


@case((2, 3, 13, 15), loss="mse")
class Broadcasts(nn.Module):
    """Gates of every shape that broadcasts: scalar, per channel, per sample, per pixel."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.alpha = nn.Parameter(torch.tensor(0.7))
        self.beta = nn.Parameter(torch.full((1, 4, 1, 1), 0.3))
        self.shift = nn.Parameter(torch.zeros(4, 1, 1))
        self.pixel = nn.Conv2d(4, 1, 1)

    def forward(self, x):
        x = self.conv(x)
        y = self.alpha * x + self.beta * torch.tanh(x) + self.shift
        sample = x.mean(dim=(1, 2, 3), keepdim=True)
        per_channel = torch.mean(x, (2, 3), True).sigmoid()
        total = x.sum(dim=1, keepdim=True) * 0.1
        y = y + sample * per_channel + total * torch.sigmoid(self.pixel(x))
        return y


@case((2, 3, 13, 11), loss="mse")
class ReviewedIdioms(nn.Module):
    """A weight called constant1 beside constants of the code, += on lists, texts with numbers."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.constant1 = nn.Parameter(torch.full((4, 1, 1), 0.7))

    def forward(self, x):
        y = self.conv(x)
        names = ["height {}".format(y.shape[2])]
        names += ["width {}".format(y.shape[3])]
        assert len(names) == 2, f"{names[0]} and {names[1]}"
        parts: List[Tensor] = [y]
        parts += [torch.tanh(y)]
        scale = torch.tensor([1.0, 2.0, 0.5, 1.5], dtype=y.dtype).view(4, 1, 1)
        return torch.cat(parts, 1) * 0.5 + torch.cat([y * self.constant1, y * scale], 1)


@case((2, 3, 14, 15), loss="cross_entropy")
class AsksLayoutAndDevice(nn.Module):
    """PyTorch's own functions ask how and where a tensor is stored before they choose a formula."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        x = self.conv(x)
        if x.layout == torch.strided and x.device.type in ("cpu", "cuda", "meta"):
            return x * 2
        return x
