"""Pickles written by hand: programs to run, tensors of impossible sizes, objects that hold
themselves. A pickle is a program for a small stack machine; see Python's pickletools."""

import struct
from pathlib import Path

from .archive_surgery import CODE, replace_member, replace_text, rewrite
from .refusal import FINE, REFUSED_OR_FINE, add, file

DAMAGED = ["TorchScript", "damaged"]
MARKER = "marker_of_a_pickle_that_was_run"  # in the working folder; the runner looks for it

HEAD = b"\x80\x02"
STOP = b"."


def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value):
    return b"\x8a\x08" + struct.pack("<q", value)


def numbers(values):
    return b"(" + b"".join(number(value) for value in values) + b"t"


def call(module, name, argument):
    return f"c{module}\n{name}\n".encode() + argument + b"\x85R"


def pickle_of(name, body):
    """data.pkl and constants.pkl are both read when a file is loaded."""
    for member in ("data.pkl", "constants.pkl"):
        add(
            f"{member[:-4]}_{name}",
            lambda path, member=member: replace_member(path, member, HEAD + body),
            DAMAGED,
        )


TOUCH = text(f"touch {MARKER}")
pickle_of("runs_os_system", call("os", "system", TOUCH) + STOP)
pickle_of("runs_posix_system", call("posix", "system", TOUCH) + STOP)
pickle_of("runs_eval", call("builtins", "eval", text(f"open('{MARKER}', 'w')")) + STOP)
pickle_of("is_a_number", number(7) + STOP)
pickle_of("is_a_list", b"](" + number(7) + b"e" + STOP)
pickle_of("is_none", b"N" + STOP)
pickle_of("has_no_end", b"}" + text("a"))
pickle_of("pops_an_empty_stack", b"R" + STOP)
pickle_of("reads_an_unset_memo", b"h\xff" + STOP)
pickle_of("reads_a_far_memo", b"j\xff\xff\xff\x7f" + STOP)
pickle_of("has_a_text_of_4_gib", b"X\xf0\xff\xff\xffabc" + STOP)
pickle_of("has_a_stray_tuple", b"t" + STOP)
pickle_of("holds_itself", b"]q\x00(h\x00e" + STOP)
pickle_of("is_nested", b"](" * 300000 + b"e" * 300000 + STOP)
pickle_of("sets_a_key_without_value", b"}(" + number(1) + b"u" + STOP)
for opcode in b"etQubq\x81\x85\x86\x87.":
    body = bytes([opcode]) + (b"\x00" if opcode == ord("q") else b"") + STOP
    pickle_of(f"pops_an_empty_stack_by_{opcode:02x}", body)
pickle_of("makes_an_unknown_class", b"c__torch__.nowhere\nNet\n)\x81}b" + STOP)
pickle_of("rebuilds_from_a_number", call("torch._utils", "_rebuild_tensor_v2", number(1)) + STOP)


# The convolution's weight in the good file: 7 x 3 x 3 x 3, strides, and where it lies.
SIZES = b"(K\x07K\x03K\x03K\x03t"
STRIDES = b"(K\x1bK\x09K\x03K\x01t"
WEIGHT = b"K\x00" + SIZES + STRIDES


def tensor(name, sizes=(7, 3, 3, 3), strides=(27, 9, 3, 1), offset=0, words=DAMAGED, codes=(2,)):
    new = number(offset) + numbers(sizes) + numbers(strides)
    add(
        f"tensor_{name}",
        lambda path: replace_text(path, "data.pkl", WEIGHT, new),
        words,
        codes=codes,
    )


tensor("too_long", sizes=(700, 3, 3, 3))
tensor("huge", sizes=(1 << 40, 3, 3, 3))
tensor("overflowing", sizes=(1 << 62, 1 << 62, 1 << 62, 3))
tensor("negative_size", sizes=(-7, 3, 3, 3))
tensor("negative_stride", strides=(-27, 9, 3, 1), codes=REFUSED_OR_FINE)
tensor("huge_stride", strides=(1 << 60, 9, 3, 1))
tensor("offset_out_of_bounds", offset=1 << 40)
tensor("negative_offset", offset=-8)
tensor("fewer_strides", strides=(9, 3, 1))
tensor("overlapping", strides=(0, 0, 0, 0), words=[], codes=REFUSED_OR_FINE)


@file(DAMAGED)
def storage_of_unknown_type(path):
    replace_text(path, "data.pkl", b"ctorch\nFloatStorage\n", b"ctorch\nEvilStorage\n")


@file(DAMAGED)
def storage_of_wider_type(path):
    """The numbers are read as float64, of which there are too few bytes."""
    replace_text(path, "data.pkl", b"ctorch\nFloatStorage\n", b"ctorch\nDoubleStorage\n")


@file(DAMAGED)
def storage_without_record(path):
    replace_text(path, "data.pkl", text("0"), text("77"))


@file([], codes=FINE, command=("plan",), options=())
def saved_on_a_gpu(path):
    """Not wrong at all: this machine may have no GPU."""
    replace_text(path, "data.pkl", text("cpu"), text("cuda:0"))


@file(["self", "recurs", "TorchScript", "cycle", "damaged"])
def module_holds_itself(path):
    def edit(contents):
        contents[CODE] = (
            b"class Plain(Module):\n  __parameters__ = []\n  __buffers__ = []\n"
            b"  training : bool\n  child : __torch__.refused.files.Plain\n"
            b"  def forward(self: __torch__.refused.files.Plain,\n    x: Tensor) -> Tensor:\n"
            b"    return x\n"
        )
        contents["data.pkl"] = (
            HEAD + b"c__torch__.refused.files\nPlain\n)\x81q\x00}(" + text("training") + b"\x88"
            + text("child") + b"h\x00ub" + STOP
        )

    rewrite(path, edit)


@file(DAMAGED)
def attribute_of_wrong_type(path):
    """The code says that `training` is a bool; the pickle holds a text."""
    replace_text(path, "data.pkl", b"\x88", text("yes"))


def marker_was_written(folder):
    return (Path(folder) / MARKER).exists()
