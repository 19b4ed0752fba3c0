"""Programs whose path depends on the data, or that do not end, or that end far too late."""

import torch
from torch import nn

from .networks import Conv
from .refusal import network


@network(["depends", "data", "values"], exports=("script",))
class BranchOnData(Conv):
    def forward(self, x):
        x = self.conv(x)
        if x.sum() > 0:
            return x
        return -x


@network(["depends", "data", "values"], exports=("script",))
class BranchOnItem(Conv):
    def forward(self, x):
        x = self.conv(x)
        if x.mean().item() > 0.1:
            x = x * 2
        return x


@network(["depends", "data", "values"], exports=("script",))
class LoopOnData(Conv):
    def forward(self, x):
        x = self.conv(x)
        while x.abs().max() > 1.0:
            x = x / 2
        return x


@network(["depends", "data", "values", "aten::Int"], exports=("script",))
class SizeFromData(Conv):
    def forward(self, x):
        x = self.conv(x)
        rows = int(x.abs().sum())
        return x[:, :, :rows]


@network(["depends", "data", "values"], exports=("script",))
class BranchOnWeight(Conv):
    """A trained weight decides: it changes with every step."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        x = self.conv(x)
        if bool(self.gate > 0):
            return x * self.gate
        return x


@network(["loop", "iterations", "steps", "operators"], exports=("script",), points_to_source=False)
class LongLoop(Conv):
    def forward(self, x):
        x = self.conv(x)
        for _ in range(1000000000000):
            x = x + 1
        return x


@network(["loop", "iterations", "steps", "operators"], exports=("script",), points_to_source=False)
class LongCount(Conv):
    """Spends its time on numbers only."""

    def forward(self, x):
        total = 0
        for i in range(1000000000000):
            total += i % 3
        return self.conv(x) * total


@network(["loop", "iterations", "steps", "operators"], exports=("script",), points_to_source=False)
class EndlessLoop(Conv):
    def forward(self, x):
        n = 1
        while n > 0:
            n += 1
        return self.conv(x) * n


@network(
    ["loop", "iterations", "steps", "long", "large", "elements", "items"],
    exports=("script",),
    points_to_source=False,
)
class GrowingList(Conv):
    """A list that doubles: memory, not time."""

    def forward(self, x):
        sizes = [1]
        for _ in range(60):
            sizes = sizes + sizes
        return self.conv(x) * len(sizes)


@network(
    ["aten::zeros"],
    exports=("script",),
    points_to_source=False,
)
class HugeConstant(Conv):
    def forward(self, x):
        return self.conv(x) + torch.zeros([1000000, 1000000, 1000])[0, 0, 0]


@network(
    ["large", "elements", "memory", "pad", "size"], exports=("script",), points_to_source=False
)
class HugePadding(Conv):
    """An image of 10^18 pixels."""

    def forward(self, x):
        return nn.functional.pad(self.conv(x), (1000000000, 0, 1000000000, 0))
