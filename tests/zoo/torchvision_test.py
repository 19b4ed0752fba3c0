"""Compares the zoo with torchvision: names and shapes of parameters, what models compute, and
what they start from.

Usage: torchvision_test.py PATH_OF_TESSERA
"""

import json
import struct
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

try:
    import numpy
    import torch
    import torchvision
except ImportError as error:
    sys.exit(
        f"torchvision_test: {error}; install python3-numpy, python3-torch and python3-torchvision "
        "(scripts/install_packages.sh), or configure with -DTESSERA_PYTHON=... for another Python"
    )

PROGRAM = ""
CLASSES = 10

# Our model, torchvision's, and the arguments that make them equal.
NAMES = [
    ("alexnet", "alexnet", {}),
    *((f"densenet{depth}", f"densenet{depth}", {}) for depth in (121, 161, 169, 201)),
    ("inception_v3", "inception_v3", {"init_weights": False}),
    ("inception_v3:aux=no", "inception_v3", {"init_weights": False, "aux_logits": False}),
    ("mobilenet_v2", "mobilenet_v2", {}),
    ("mobilenet_v2:width=0.35", "mobilenet_v2", {"width_mult": 0.35}),
    ("mobilenet_v2:width=1.4", "mobilenet_v2", {"width_mult": 1.4}),
    *((f"resnet{depth}", f"resnet{depth}", {}) for depth in (18, 34, 50, 101, 152)),
    *((f"vgg{depth}", f"vgg{depth}", {}) for depth in (11, 13, 16, 19)),
    *((f"vgg{depth}:norm=batch", f"vgg{depth}_bn", {}) for depth in (11, 13, 16, 19)),
]

# The same, with the image's height and width. Those of alexnet and vgg make the maps before the
# classifier larger than its 6x6 or 7x7 along one axis, and smaller along the other.
NUMBERS = [
    ("alexnet:classes=10", "alexnet", {}, (260, 135)),
    ("densenet121:classes=10", "densenet121", {}, (64, 47)),
    ("inception_v3:classes=10", "inception_v3", {"init_weights": False}, (299, 299)),
    ("inception_v3:classes=10,aux=no", "inception_v3", {"init_weights": False}, (110, 91)),
    ("mobilenet_v2:classes=10", "mobilenet_v2", {}, (65, 64)),
    ("resnet18:classes=10", "resnet18", {}, (65, 50)),
    ("resnet50:classes=10", "resnet50", {}, (49, 64)),
    ("vgg11:width=8,classes=10,norm=batch", "narrow_vgg11_bn", {}, (256, 47)),
]


# Our model, torchvision's and its arguments, the image's height and width, and the seeds.
STARTS = [
    ("alexnet", "alexnet", {}, (63, 63), [1]),
    ("densenet121", "densenet121", {}, (32, 32), [1, 2]),
    ("inception_v3:aux=no", "inception_v3", {"init_weights": True}, (75, 75), [1]),
    ("mobilenet_v2", "mobilenet_v2", {}, (32, 32), [1, 2, 3]),
    ("resnet18", "resnet18", {}, (32, 32), [1, 2]),
    ("resnet50", "resnet50", {}, (32, 32), [1]),
    ("vgg11:width=8,classes=10", "narrow_vgg11", {}, (32, 32), [1, 2, 3]),
    ("vgg11:width=8,classes=10,norm=batch", "narrow_vgg11", {"batch_norm": True}, (32, 32), [1]),
]


def run(*arguments):
    result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"tessera {' '.join(arguments)}: {result.returncode}\n{result.stderr}")
    return result.stdout


def narrow_vgg11_bn(num_classes):
    """An eighth of vgg11_bn: the whole needs gigabytes."""
    channels = [8, "M", 16, "M", 32, 32, "M", 64, 64, "M", 64, 64, "M"]
    features = torchvision.models.vgg.make_layers(channels, batch_norm=True)
    model = torchvision.models.VGG(features, num_classes=num_classes)
    for index, sizes in ((0, (64 * 7 * 7, 512)), (3, (512, 512)), (6, (512, num_classes))):
        model.classifier[index] = torch.nn.Linear(*sizes)
    return model


