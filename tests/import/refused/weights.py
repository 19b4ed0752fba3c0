"""Weights of unusual types and values, among them some that are fine."""

import torch
from torch import nn

from .files import Plain
from .networks import Conv
from .refusal import FINE, REFUSED_OR_FINE, file


def save_plain(path, edit):
    model = torch.jit.script(Plain())
    with torch.no_grad():
        edit(model)
    model.save(str(path))


@file([], codes=FINE, command=("plan",), options=())
def nan_weights(path):
    """A diverged model is still a model."""
    save_plain(path, lambda model: model.conv.weight.fill_(float("nan")))


@file(["half", "float16"], codes=REFUSED_OR_FINE, command=("plan",), options=())
def half_weights(path):
    torch.jit.script(Plain().half()).save(str(path))


@file(["bfloat16"], codes=REFUSED_OR_FINE, command=("plan",), options=())
def bfloat16_weights(path):
    torch.jit.script(Plain().bfloat16()).save(str(path))


@file(["complex"])
def complex_weights(path):
    model = torch.jit.script(Plain())
    model.conv.weight = nn.Parameter(torch.zeros(7, 3, 3, 3, dtype=torch.complex64))
    model.save(str(path))


@file(["integer", "int", "Long", "real"])
def integer_weights(path):
    model = torch.jit.script(Plain())
    model.conv.weight = nn.Parameter(torch.ones(7, 3, 3, 3).long(), requires_grad=False)
    model.save(str(path))


@file(["channels", "shape", "expects"])
def wrong_weight_channels(path):
    model = torch.jit.script(Plain())
    model.conv.weight = nn.Parameter(torch.zeros(7, 9, 3, 3))
    model.save(str(path))


@file(["shape", "axes", "dimensions", "weight"])
def wrong_weight_axes(path):
    model = torch.jit.script(Plain())
    model.conv.weight = nn.Parameter(torch.zeros(7, 27))
    model.save(str(path))


@file(["bias", "shape"])
def wrong_bias_length(path):
    model = torch.jit.script(Plain())
    model.conv.bias = nn.Parameter(torch.zeros(8))
    model.save(str(path))


@file(["empty", "shape", "channels", "weight", "positive"])
def empty_weight(path):
    model = torch.jit.script(Plain())
    model.conv.weight = nn.Parameter(torch.zeros(0, 3, 3, 3))
    model.conv.bias = nn.Parameter(torch.zeros(0))
    model.save(str(path))


class WithExtra(Conv):
    def __init__(self, extra):
        super().__init__()
        self.register_buffer("extra", extra)

    def forward(self, x):
        return self.conv(x) + self.extra.sum()


@file(["sparse", "layout", "aten::sum", "extra"])
def sparse_buffer(path):
    torch.jit.script(WithExtra(torch.eye(3).to_sparse())).save(str(path))


@file(["quantized", "qint8", "QInt8", "extra", "aten::sum"])
def quantized_buffer(path):
    extra = torch.quantize_per_tensor(torch.eye(3), 0.1, 0, torch.qint8)
    torch.jit.script(WithExtra(extra)).save(str(path))


@file(["quantized", "Packed", "packed", "prepack"])
def quantized_model(path):
    """Dynamic quantisation puts packed weights behind __getstate__ and __setstate__."""
    engines = [e for e in torch.backends.quantized.supported_engines if e != "none"]
    torch.backends.quantized.engine = engines[0]
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 14 * 14, 3))
    quantised = torch.quantization.quantize_dynamic(model.eval(), {nn.Linear}, torch.qint8)
    torch.jit.script(quantised).save(str(path))
