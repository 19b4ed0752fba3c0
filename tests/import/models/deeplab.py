"""DeepLab: dilated convolutions, a globally pooled branch interpolated back, a dict of outputs."""

from collections import OrderedDict
from typing import Dict

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .case import case


class ASPPPooling(nn.Sequential):
    def __init__(self, in_channels, out_channels):
        super().__init__(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(in_channels, out_channels, 1, bias=False),
            nn.GroupNorm(2, out_channels),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        size = x.shape[-2:]
        for mod in self:
            x = mod(x)
        return F.interpolate(x, size=size, mode="bilinear", align_corners=False)


class ASPP(nn.Module):
    def __init__(self, in_channels, atrous_rates, out_channels):
        super().__init__()
        modules = [self.branch(in_channels, out_channels, 1, 1)]
        modules += [self.branch(in_channels, out_channels, 3, rate) for rate in atrous_rates]
        modules.append(ASPPPooling(in_channels, out_channels))
        self.convs = nn.ModuleList(modules)
        self.project = nn.Sequential(
            nn.Conv2d(len(self.convs) * out_channels, out_channels, 1, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
            nn.Dropout(0.0),
        )

    @staticmethod
    def branch(in_channels, out_channels, kernel, rate):
        padding = rate if kernel == 3 else 0
        return nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel, 1, padding, rate, bias=False),
            nn.BatchNorm2d(out_channels),
            nn.ReLU(),
        )

    def forward(self, x: Tensor) -> Tensor:
        _res = []
        for conv in self.convs:
            _res.append(conv(x))
        res = torch.cat(_res, dim=1)
        return self.project(res)


@case((2, 3, 33, 29), loss="cross_entropy", output_weights=(1.0, 0.4), name="deeplab")
class DeepLab(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.ReLU())
        self.layer2 = nn.Sequential(nn.Conv2d(4, 6, 3, stride=2, padding=1), nn.ReLU())
        self.classifier = nn.Sequential(ASPP(6, (2, 4), 4), nn.Conv2d(4, 3, 1))
        self.aux_classifier = nn.Conv2d(4, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Dict[str, Tensor]:
        input_shape = x.shape[-2:]
        features = self.layer1(x)
        result = OrderedDict()
        x = self.classifier(self.layer2(features))
        x = F.interpolate(x, size=input_shape, mode="bilinear", align_corners=False)
        result["out"] = x
        x = self.aux_classifier(features)
        x = F.interpolate(x, size=input_shape, mode="bilinear", align_corners=False)
        result["aux"] = x
        return result
