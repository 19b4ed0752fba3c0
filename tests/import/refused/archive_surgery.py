"""Takes a good TorchScript file apart and puts it together again with one thing changed."""

import struct
import zipfile

import torch

from .files import Plain

CODE = "code/__torch__/refused/files.py"  # the member that holds the class Plain


def write_plain(path):
    torch.manual_seed(1)
    torch.jit.script(Plain()).save(str(path))


def members(path):
    """{name without the archive's own folder: bytes}, and that folder."""
    with zipfile.ZipFile(path) as archive:
        root = archive.namelist()[0].split("/")[0]
        return root, {name[len(root) + 1 :]: archive.read(name) for name in archive.namelist()}


def place_of(path, member):
    """Where a member's bytes begin in the file, and how many they are there."""
    with zipfile.ZipFile(path) as archive:
        (info,) = [i for i in archive.infolist() if i.filename.split("/", 1)[1] == member]
    header = path.read_bytes()[info.header_offset : info.header_offset + 30]
    name_size, extra_size = struct.unpack("<HH", header[26:30])
    return info.header_offset + 30 + name_size + extra_size, info.compress_size


def write_archive(path, root, contents, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in contents.items():
            archive.writestr(f"{root}/{name}", data)


def rewrite(path, edit, compression=zipfile.ZIP_STORED):
    """Calls edit(contents) on the members of a good file; their checksums stay right."""
    write_plain(path)
    root, contents = members(path)
    edit(contents)
    write_archive(path, root, contents, compression)


def replace_member(path, name, data):
    def edit(contents):
        assert name in contents, f"no {name} in {sorted(contents)}"
        contents[name] = data

    rewrite(path, edit)


def replace_text(path, name, old, new):
    def edit(contents):
        assert old in contents[name], f"no {old} in {name}"
        contents[name] = contents[name].replace(old, new)

    rewrite(path, edit)
