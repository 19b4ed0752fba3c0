"""Classifiers: three ways from an image to a row of features, dropout that does nothing."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


@case((4, 1, 16, 16), loss="cross_entropy", train=False)
class FlattenView(nn.Module):
    """The first network of every tutorial; dropout in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 5)
        self.conv2 = nn.Conv2d(4, 6, 3)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(6 * 2 * 2, 12)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(12, 5)

    def num_flat_features(self, x):
        size = x.size()[1:]
        num_features = 1
        for s in size:
            num_features *= s
        return num_features

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = x.view(-1, self.num_flat_features(x))
        x = self.drop(F.relu(self.fc1(x)))
        return self.fc2(x)


@case((4, 2, 12, 10), loss="cross_entropy", float32=True)
class FlattenReshape(nn.Module):
    """Vgg's head: adaptive pooling to a small map, then flatten; batch norm on features."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3)
        )
        self.avgpool = nn.AdaptiveAvgPool2d((2, 3))
        self.classifier = nn.Sequential(
            nn.Linear(24, 8), nn.BatchNorm1d(8), nn.ReLU(True), nn.Dropout(p=0.0), nn.Linear(8, 3)
        )

    def forward(self, x):
        x = self.avgpool(self.features(x))
        x = x.reshape(x.shape[0], 4 * 2 * 3)
        return self.classifier(x)


@case((3, 2, 13, 11), loss="cross_entropy")
class MaxAndMeanHead(nn.Module):
    """Squeezes, sums over space, maxima over space; flatten by nn.Flatten."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 5, 3, padding=1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(20, 4)

    def forward(self, x):
        x = F.relu(self.conv(x))
        a = F.adaptive_max_pool2d(x, 1).squeeze(-1).squeeze(-1)
        b = self.flatten(F.adaptive_avg_pool2d(x, output_size=1))
        c = torch.amax(x, dim=(2, 3))
        d = x.sum(dim=[2, 3]) / float(x.shape[2] * x.shape[3])
        return F.log_softmax(self.fc(torch.cat([a, b, c, d], dim=1)), dim=-1)
