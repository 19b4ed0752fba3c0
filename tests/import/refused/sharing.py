"""Code whose meaning hangs on who shares memory with whom, or on what a file hides. Taking it
lightly would give wrong numbers without a word."""

from typing import Tuple

import torch
from torch import Tensor, nn

from .archive_surgery import CODE, members, write_archive
from .archives import endless_setstate
from .networks import Conv
from .refusal import FINE, file, network


def scripted(words, **others):
    return network(words, exports=("script",), points_to_source=False, **others)


@scripted(["in place"])
class CopyInAnotherLayout(Conv):
    def forward(self, x):
        y = self.conv(x)
        z = y.contiguous(memory_format=torch.channels_last)
        return torch.relu_(z) + y


@scripted(["transpose_"])
class TransposesInPlace(Conv):
    def forward(self, x):
        y = self.conv(x)
        y.transpose_(2, 3)
        return y


@scripted(["in place"])
class GroupsOfAChangedTensor(Conv):
    def forward(self, x):
        y = self.conv(x)
        n, c, h, w = y.shape
        z = y.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous()
        y.relu_()
        return z.view(n, c, h, w)


@scripted(["shares memory"])
class SharesATransposedWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Conv2d(3, 3, 1)
        self.b = nn.Conv2d(3, 3, 1)
        self.b.weight = nn.Parameter(self.a.weight.transpose(0, 1))

    def forward(self, x):
        return self.b(self.a(x))


@scripted(["self.sizes"])
class ChangesItsList(Conv):
    def __init__(self):
        super().__init__()
        self.sizes = [1, 2]

    def forward(self, x):
        self.sizes[0] = 3
        return self.conv(x) * self.sizes[0]


@scripted(["twice"])
class ReturnsOneTensorTwice(Conv):
    def forward(self, x):
        y = self.conv(x)
        return y, y


@scripted(["space"])
class LayerNormOfTransposed(Conv):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm([7, 16, 16])

    def forward(self, x):
        return self.norm(self.conv(x).transpose(2, 3))


@scripted(["65536", "elements", "kernel", "padding"])
class HugeWindow(Conv):
    def forward(self, x):
        return torch.max_pool2d(self.conv(x), 1 << 20, 1, 1 << 19)


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(x)


def double(self, input: Tuple[Tensor], output: Tensor) -> Tensor:
    return output * 2


@file(["hooks"])
def hook_on_the_model(path):
    """torch.jit.load runs the hook, which is not in forward()."""
    model = Hooked()
    model.register_forward_hook(double)
    torch.jit.script(model).save(str(path))


class ListOfTensors(Conv):
    def __init__(self):
        super().__init__()
        self.shifts = [torch.randn(1, 4, 64, 64)]

    def forward(self, x):
        return self.conv(x) + self.shifts[0][:, :, :16, :16]


@file(["damaged"])
def short_storage_in_a_list(path):
    torch.jit.script(ListOfTensors()).save(str(path))
    root, contents = members(path)
    largest = max(contents, key=lambda name: len(contents[name]))
    contents[largest] = b"\0" * 16
    write_archive(path, root, contents)


@file(["__setstate__", "twice"])
def setstate_in_upper_case(path):
    """TorchScript finds code/....PY, too."""
    endless_setstate(path)
    root, contents = members(path)
    contents[CODE[:-3] + ".PY"] = contents.pop(CODE)
    contents["code/decoy.py"] = b"x = 1"
    write_archive(path, root, contents)


class WithNumbers(Conv):
    def __init__(self):
        super().__init__()
        self.register_buffer("numbers", torch.arange(3))


@scripted(["aten::add_"])
class ChangesABufferThroughAsTensor(WithNumbers):
    """torch.as_tensor() of a tensor is the tensor itself."""

    def forward(self, x):
        torch.as_tensor(self.numbers).add_(1)
        return self.conv(x) * int(self.numbers[0])


@scripted(["aten::add_"])
class ChangesABufferOutOfAList(WithNumbers):
    def forward(self, x):
        numbers = [self.numbers]
        numbers.pop().add_(1)
        return self.conv(x) * int(self.numbers[0])


@scripted([], codes=FINE)
class ChangesNumbersOfItsOwn(WithNumbers):
    def forward(self, x):
        one = torch.as_tensor(0).add_(1)
        return self.conv(x) * int(one) * int((self.numbers + 1).add_(1)[0])
