"""Padding other than zeros: by the convolution's padding_mode, by modules, by F.pad."""

import torch.nn.functional as F
from torch import nn

from .case import case


@case((2, 3, 17, 19), loss="cross_entropy")
class PaddingModes(nn.Module):
    def __init__(self):
        super().__init__()
        self.reflect = nn.Conv2d(3, 4, 5, padding=2, padding_mode="reflect")
        self.replicate = nn.Conv2d(4, 4, 3, padding=1, stride=2, padding_mode="replicate")
        self.circular = nn.Conv2d(4, 4, 3, padding=(1, 1), padding_mode="circular")
        self.same = nn.Conv2d(4, 4, (4, 3), padding="same", padding_mode="reflect")
        self.head = nn.Conv2d(4, 3, 1)

    def forward(self, x):
        x = F.relu(self.reflect(x))
        x = F.relu(self.replicate(x))
        x = F.relu(self.circular(x))
        return self.head(self.same(x))


@case((2, 3, 16, 14), loss="mse")
class PaddingModules(nn.Module):
    """Uneven sides, constants, negative padding that crops, 'same' on an even kernel."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.ReflectionPad2d((1, 2, 3, 0)),
            nn.Conv2d(3, 4, 3),
            nn.ReplicationPad2d(2),
            nn.Conv2d(4, 4, 4),
            nn.ZeroPad2d((0, 1, 2, 0)),
            nn.Conv2d(4, 4, 3),
            nn.ConstantPad2d((1, 0, 0, 1), 0.5),
            nn.Conv2d(4, 4, 2, padding="same"),
        )
        self.head = nn.Conv2d(4, 2, 3)

    def forward(self, x):
        x = self.net(x)
        x = F.pad(x, (-1, 2, 1, -2))
        x = F.pad(x, (1, 1, 1, 1), mode="circular")
        x = F.pad(x, (1, 1), "constant", -0.25)
        return self.head(x)


@case((2, 2, 31), loss="cross_entropy")
class PaddingModes1d(nn.Module):
    def __init__(self):
        super().__init__()
        self.reflect = nn.Conv1d(2, 4, 7, padding=3, padding_mode="reflect")
        self.circular = nn.Conv1d(4, 4, 5, padding=4, dilation=2, padding_mode="circular")
        self.head = nn.Conv1d(4, 3, 3, padding=1, padding_mode="replicate")

    def forward(self, x):
        return self.head(F.relu(self.circular(F.relu(self.reflect(x)))))
