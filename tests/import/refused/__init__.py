"""Files that `tessera` must refuse with a helpful message, one kind of trouble per file."""

from . import archives, control_flow, files, networks, pickles, signatures, weights  # noqa: F401
from .refusal import REFUSALS, Refusal  # noqa: F401
