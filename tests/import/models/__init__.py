"""Networks as PyTorch users write them, one family per file; small, so that a step takes
milliseconds in float64. `CASES` maps their names to how they are exported and trained."""

from . import (  # noqa: F401
    activations,
    attention,
    classifiers,
    computed_weights,
    convnext,
    deeplab,
    densenet,
    dropouts,
    inception,
    mobilenet,
    norms,
    padding,
    parameters,
    plumbing,
    pools,
    pyramid,
    python,
    resize,
    resnet,
    response_norm,
    signal1d,
    squeeze,
    stacks,
    superres,
    unet,
    unet_variants,
    unpooling,
    volume,
)
from .case import CASES, Case  # noqa: F401
