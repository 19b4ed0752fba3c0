"""The list of files that must be refused, and how a user should learn why.

    @network(words=["aten::sort"])                    a module that exports but cannot be run
    class Sorts(nn.Module): ...

    @file(words=["TorchScript"])                      a file written by hand
    def empty(path): path.write_bytes(b"")
"""

import copy
import inspect
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, List, Optional, Tuple

import torch

SKIP = "skip"  # returned by a writer that cannot make its file here

REFUSED = (2,)
FINE = (0,)
REFUSED_OR_FINE = (0, 2)  # whatever the damage made of the file, but nothing worse


@dataclass
class Refusal:
    name: str
    write: Callable  # (path) writes it, and may return another path to hand over, or SKIP
    words: List[str]  # the message has one of them
    source: Optional[Tuple[str, int, int]]  # file and lines that the message must point into
    input_shape: str
    codes: Tuple[int, ...]
    command: Tuple[str, ...]  # before the model
    options: Tuple[str, ...]  # after it


REFUSALS = {}


def add(name, write, words, input_shape="2x3x16x16", codes=REFUSED, source=None, **others):
    assert name not in REFUSALS, f"two refusals are called {name}"
    command = others.get("command", ("verify",))
    options = others.get("options", ("--loss", "mse", "--space", "2x1"))
    REFUSALS[name] = Refusal(
        name, write, list(words), source, input_shape, codes, command, options
    )


def file(words, **others):
    def register(write):
        add(write.__name__, write, words, **others)
        return write

    return register


def example_of(input_shape):
    torch.manual_seed(1)
    return torch.randn([int(size) for size in input_shape.split("x")])


def save_network(build, how, example, path):
    model = build()
    if how == "script":
        torch.jit.script(model).save(str(path))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(copy.deepcopy(model), example, check_trace=False, strict=False)
    traced.save(str(path))


def network(words, exports=("script", "trace"), points_to_source=True, **others):
    """`words` of which one is in the message, and the user's file and a line of the class."""

    def register(module_class):
        lines, first = inspect.getsourcelines(module_class)
        place = Path(inspect.getsourcefile(module_class)).name
        source = (place, first, first + len(lines)) if points_to_source else None
        example = example_of(others.get("input_shape", "2x3x16x16"))
        for how in exports:

            def write(path, how=how):
                save_network(module_class, how, example, path)

            name = f"{module_class.__name__}.{how}"
            add(name, write, words, source=source, **others)
        return module_class

    return register
