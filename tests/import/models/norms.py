"""Group, instance and layer norms with every setting that changes their numbers."""

import torch.nn.functional as F
from torch import nn

from .case import case


@case((2, 3, 18, 15), loss="cross_entropy")
class GroupNormNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1),
            nn.GroupNorm(num_groups=3, num_channels=6),
            nn.ReLU(inplace=True),
            nn.Conv2d(6, 8, 3, stride=2, padding=1),
            nn.GroupNorm(1, 8, eps=1e-4),
            nn.ReLU(inplace=True),
            nn.Conv2d(8, 8, 3, padding=1, groups=4),
            nn.GroupNorm(8, 8, affine=False),
            nn.ReLU(inplace=True),
            nn.Conv2d(8, 4, 1),
        )

    def forward(self, x):
        return self.net(x)


class InstanceNormNet(nn.Module):
    def __init__(self, affine, track_running_stats):
        super().__init__()
        options = dict(affine=affine, track_running_stats=track_running_stats)
        self.conv1 = nn.Conv2d(3, 5, 3, padding=1)
        self.norm1 = nn.InstanceNorm2d(5, **options)
        self.conv2 = nn.Conv2d(5, 6, 4, stride=2, padding=1)
        self.norm2 = nn.InstanceNorm2d(6, momentum=0.2, **options)
        self.conv3 = nn.Conv2d(6, 3, 3, padding=1)

    def forward(self, x):
        x = F.leaky_relu(self.norm1(self.conv1(x)), 0.2)
        x = F.leaky_relu(self.norm2(self.conv2(x)), 0.2)
        return self.conv3(x)


@case((2, 3, 16, 18), loss="cross_entropy")
class InstanceNormAffine(InstanceNormNet):
    def __init__(self):
        super().__init__(affine=True, track_running_stats=False)


@case((2, 3, 18, 14), loss="cross_entropy")
class InstanceNormTracked(InstanceNormNet):
    def __init__(self):
        super().__init__(affine=True, track_running_stats=True)


@case((2, 3, 14, 16), loss="cross_entropy", train=False)
class InstanceNormEval(InstanceNormNet):
    """In evaluation mode the running statistics are used, as batch norm does."""

    def __init__(self):
        super().__init__(affine=False, track_running_stats=True)


@case((2, 3, 13, 17), loss="cross_entropy")
class BatchNormSettings(nn.Module):
    """Without weights, without statistics, evaluating inside a training model, functional."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 5, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(5, affine=False)
        self.conv2 = nn.Conv2d(5, 5, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(5, track_running_stats=False)
        self.conv3 = nn.Conv2d(5, 5, 3, padding=1)
        self.norm3 = nn.BatchNorm2d(5)
        self.norm3.eval()
        self.conv4 = nn.Conv2d(5, 4, 1)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        x = F.relu(self.norm2(self.conv2(x)))
        x = F.relu(self.norm3(self.conv3(x)))
        x = F.instance_norm(x)
        return F.group_norm(self.conv4(x), 2)
