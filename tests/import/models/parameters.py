"""Parameters and buffers that no layer owns: functional, constant, frozen, unused, tied."""

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


@case((2, 3, 16, 15), loss="cross_entropy")
class FunctionalWeights(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(4, 3, 3, 3) * 0.3)
        self.b1 = nn.Parameter(torch.zeros(4))
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(4, 1, 3, 3)) for _ in range(2)])
        self.w2 = nn.Parameter(torch.randn(4, 3, 2, 2) * 0.3)

    def forward(self, x):
        x = F.relu(F.conv2d(x, self.w1, self.b1, stride=2, padding=1))
        for weight in self.weights:
            x = F.relu(F.conv2d(x, weight, padding=1, groups=4))
        return F.conv_transpose2d(x, self.w2, stride=2)


@case((2, 3, 17, 16), loss="cross_entropy")
class Constants(nn.Module):
    """Inputs normalised by buffers, a fixed blur kernel, a tensor made in forward."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))
        blur = torch.tensor([1.0, 2.0, 1.0])
        blur = (blur[:, None] * blur[None, :]) / 16
        self.register_buffer("blur", blur.expand(4, 1, 3, 3).contiguous())
        self.conv1 = nn.Conv2d(3, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 3, 3, padding=1)

    def forward(self, x):
        x = (x - self.mean) / self.std
        x = F.relu(self.conv1(x))
        x = F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), self.blur, stride=2, groups=4)
        x = torch.cat([x[:, :3], torch.ones_like(x[:, :1])], dim=1)
        return self.conv2(x)


@case((2, 3, 14, 14), loss="cross_entropy")
class FrozenAndUnused(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU())
        for parameter in self.backbone.parameters():
            parameter.requires_grad_(False)
        self.never = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.tensor(1.5), requires_grad=False)
        self.spare = nn.Parameter(torch.randn(2, 2))
        self.middle = nn.Conv2d(4, 4, 3, padding=1)
        self.middle.bias.requires_grad_(False)
        self.head = nn.Conv2d(4, 3, 1)

    def forward(self, x):
        return self.head(torch.relu(self.middle(self.backbone(x)) * self.scale))


@case((2, 3, 12, 14), loss="mse")
class TiedWeights(nn.Module):
    """The decoder transposes the encoder's own weight: one parameter under two names."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Conv2d(3, 6, 3, padding=1)
        self.decode = nn.ConvTranspose2d(6, 3, 3, padding=1)
        self.decode.weight = self.encode.weight

    def forward(self, x):
        return self.decode(F.relu(self.encode(x)))


@case((2, 3, 12, 14), loss="mse")
class TiedWeightsReadLate(nn.Module):
    """forward() reads the second name of a tied weight first; gradients go by the first."""

    def __init__(self):
        super().__init__()
        self.last = nn.Conv2d(3, 3, 3, padding=1, bias=False)
        self.first = nn.Conv2d(3, 3, 3, padding=1)
        self.first.weight = self.last.weight

    def forward(self, x):
        return self.last(F.relu(self.first(x)))
