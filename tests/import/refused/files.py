"""What users hand over by mistake: files that are not TorchScript archives at all."""

import gzip
import os
import struct

import torch
from torch import nn

from .refusal import SKIP, file

NOT_TORCHSCRIPT = ["TorchScript"]


class Plain(nn.Module):
    """A model that would be fine."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 7, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


@file(NOT_TORCHSCRIPT)
def empty(path):
    path.write_bytes(b"")


@file(NOT_TORCHSCRIPT)
def text(path):
    path.write_text("import torch\n")


@file(NOT_TORCHSCRIPT)
def random_bytes(path):
    path.write_bytes(bytes(torch.randint(0, 256, (5000,), dtype=torch.uint8).tolist()))


@file(NOT_TORCHSCRIPT)
def git_lfs_pointer(path):
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12345\n")


@file(NOT_TORCHSCRIPT)
def safetensors(path):
    path.write_bytes(struct.pack("<Q", 2) + b"{}")


@file(NOT_TORCHSCRIPT)
def gzipped(path):
    torch.jit.script(Plain()).save(str(path))
    path.write_bytes(gzip.compress(path.read_bytes()))


@file(["state_dict", "torch.jit"])
def state_dict(path):
    torch.save(Plain().state_dict(), str(path))


@file(["torch.jit"])
def eager_module(path):
    torch.save(Plain(), str(path))


@file(["torch.jit"])
def eager_module_legacy(path):
    torch.save(Plain(), str(path), _use_new_zipfile_serialization=False)


@file(["torch.jit"])
def single_tensor(path):
    torch.save(torch.zeros(3), str(path))


@file(["directory", "folder"])
def directory(path):
    path.mkdir()


@file(["no such", "not exist", "cannot", "not found", "no file"])
def missing(path):
    return path.with_name("nowhere.pt")


@file(["cannot", "permission"])
def unreadable(path):
    if os.geteuid() == 0:
        return SKIP  # root reads everything
    torch.jit.script(Plain()).save(str(path))
    path.chmod(0)


@file(["regular", "not a file", "pipe", "TorchScript"])
def named_pipe(path):
    """Opening it to read would wait for ever."""
    os.mkfifo(path)


@file(["regular", "not a file", "device", "TorchScript"])
def endless_device(path):
    path.symlink_to("/dev/zero")


@file(["no such file", "symbolic", "levels"])
def link_to_itself(path):
    path.symlink_to(path.name)
