"""Modules of which users make domain separation networks: codes of features, and codes in space."""

import torch
import torch.nn.functional as F
from torch import nn

CODE = 5
CLASSES = 3


class Features(nn.Module):
    """Two convolutions and a linear layer. Its batch norm sees the batches of all domains."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.conv2 = nn.Conv2d(3, 4, 3, padding=1)
        self.fc = nn.Linear(4 * 4 * 3, CODE)

    def forward(self, x):
        x = F.max_pool2d(torch.tanh(self.norm(self.conv1(x))), 2)
        x = F.avg_pool2d(torch.tanh(self.conv2(x)), 2)
        return torch.tanh(self.fc(x.view(x.size(0), -1)))


class FromFeatures(nn.Module):
    """Features as a small image, and that as one of 16x12."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(CODE, 3 * 4 * 3)
        self.conv = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, code):
        x = torch.tanh(self.fc(code)).view(-1, 3, 4, 3)
        x = F.interpolate(x, size=(16, 12), mode="bilinear", align_corners=False)
        return self.conv(x)


class Scores(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(CODE, 6)
        self.fc2 = nn.Linear(6, CLASSES)

    def forward(self, code):
        return self.fc2(torch.tanh(self.fc1(code)))


class Map(nn.Module):
    """A code in space, at a quarter of the image's size, by a weight that is computed."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(2, 4, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(4, CODE, 3, stride=2, padding=1)

    def forward(self, x):
        weight = self.conv2.weight
        weight = weight - weight.mean(dim=[1, 2, 3], keepdim=True)
        x = torch.tanh(self.conv1(x))
        return F.conv2d(x, weight, self.conv2.bias, [2, 2], [1, 1])


class Up(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.up1 = nn.ConvTranspose2d(CODE, 4, 2, stride=2)
        self.up2 = nn.ConvTranspose2d(4, channels, 2, stride=2)

    def forward(self, code):
        return self.up2(torch.tanh(self.up1(torch.tanh(code))))


class TwoInputs(nn.Module):
    def forward(self, x, y):
        return x + y


class MeanOverBatch(nn.Module):
    def forward(self, code):
        return code.mean(dim=0)


def features():
    """The four modules by their options."""
    encoders = {"encoder": Features(), "private": Features()}
    return {**encoders, "decoder": FromFeatures(), "head": Scores()}


def maps():
    return {"encoder": Map(), "private": Map(), "decoder": Up(2), "head": Up(CLASSES)}
