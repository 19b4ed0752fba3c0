"""Depthwise separable networks: inverted residuals with ReLU6, and with hard swish and its gate."""

import torch.nn.functional as F
from torch import nn

from .case import case


class ConvBNActivation(nn.Sequential):
    def __init__(self, in_planes, out_planes, kernel_size=3, stride=1, groups=1, act=nn.ReLU6):
        padding = (kernel_size - 1) // 2
        super().__init__(
            nn.Conv2d(
                in_planes, out_planes, kernel_size, stride, padding, groups=groups, bias=False
            ),
            nn.BatchNorm2d(out_planes),
            act(inplace=True),
        )


class InvertedResidual(nn.Module):
    def __init__(self, inp, oup, stride, expand_ratio):
        super().__init__()
        hidden_dim = int(round(inp * expand_ratio))
        self.use_res_connect = stride == 1 and inp == oup
        layers = []
        if expand_ratio != 1:
            layers.append(ConvBNActivation(inp, hidden_dim, kernel_size=1))
        layers.extend(
            [
                ConvBNActivation(hidden_dim, hidden_dim, stride=stride, groups=hidden_dim),
                nn.Conv2d(hidden_dim, oup, 1, 1, 0, bias=False),
                nn.BatchNorm2d(oup),
            ]
        )
        self.conv = nn.Sequential(*layers)

    def forward(self, x):
        if self.use_res_connect:
            return x + self.conv(x)
        else:
            return self.conv(x)


@case((4, 3, 24, 27), loss="cross_entropy", name="mobilenet_v2")
class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        features = [ConvBNActivation(3, 4, stride=2)]
        for t, c, n, s in [[1, 4, 1, 1], [3, 6, 2, 2]]:
            for i in range(n):
                features.append(
                    InvertedResidual(
                        4 if i == 0 else c, c, stride=s if i == 0 else 1, expand_ratio=t
                    )
                )
        features.append(ConvBNActivation(6, 8, kernel_size=1))
        self.features = nn.Sequential(*features)
        self.classifier = nn.Sequential(nn.Dropout(p=0.0), nn.Linear(8, 4))

    def forward(self, x):
        x = self.features(x)
        x = F.adaptive_avg_pool2d(x, (1, 1)).reshape(x.shape[0], -1)
        return self.classifier(x)


class HardSqueeze(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, channels // 2, 1)
        self.activation = nn.ReLU()
        self.fc2 = nn.Conv2d(channels // 2, channels, 1)
        self.scale_activation = nn.Hardsigmoid()

    def forward(self, x):
        scale = self.activation(self.fc1(self.avgpool(x)))
        return self.scale_activation(self.fc2(scale)) * x


@case((2, 3, 26, 22), loss="cross_entropy", name="mobilenet_v3")
class MobileNetV3(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = ConvBNActivation(3, 4, stride=2, act=nn.Hardswish)
        self.block = nn.Sequential(
            ConvBNActivation(4, 8, kernel_size=1, act=nn.Hardswish),
            ConvBNActivation(8, 8, kernel_size=5, groups=8, act=nn.Hardswish),
            HardSqueeze(8),
            nn.Conv2d(8, 4, 1, groups=2, bias=False),
            nn.BatchNorm2d(4),
        )
        self.head = nn.Conv2d(4, 5, 1)

    def forward(self, x):
        x = self.stem(x)
        x = x + self.block(x)
        return self.head(F.hardswish(x))