class NarrowLinear(torch.nn.Linear):
    """An eighth of the hidden layers of VGG."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs // 8, outputs // 8 if outputs == 4096 else outputs)


def narrow_vgg11(batch_norm=False):
    """An eighth of vgg11 with the initial values that torchvision gives it."""
    channels = [8, "M", 16, "M", 32, 32, "M", 64, 64, "M", 64, 64, "M"]
    features = torchvision.models.vgg.make_layers(channels, batch_norm=batch_norm)
    with mock.patch.object(torch.nn, "Linear", NarrowLinear):
        return torchvision.models.VGG(features, num_classes=CLASSES)


OWN = {"narrow_vgg11": narrow_vgg11, "narrow_vgg11_bn": narrow_vgg11_bn}


def build(name, **arguments):
    maker = OWN.get(name) or getattr(torchvision.models, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return maker(**arguments)


def without_initial_values():
    """Only the shapes matter, and drawing 140 million numbers takes seconds."""
    names = [name for name in dir(torch.nn.init) if name.endswith("_") and name[0] != "_"]
    keep = {name: lambda tensor, *_, **__: tensor for name in names}
    return mock.patch.multiple(torch.nn.init, **keep)


def is_counter(name):
    return name.endswith("num_batches_tracked")


def state_of(model):
    """Name to (shape, role), as `tessera models --parameters` shows them."""
    trainable = {name for name, _ in model.named_parameters()}
    return {
        name: (list(tensor.shape), "trainable" if name in trainable else "buffer")
        for name, tensor in model.state_dict().items()
        if not is_counter(name)
    }


class NamesAndShapes(unittest.TestCase):
    def test_are_torchvisions(self):
        for spec, name, arguments in NAMES:
            with self.subTest(spec):
                with without_initial_values():
                    expected = state_of(build(name, **arguments))
                shown = json.loads(run("models", spec, "--parameters", "--json"))
                ours = {p["name"]: (p["shape"], p["role"]) for p in shown["parameters"]}
                self.assertEqual(len(ours), len(shown["parameters"]))
                self.assertEqual(sorted(ours), sorted(expected))
                self.assertEqual(ours, expected)


def with_other_statistics(model):
    """Norms as after some training: those of a new model hide a wrong epsilon or a lost buffer."""
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, 0, 0.1)
    return model


def with_spread_logits(model, images):
    """Scales the last layer so that the classes differ, and none has probability 0."""
    last = [module for module in model.modules() if isinstance(module, torch.nn.Linear)][-1]
    with torch.no_grad():
        spread = float(model(images.float()).std())
        last.weight /= spread
        last.bias /= spread
    return model


def write_safetensors(path, state):
    tensors = sorted(state.items(), key=lambda item: (-item[1].element_size(), item[0]))
    types = {torch.float32: "F32", torch.int64: "I64"}
    header, position = {}, 0
    for name, tensor in tensors:
        end = position + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": types[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [position, end],
        }
        position = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in tensors:
            file.write(tensor.contiguous().numpy().tobytes())


class Numbers(unittest.TestCase):
    """A state dict of torchvision loads, and two workers give torchvision's probabilities."""

    def test_are_torchvisions(self):
        for spec, name, arguments, size in NUMBERS:
            with self.subTest(spec), tempfile.TemporaryDirectory() as folder:
                torch.manual_seed(1)
                images = torch.randn(2, 3, *size, dtype=torch.double)
                model = with_other_statistics(build(name, num_classes=CLASSES, **arguments).eval())
                model = with_spread_logits(model, images)
                ours = self.predict(Path(folder), spec, model, images)
                with torch.no_grad():
                    expected = model.double()(images).softmax(1).numpy()
                self.assertEqual(ours.shape, expected.shape)
                numpy.testing.assert_allclose(ours, expected, rtol=2e-6)

    @staticmethod
    def predict(folder, spec, model, images):
        write_safetensors(folder / "w.safetensors", model.state_dict())
        numpy.save(folder / "images.npy", images.numpy())
        numpy.save(folder / "labels.npy", numpy.zeros(len(images), dtype=numpy.int64))
        run(
            *("predict", spec),
            *("--input", "x".join(str(size) for size in images.shape)),
            *("--space", "2x1", "--dtype", "float64"),
            *("--weights", str(folder / "w.safetensors")),
            *("--images", f"npy:{folder}/images.npy,{folder}/labels.npy"),
            *("--output", str(folder / "classes.npy")),
            *("--probabilities", str(folder / "probabilities.npy")),
        )
        return numpy.load(folder / "probabilities.npy")


