"""Archives cut short, with flipped bytes, with members missing or not what they should be."""

import random
import struct
import zipfile

from .archive_surgery import CODE, place_of, replace_member, replace_text, rewrite, write_plain
from .refusal import REFUSED_OR_FINE, add, file

DAMAGED = ["TorchScript", "damaged"]


def truncated_at(fraction):
    def write(path):
        write_plain(path)
        whole = path.read_bytes()
        path.write_bytes(whole[: min(len(whole) - 1, int(len(whole) * fraction))])

    return write


for percent in (1, 5, 15, 30, 45, 60, 75, 90, 97, 100):
    add(f"truncated_at_{percent}", truncated_at(percent / 100), DAMAGED)


def flipped_in(member, seed):
    """Three bits flipped in the file itself, so that the member's checksum is wrong too."""

    def write(path):
        write_plain(path)
        begin, size = place_of(path, member)
        data = bytearray(path.read_bytes())
        draw = random.Random(f"{member} {seed}")
        for _ in range(3):
            data[begin + draw.randrange(size)] ^= 1 << draw.randrange(8)
        path.write_bytes(bytes(data))

    return write


def flipped_with_checksum(member, seed):
    """The same with the right checksum: the reader has to notice by itself, or not at all."""

    def write(path):
        def edit(contents):
            data = bytearray(contents[member])
            draw = random.Random(f"{member} {seed}")
            for _ in range(3):
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            contents[member] = bytes(data)

        rewrite(path, edit)

    return write


CONV_CODE = "code/__torch__/torch/nn/modules/conv.py"
for member in ("data.pkl", CODE, CONV_CODE, "constants.pkl", "version", "data/0"):
    label = member.rpartition("/")[2].replace(".", "_") + ("_code" if member == CONV_CODE else "")
    for seed in range(4):
        add(f"flipped_{label}_{seed}", flipped_in(member, seed), [], codes=REFUSED_OR_FINE)
        add(
            f"flipped_{label}_{seed}_with_checksum",
            flipped_with_checksum(member, seed),
            [],
            codes=REFUSED_OR_FINE,
        )


@file(DAMAGED)
def zip_without_records(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing here")


@file(DAMAGED)
def empty_zip(path):
    zipfile.ZipFile(path, "w").close()


for name in ("data.pkl", CODE, "data/0", "version"):
    key = name.rpartition("/")[2].replace(".", "_")
    add(
        f"without_{key}",
        lambda path, name=name: rewrite(path, lambda contents: contents.pop(name)),
        DAMAGED,
    )
    add(f"empty_{key}", lambda path, name=name: replace_member(path, name, b""), DAMAGED)


@file(["version", "TorchScript"])
def version_of_the_future(path):
    replace_member(path, "version", b"999999\n")


@file(["version", "TorchScript"])
def version_is_no_number(path):
    replace_member(path, "version", b"abc")


@file(["version", "TorchScript"])
def version_overflows(path):
    replace_member(path, "version", b"9" * 400)


@file(DAMAGED)
def short_storage(path):
    replace_member(path, "data/0", b"\0" * 16)


@file([], codes=REFUSED_OR_FINE)
def deflated(path):
    """Zip tools compress by default; PyTorch writes members as they are."""
    rewrite(path, lambda contents: None, zipfile.ZIP_DEFLATED)


@file(DAMAGED)
def code_is_no_code(path):
    replace_member(path, CODE, b"\xff\xfe this is not Python {{{")


@file(DAMAGED)
def unknown_operator_in_code(path):
    replace_text(path, CODE, b"return (conv).forward(x, )", b"return ops.evil.run(x, )")


@file(["recurs", "TorchScript", "itself", "damaged"])
def forward_calls_itself(path):
    replace_text(path, CODE, b"return (conv).forward(x, )", b"return (self).forward(x, )")


@file(["TorchScript", "nest", "deep", "damaged"])
def deep_parentheses(path):
    depth = 200000
    nested = b"(" * depth + b"x" + b")" * depth
    replace_text(path, CODE, b"(conv).forward(x, )", b"(conv).forward(" + nested + b", )")


@file(["TorchScript", "nest", "deep", "damaged"], codes=REFUSED_OR_FINE)
def deep_blocks(path):
    lines = [b"    conv = self.conv\n"]
    for depth in range(3000):
        lines.append(b" " * (4 + depth) + b"if True:\n")
    lines.append(b" " * 3004 + b"x = x\n")
    replace_text(path, CODE, b"    conv = self.conv\n", b"".join(lines))


@file(DAMAGED)
def huge_member_size(path):
    """The directory says that a tensor's member has almost 4 GiB."""
    write_plain(path)
    data = bytearray(path.read_bytes())
    name = data.rfind(b"/data/0")
    entry = data.rfind(b"PK\x01\x02", 0, name)
    struct.pack_into("<II", data, entry + 20, 0xFFFFFFF0, 0xFFFFFFF0)
    path.write_bytes(bytes(data))


@file(["__setstate__", "__getstate__", "state"])
def endless_setstate(path):
    """Code that a reader would run while loading; this one never returns."""
    state = (
        b"  def __getstate__(self: __torch__.refused.files.Plain) -> int:\n    return 1\n"
        b"  def __setstate__(self: __torch__.refused.files.Plain,\n    state: int) -> NoneType:\n"
        b"    i = 1\n    while True:\n      i = i + 1\n    return None\n"
    )

    def edit(contents):
        contents[CODE] += state
        # BUILD the object from a number instead of a dict: the reader then calls __setstate__.
        opening = contents["data.pkl"].index(b"}")
        contents["data.pkl"] = contents["data.pkl"][:opening] + b"K\x01b."

    rewrite(path, edit)
