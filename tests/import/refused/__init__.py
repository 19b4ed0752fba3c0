"""Files that `tessera` must refuse with a helpful message, one kind of trouble per file."""

from . import (  # noqa: F401
    archives,
    control_flow,
    files,
    hostile,
    networks,
    pickles,
    sharing,
    signatures,
    weights,
)
from .refusal import REFUSALS, Refusal  # noqa: F401
