"""Files that would run code of their own, or show one reader something else than another.

The code writes a file beside the model; the runner looks for it. Each file hides the code, or the
archive itself, in another way."""

import struct
import zipfile
import zlib

from .archive_surgery import CODE, members, rewrite, write_archive, write_plain
from .pickles import HEAD, MARKER, STOP, number, text
from .refusal import file

HOSTILE = ["__setstate__", "hostile", "TorchScript archive", "damaged", "TorchScript cannot"]
CLASS = "__torch__.refused.files"


def evil_methods(path, class_name, deed=None):
    """Methods that TorchScript calls while it reads the pickle."""
    deed = deed or f'torch.save(state, "{path.parent / MARKER}")'
    return (
        f"  def __getstate__(self: {class_name}) -> int:\n    return 1\n"
        f"  def __setstate__(self: {class_name},\n    state: int) -> NoneType:\n"
        f"    {deed}\n    return None\n"
    ).encode()


def built_from_a_number(pickle):
    """The object's state is a number, not a dict: the reader then calls __setstate__."""
    return pickle[: pickle.index(b"}")] + b"K\x01b."


def with_evil_code(path, contents, deed=None):
    contents[CODE] += evil_methods(path, f"{CLASS}.Plain", deed)
    contents["data.pkl"] = built_from_a_number(contents["data.pkl"])


def evil(path, edit=lambda contents: None, deed=None):
    def change(contents):
        with_evil_code(path, contents, deed)
        edit(contents)

    rewrite(path, change)


@file(HOSTILE)
def setstate_that_writes_a_file(path):
    evil(path)


@file(HOSTILE)
def setstate_in_a_module_with_a_long_name(path):
    """A reader of names that stops after 512 letters sees no code."""
    name = "a" * 600

    def edit(contents):
        for member in list(contents):
            contents[member] = contents[member].replace(CLASS.encode(), f"__torch__.{name}".encode())
        contents[f"code/__torch__/{name}.py"] = contents.pop(CODE)
        contents.pop(CODE + ".debug_pkl", None)

    evil(path, edit)


@file(HOSTILE)
def setstate_after_a_flatbuffer(path):
    """A file that begins as a mobile model and ends as an archive."""
    evil(path)
    path.write_bytes(b"\x18\0\0\0PTMF" + b"\0" * 56 + path.read_bytes())


@file(HOSTILE)
def setstate_in_another_case(path):
    evil(path, lambda contents: contents.update({CODE.upper(): contents.pop(CODE)}))


@file(HOSTILE)
def setstate_in_a_child_module(path):
    conv = "code/__torch__/torch/nn/modules/conv.py"

    def edit(contents):
        contents[conv] += evil_methods(path, "__torch__.torch.nn.modules.conv.Conv2d")

    rewrite(path, edit)


@file(HOSTILE)
def setstate_in_a_class_that_is_no_module(path):
    """An attribute that is an object of a TorchScript class."""

    def edit(contents):
        contents[CODE] = (
            b"class State:\n  n : int\n"
            + evil_methods(path, f"{CLASS}.State")
            + f"class Plain(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
            f"  state : {CLASS}.State\n"
            f"  def forward(self: {CLASS}.Plain,\n    x: Tensor) -> Tensor:\n    return x\n".encode()
        )
        contents["data.pkl"] = (
            HEAD + f"c{CLASS}\nPlain\n)\x81}}(".encode("latin1") + text("state")
            + f"c{CLASS}\nState\n)\x81".encode("latin1") + number(1) + b"bub" + STOP
        )

    rewrite(path, edit)


@file(HOSTILE)
def setstate_that_never_returns(path):
    evil(path, deed="while True:\n      state = state + 1")


@file(HOSTILE)
def setstate_in_the_second_of_two_archives(path):
    evil(path)
    second = path.read_bytes()
    write_plain(path)
    path.write_bytes(path.read_bytes() + second)


@file(HOSTILE)
def setstate_in_the_first_of_two_archives(path):
    evil(path)
    first = path.read_bytes()
    write_plain(path)
    path.write_bytes(first + path.read_bytes())


@file(HOSTILE)
def archive_in_the_comment_of_an_archive(path):
    evil(path)
    inner = path.read_bytes()
    write_plain(path)
    outer = path.read_bytes()
    path.write_bytes(outer[:-2] + struct.pack("<H", len(inner)) + inner)


@file(HOSTILE)
def bytes_before_the_archive(path):
    write_plain(path)
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())


@file(HOSTILE)
def bytes_after_the_archive(path):
    write_plain(path)
    path.write_bytes(path.read_bytes() + b"\0")


def entry_of(data, name):
    """Where the directory speaks of a record."""
    return data.rfind(b"PK\x01\x02", 0, data.rfind(name))


