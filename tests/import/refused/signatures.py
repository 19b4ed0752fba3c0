"""What goes in and what comes out: inputs, outputs, shapes, a class without forward."""

from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from .files import Plain
from .networks import Conv
from .refusal import file, network


TRAIN = ("--data", "synthetic:samples=4")


def exported_as(words, **others):
    """Scripted; the trouble is the whole class, so no line is asked for."""
    return network(words, exports=("script",), points_to_source=False, **others)


@exported_as(["input"])
class TwoInputs(Conv):
    def forward(self, x, y):
        return self.conv(x + y)


@exported_as(["input"])
class NoInput(Conv):
    def forward(self):
        return self.conv(torch.ones(1, 3, 8, 8))


@exported_as(["input", "List"])
class ListInput(Conv):
    def forward(self, x: List[Tensor]):
        return self.conv(x[0])


@exported_as(["aten::ones"])
class IntegerInput(Conv):
    def forward(self, n: int):
        return self.conv(torch.ones(n, 3, 8, 8))


@exported_as(["output", "returns"])
class FloatOutput(Conv):
    def forward(self, x) -> float:
        return float(self.conv(x).size(2))


@exported_as(["output", "returns"])
class NoOutput(Conv):
    def forward(self, x) -> Optional[Tensor]:
        y = self.conv(x)
        return None if y.size(0) > 0 else y


@exported_as(["output", "returns"])
class MixedOutput(Conv):
    def forward(self, x) -> Tuple[Tensor, int]:
        return self.conv(x), x.size(1)


@exported_as(["output", "returns"])
class EmptyOutput(Conv):
    def forward(self, x) -> Dict[str, Tensor]:
        result: Dict[str, Tensor] = {}
        return result


@exported_as(["aten::ones"])
class ConstantOutput(Conv):
    """Does not depend on the input."""

    def forward(self, x):
        return torch.ones(2, 3, 4, 4)


@exported_as(["parameter", "train"], command=("train",), options=TRAIN)
class NoParameters(nn.Module):
    def forward(self, x):
        return torch.relu(x)


@exported_as(["parameter", "train"], command=("train",), options=TRAIN)
class AllFrozen(Conv):
    def __init__(self):
        super().__init__()
        for parameter in self.parameters():
            parameter.requires_grad_(False)

    def forward(self, x):
        return self.conv(x)


@exported_as(["forward"])
class NoForward(Conv):
    @torch.jit.export
    def predict(self, x):
        return self.conv(x)


@network(["channels"], input_shape="2x5x16x16", exports=("script",))
class WrongChannels(Conv):
    def forward(self, x):
        return self.conv(x)


@network(["small", "larger", "size", "kernel"], input_shape="2x3x4x4", exports=("script",))
class InputTooSmall(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 4, 3)
        self.conv2 = nn.Conv2d(4, 4, 3)

    def forward(self, x):
        x = self.conv1(x)
        return self.conv2(x)


@exported_as(["axes", "dimensions", "spatial", "shape"], input_shape="2x3x16")
class WrongNumberOfAxes(Conv):
    def forward(self, x):
        return self.conv(x)


@network(["assert", "AssertionError", "multiple of 5"], exports=("script",))
class FailedAssert(Conv):
    def forward(self, x):
        assert x.shape[-1] % 5 == 0, "the width must be a multiple of 5"
        return self.conv(x)


@network(["ValueError", "raise", "two classes"], exports=("script",))
class Raises(Conv):
    def forward(self, x):
        if x.size(1) == 3:
            raise ValueError("expected two classes")
        return self.conv(x)


@file(["--input"], input_shape="", options=("--loss", "mse"))
def no_input_shape(path):
    torch.jit.script(Plain()).save(str(path))


@file(["loss", "hinge"], options=("--loss", "hinge"))
def unknown_loss(path):
    torch.jit.script(Plain()).save(str(path))


@file(["weights", "outputs"], options=("--loss", "mse", "--output-weights", "1,2,3"))
def too_many_output_weights(path):
    torch.jit.script(Plain()).save(str(path))


@file(["npy", "nowhere"], options=("--loss", "mse", "--input-npy", "nowhere.npy"), input_shape="")
def missing_input_file(path):
    torch.jit.script(Plain()).save(str(path))
