"""DenseNet: each layer reads the concatenation of a list that grows."""

from typing import List

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .case import case


class DenseLayer(nn.Module):
    def __init__(self, num_input_features, growth_rate, bn_size):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, bn_size * growth_rate, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, 3, padding=1, bias=False)
        self.drop_rate = 0.0

    def forward(self, inputs: List[Tensor]) -> Tensor:
        concatenated = torch.cat(inputs, 1)
        x = self.conv1(self.relu1(self.norm1(concatenated)))
        x = self.conv2(self.relu2(self.norm2(x)))
        if self.drop_rate > 0:
            x = F.dropout(x, p=self.drop_rate, training=self.training)
        return x


class DenseBlock(nn.Module):
    def __init__(self, num_layers, num_input_features, growth_rate):
        super().__init__()
        self.layers = nn.ModuleList(
            DenseLayer(num_input_features + i * growth_rate, growth_rate, 2)
            for i in range(num_layers)
        )

    def forward(self, init_features: Tensor) -> Tensor:
        features = [init_features]
        for layer in self.layers:
            features.append(layer(features))
        return torch.cat(features, 1)


class Transition(nn.Sequential):
    def __init__(self, num_input_features, num_output_features):
        super().__init__()
        self.add_module("norm", nn.BatchNorm2d(num_input_features))
        self.add_module("relu", nn.ReLU(inplace=True))
        self.add_module("conv", nn.Conv2d(num_input_features, num_output_features, 1, bias=False))
        self.add_module("pool", nn.AvgPool2d(kernel_size=2, stride=2))


@case((4, 3, 20, 22), loss="cross_entropy", name="densenet")
class DenseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv0 = nn.Conv2d(3, 4, 3, stride=1, padding=1, bias=False)
        self.denseblock1 = DenseBlock(3, 4, 3)
        self.transition1 = Transition(13, 6)
        self.denseblock2 = DenseBlock(2, 6, 3)
        self.norm5 = nn.BatchNorm2d(12)
        self.classifier = nn.Linear(12, 4)

    def forward(self, x):
        x = self.denseblock1(self.conv0(x))
        x = self.denseblock2(self.transition1(x))
        x = F.relu(self.norm5(x), inplace=True)
        x = F.adaptive_avg_pool2d(x, (1, 1)).view(x.size(0), -1)
        return self.classifier(x)
