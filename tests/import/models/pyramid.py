"""Feature pyramids: several outputs, with resized labels or each with its own target."""

from typing import List, Tuple

import torch.nn.functional as F
from torch import Tensor, nn

from .case import case


def down(in_channels, out_channels):
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(inplace=True),
    )


class Pyramid(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = down(3, 4)
        self.c2 = down(4, 6)
        self.c3 = down(6, 8)
        self.inner_blocks = nn.ModuleList([nn.Conv2d(c, 4, 1) for c in (4, 6, 8)])
        self.layer_blocks = nn.ModuleList([nn.Conv2d(4, 4, 3, padding=1) for _ in range(3)])

    def features(self, x: Tensor) -> List[Tensor]:
        c1 = self.c1(x)
        c2 = self.c2(c1)
        return [c1, c2, self.c3(c2)]


@case((2, 3, 30, 26), loss="cross_entropy")
class FeaturePyramid(Pyramid):
    def forward(self, x) -> Tuple[Tensor, Tensor, Tensor]:
        c1, c2, c3 = self.features(x)
        p3 = self.inner_blocks[2](c3)
        p2 = self.inner_blocks[1](c2) + F.interpolate(p3, size=c2.shape[-2:], mode="nearest")
        p1 = self.inner_blocks[0](c1) + F.interpolate(p2, size=c1.shape[-2:], mode="nearest")
        return self.layer_blocks[0](p1), self.layer_blocks[1](p2), self.layer_blocks[2](p3)


@case((2, 3, 24, 28), loss="smooth_l1", target_per_output=True)
class FeaturePyramidList(Pyramid):
    """The loop and the list of results as torchvision's detector has them."""

    def forward(self, x: Tensor) -> List[Tensor]:
        features = self.features(x)
        inner: List[Tensor] = []
        for i, block in enumerate(self.inner_blocks):
            inner.append(block(features[i]))
        last = inner[-1]
        results = [last]
        for i in range(len(inner) - 2, -1, -1):
            last = inner[i] + F.interpolate(last, size=inner[i].shape[-2:])
            results.insert(0, last)
        outputs: List[Tensor] = []
        for i, block in enumerate(self.layer_blocks):
            outputs.append(block(results[i]))
        return outputs