def read_safetensors(path):
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = numpy.frombuffer(data[begin:end], dtype="<f4")
    return tensors


def initial_values(folder, spec, size, seed):
    """The weights after one step of length 0."""
    weights = folder / f"{seed}.safetensors"
    run(
        *("train", spec, "--input", f"2x3x{size[0]}x{size[1]}"),
        *("--data", "synthetic:kind=classification,samples=2", "--validation-fraction", "0"),
        *("--steps", "1", "--learning-rate", "0", "--seed", str(seed)),
        *("--run", str(folder / f"run{seed}"), "--save-weights", str(weights)),
    )
    return read_safetensors(weights)


def moments(values):
    """Mean, deviation and kurtosis.

    Of float32 numbers, trunc_normal_ makes twenty deviations where it should make five, about once
    in ten million draws; these do not count in the kurtosis.
    """
    values = values.astype(numpy.float64)
    deviation = values.std()
    centred = (values - values.mean()) / (deviation or 1)
    return values.mean(), deviation, (centred[numpy.abs(centred) < 8] ** 4).mean()


class InitialValues(unittest.TestCase):
    """The distribution of each parameter is torchvision's: mean, deviation, kurtosis, bounds.

    Two samples of one distribution differ, too: the limits are five deviations of what is compared.
    """

    def test_are_torchvisions(self):
        for spec, name, arguments, size, seeds in STARTS:
            for seed in seeds:
                with self.subTest(spec, seed=seed), tempfile.TemporaryDirectory() as folder:
                    torch.manual_seed(seed)
                    theirs = dict(build(name, **arguments).named_parameters())
                    ours = initial_values(Path(folder), spec, size, seed)
                    num_compared = 0
                    for parameter, tensor in theirs.items():
                        if parameter.startswith("AuxLogits."):
                            continue
                        self.compare(parameter, ours[parameter], tensor.detach().numpy().ravel())
                        num_compared += 1
                    self.assertGreater(num_compared, 10)

    def compare(self, parameter, ours, theirs):
        self.assertEqual(ours.size, theirs.size, parameter)
        if theirs.min() == theirs.max():  # a constant: of a norm, or a bias of 0
            self.assertEqual(ours.min(), theirs.min(), parameter)
            self.assertEqual(ours.max(), theirs.max(), parameter)
            return
        count = theirs.size
        (mean, deviation, kurtosis), expected = moments(ours), moments(theirs)
        self.assertGreater(deviation, 0, parameter)
        if count < 500:
            return
        self.assertLess(abs(mean - expected[0]), 5 * expected[1] * (2 / count) ** 0.5, parameter)
        self.assertLess(abs(deviation / expected[1] - 1), 5 * (1 / count) ** 0.5, parameter)
        # That of a normal distribution is 3, of a uniform one 1.8.
        if count > 4000:
            self.assertLess(abs(kurtosis - expected[2]), 5 * (48 / count) ** 0.5, parameter)
        if count > 4000 and expected[2] < 2:  # uniform: it ends where theirs does
            bound = numpy.abs(theirs).max()
            self.assertLess(abs(numpy.abs(ours).max() / bound - 1), 40 / count, parameter)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = sys.argv.pop(1)
    unittest.main()
