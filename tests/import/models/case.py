"""The list of test models: what each takes, how it is trained, and how it is exported.

A model file declares its modules with `@case(...)`; the module's constructor takes no arguments.

    @case((2, 3, 24, 20), loss="cross_entropy")
    class ResNet(nn.Module): ...
"""

from dataclasses import dataclass
from typing import Callable, Optional, Tuple


@dataclass(frozen=True)
class Case:
    name: str
    build: Callable
    input_shape: Tuple[int, ...]
    loss: str
    train: bool  # exported in training mode; otherwise norms use their running statistics
    output_weights: Optional[Tuple[float, ...]]
    target_per_output: bool  # else one target, which PyTorch and Tessera resize for each output
    float32: bool  # the file holds float32, as most users' do; it is still trained in float64
    random: bool  # draws masks, which are not PyTorch's: only the program's own oracle can judge
    shows: Tuple[str, ...]  # patterns of lines that `inspect` must print
    exports: Optional[Tuple[str, ...]]  # how it can be exported; None: in every way
    placements: Tuple[str, ...]  # besides random ones, as options

    @property
    def num_axes(self):
        return len(self.input_shape) - 2


CASES = {}


def case(
    input_shape,
    loss,
    name=None,
    train=True,
    output_weights=None,
    target_per_output=False,
    float32=False,
    random=False,
    shows=(),
    exports=None,
    placements=(),
):
    def register(module_class):
        key = name or snake_case(module_class.__name__)
        assert key not in CASES, f"two test models are called {key}"
        CASES[key] = Case(
            key,
            module_class,
            input_shape,
            loss,
            train,
            output_weights,
            target_per_output,
            float32,
            random,
            shows,
            exports,
            placements,
        )
        return module_class

    return register


def snake_case(name):
    out = ""
    for i, letter in enumerate(name):
        starts_word = letter.isupper() and i > 0 and not name[i - 1].isupper()
        out += ("_" if starts_word else "") + letter.lower()
    return out
