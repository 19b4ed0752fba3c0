"""The program seen from outside: run it, write its input files, read its output files."""

import json
import os
import struct
import subprocess
from dataclasses import dataclass

import numpy
import torch


@dataclass
class Outcome:
    code: int  # negative: ended by that signal
    out: str
    err: str
    timed_out: bool

    def describe(self):
        return f"exit code {self.code}\n{self.out[-2000:]}{self.err[-3000:]}".rstrip()


def run(arguments, timeout_s, address_space_bytes=None):
    """Runs a command to its end, or kills it at the limit."""
    command = [str(argument) for argument in arguments]
    if address_space_bytes:
        limit = f"ulimit -v {address_space_bytes // 1024}"
        command = ["sh", "-c", limit + ' && exec "$@"', "sh", *command]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, OMP_NUM_THREADS="1"),
    )
    timed_out = False
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        process.kill()
        out, err = process.communicate()
    out, err = (text.decode("utf-8", "replace") for text in (out, err))
    return Outcome(process.returncode, out, err, timed_out)


def write_npy(path, tensor):
    numpy.save(path, tensor.detach().contiguous().numpy())


SAFETENSORS_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


def read_safetensors(path):
    """Eight bytes of header length, a JSON header with each tensor's place, the raw numbers."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        assert 0 <= begin <= end <= len(data), f"{name} lies outside the file"
        dtype = SAFETENSORS_TYPES[entry["dtype"]]
        raw = bytearray(data[begin:end])
        flat = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def difference(actual, expected):
    """The largest relative difference over {name: tensor}, and whose it is. Relative to a tensor's
    own largest number, or a thousandth of the largest of all: some gradients are truly zero."""
    floor = 1e-3 * max((t.abs().max().item() for t in expected.values() if t.numel()), default=0)
    worst, whose = 0.0, ""
    for name, reference in expected.items():
        if name not in actual:
            return float("inf"), f"{name} (missing)"
        tensor = actual[name].detach()
        if tensor.shape != reference.shape:
            shapes = f"{tuple(tensor.shape)} instead of {tuple(reference.shape)}"
            return float("inf"), f"{name} (shape {shapes})"
        if not reference.numel():
            continue
        largest = (tensor.double() - reference.double()).abs().max().item()
        if not largest < float("inf"):  # a NaN is as bad
            return float("inf"), name
        relative = largest / (max(reference.abs().max().item(), floor) or 1)
        if relative > worst:
            worst, whose = relative, name
    return worst, whose