@file(HOSTILE)
def record_that_the_directory_names_otherwise(path):
    """The directory says readme.txt, the record's own header says code."""
    evil(path)
    data = bytearray(path.read_bytes())
    place = data.rfind(CODE.encode())
    data[place : place + len(CODE)] = b"x" * len(CODE)
    path.write_bytes(bytes(data))


@file(HOSTILE)
def two_records_of_one_place(path):
    evil(path)
    data = bytearray(path.read_bytes())
    first, second = entry_of(data, b"/data.pkl"), entry_of(data, b"/version")
    data[second + 42 : second + 46] = data[first + 42 : first + 46]
    path.write_bytes(bytes(data))


@file(HOSTILE)
def record_that_is_a_link(path):
    write_plain(path)
    root, contents = members(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            info = zipfile.ZipInfo(f"{root}/{name}")
            if name == "data/0":
                info.create_system, info.external_attr, data = 3, 0o120777 << 16, b"/etc/passwd"
            archive.writestr(info, data)


@file(HOSTILE)
def record_outside_of_the_folder(path):
    write_plain(path)
    root, contents = members(path)
    contents["../../outside.py"] = b"x = 1\n"
    write_archive(path, root, contents)


@file(HOSTILE)
def record_in_another_folder(path):
    write_plain(path)
    root, contents = members(path)
    write_archive(path, root, contents)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("elsewhere/code/__torch__/x.py", b"x = 1\n")


@file(HOSTILE)
def code_that_unpacks_to_half_a_gigabyte(path):
    """Half a GiB of spaces takes half a MiB. The checksum is wrong as well."""
    write_plain(path)
    root, contents = members(path)
    contents.pop(CODE + ".debug_pkl")
    size = 1 << 29
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = b" " * (1 << 24)
    packed = b"".join(packer.compress(block) for _ in range(size >> 24)) + packer.flush()
    contents[CODE] = b"\n"
    write_archive(path, root, contents)
    data = bytearray(path.read_bytes())
    name = f"{root}/{CODE}".encode()
    header = data.find(name) - 30
    entry = entry_of(data, name)
    struct.pack_into("<H", data, entry + 10, 8)
    struct.pack_into("<H", data, header + 8, 8)
    struct.pack_into("<II", data, entry + 20, len(packed), size)
    struct.pack_into("<II", data, header + 18, len(packed), size)
    start = header + 30 + len(name)
    data[start : start + 1] = packed
    moved = len(packed) - 1
    at = data.find(b"PK\x01\x02", start + len(packed))
    end = data.rfind(b"PK\x05\x06")
    struct.pack_into("<I", data, end + 16, at)
    while data[at : at + 4] == b"PK\x01\x02":
        (offset,) = struct.unpack_from("<I", data, at + 42)
        if offset > header:
            struct.pack_into("<I", data, at + 42, offset + moved)
        name_size, extra, comment = struct.unpack_from("<HHH", data, at + 28)
        at += 46 + name_size + extra + comment
    path.write_bytes(bytes(data))


@file(HOSTILE)
def object_of_a_built_in_class(path):
    """A class of LibTorch's own, whose C++ code takes the state apart."""

    def edit(contents):
        contents["data.pkl"] = (
            HEAD + b"c__torch__.torch.classes.quantized\nConv2dPackedParamsBase\n)\x81"
            + number(1) + b"b" + STOP
        )

    rewrite(path, edit)


@file(HOSTILE)
def pickle_that_rebuilds_a_file_as_a_tensor(path):
    def edit(contents):
        contents["data.pkl"] = (
            HEAD + b"ctorch\nfrom_file\n" + text("/etc/passwd") + b"\x88" + number(10)
            + b"\x87R" + STOP
        )

    rewrite(path, edit)


@file(["hook", *HOSTILE])
def forward_hook_with_a_deed(path):
    name = f"{CLASS}.Plain"

    def edit(contents):
        contents[CODE] = contents[CODE].replace(
            b"  def forward(", b"  __forward_hooks__ = [\"deed\", ]\n  def forward(", 1
        ) + (
            f"  def deed(self: {name},\n    input: Tuple[Tensor],\n    output: Tensor) -> Tensor:\n"
            f'    torch.save(output, "{path.parent / MARKER}")\n    return output\n'
        ).encode()

    rewrite(path, edit)


@file(["save", *HOSTILE])
def forward_that_writes_a_file(path):
    """The importer reads forward(), it does not run it."""

    def edit(contents):
        contents[CODE] = contents[CODE].replace(
            b"    return (conv).forward(x, )",
            f'    torch.save(1, "{path.parent / MARKER}")\n    return (conv).forward(x, )'.encode(),
        )

    rewrite(path, edit)
