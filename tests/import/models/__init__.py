"""Networks as PyTorch users write them, one family per file; small, so that a step takes
milliseconds in float64. `CASES` maps their names to how they are exported and trained."""

from . import (  # noqa: F401
    activations,
    attention,
    classifiers,
    convnext,
    deeplab,
    densenet,
    inception,
    mobilenet,
    norms,
    padding,
    parameters,
    plumbing,
    pools,
    pyramid,
    resize,
    resnet,
    signal1d,
    squeeze,
    superres,
    transformers,
    unet,
    unet_variants,
    views,
    volume,
)
from .case import CASES, Case  # noqa: F401
