"""Opens in PyTorch what `--save-weights net.pt` writes of models of the zoo: it has torchvision's
weights and numbers, and PyTorch goes on with the training where Tessera stopped.

Usage: script_file_test.py PATH_OF_TESSERA
"""

import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

try:
    import numpy
    import torch
    import torchvision
except ImportError as error:
    sys.exit(
        f"script_file_test: {error}; install python3-numpy, python3-torch and python3-torchvision "
        "(scripts/install_packages.sh), or configure with -DTESSERA_PYTHON=... for another Python"
    )

PROGRAM = ""
LEARNING_RATE = 0.05

# Our model, torchvision's, the arguments that make them equal, the shape that the file is written
# for and another one. Without dropout, so that they can be compared in training mode, too.
TORCHVISIONS = [
    ("densenet121:classes=10", "densenet121", {}, (2, 3, 64, 47), (3, 3, 70, 70)),
    (
        "inception_v3:classes=10,dropout=0,aux=no",
        "inception_v3",
        {"init_weights": False, "aux_logits": False, "dropout": 0},
        (2, 3, 110, 107),
        (3, 3, 107, 120),
    ),
    (
        "mobilenet_v2:classes=10,dropout=0",
        "mobilenet_v2",
        {"dropout": 0},
        (2, 3, 65, 64),
        (3, 3, 80, 50),
    ),
    ("resnet18:classes=10", "resnet18", {}, (2, 3, 65, 50), (3, 3, 40, 70)),
]

# Models, the input's shape, and another image that they are applied to.
TRAINED = [
    ("attention_unet2d:base=4,depth=3,classes=3", (2, 3, 16, 24), (1, 3, 19, 14)),
    ("cnn1d:base=4,depth=3,classes=3", (4, 1, 40), (2, 1, 52)),
    ("fcn2d:width=0.05,classes=3,dropout=0", (2, 3, 64, 48), (1, 3, 70, 49)),
    ("resnet18:width=8,classes=3", (4, 3, 48, 40), (2, 3, 64, 33)),
    ("resnet_chain2d:width=4,blocks=5,time=3", (2, 3, 9, 8), (1, 3, 13, 10)),
    ("resunet2d:base=4,depth=3,classes=3,norm=instance", (2, 3, 16, 24), (1, 3, 19, 14)),
    ("unet2d:base=4,depth=3,classes=3", (2, 3, 18, 24), (1, 3, 24, 17)),
    ("unet3d:base=2,depth=3,classes=3,norm=group,groups=2", (1, 2, 8, 9, 8), (1, 2, 12, 7, 8)),
]


def run(*arguments):
    result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"tessera {' '.join(arguments)}: {result.returncode}\n{result.stderr}")


def by_x(shape):
    return "x".join(str(size) for size in shape)


def open_file(path):
    return torch.jit.load(str(path))


class Torchvision(unittest.TestCase):
    """Names, weights and numbers are those of the module that torchvision has."""

    def test_computes_the_same(self):
        for spec, name, arguments, written, other in TORCHVISIONS:
            with self.subTest(spec), tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "net.pt"
                run(
                    *("verify", spec, "--input", by_x(written), "--steps", "1"),
                    *("--workers", "1", "--save-weights", str(path)),
                )
                module = open_file(path)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    theirs = getattr(torchvision.models, name)(num_classes=10, **arguments)
                theirs = theirs.double()
                theirs.load_state_dict(module.state_dict())
                for shape in (written, other):
                    self.compare(module.eval(), theirs.eval(), shape)
                    self.compare(module.train(), theirs.train(), shape)
                self.assertEqual(
                    {name for name, _ in module.named_parameters()},
                    {name for name, _ in theirs.named_parameters()},
                )

    def compare(self, module, theirs, shape):
        torch.manual_seed(1)
        images = torch.randn(*shape, dtype=torch.double)
        ours, wanted = module(images), theirs(images)
        self.assertLess(float((ours - wanted).abs().max()), 1e-10 * max(1, float(wanted.abs().max())))
        state = theirs.state_dict()
        for name, tensor in module.state_dict().items():
            self.assertTrue(torch.allclose(tensor, state[name], rtol=1e-10, atol=1e-10), name)


def write_data(folder, name, spec, shape):
    """Images and labels, of pixels or of images, that make one batch."""
    generator = numpy.random.default_rng(len(name))
    is_classifier = spec.startswith(("cnn", "resnet"))
    images, labels = folder / f"{name}_images.npy", folder / f"{name}_labels.npy"
    numpy.save(images, generator.standard_normal(shape))
    numpy.save(labels, generator.integers(0, 3, shape[:1] + (() if is_classifier else shape[2:])))
    return images, labels


def train(folder, spec, shape, data, steps):
    """Plain gradient descent on one batch; the file that it ends with."""
    path = folder / f"after{steps}.pt"
    run(
        *("train", spec, "--input", by_x(shape), "--dtype", "float64", "--steps", str(steps)),
        *("--data", f"npy:{data[0]},{data[1]}", "--validation-fraction", "0"),
        *("--learning-rate", str(LEARNING_RATE), "--momentum", "0", "--workers", "2"),
        *("--run", str(folder / f"run{steps}"), "--save-weights", str(path)),
    )
    return path


class FineTuning(unittest.TestCase):
    """A step of Tessera and one of PyTorch are two of Tessera."""

    def test_goes_on_where_tessera_stopped(self):
        for spec, shape, other in TRAINED:
            with self.subTest(spec), tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                data = write_data(folder, "training", spec, shape)
                module = open_file(train(folder, spec, shape, data, 1))
                self.assertTrue(module.training)
                self.step(module, data)
                expected = open_file(train(folder, spec, shape, data, 2)).state_dict()
                state = module.state_dict()
                self.assertEqual(list(state), list(expected))
                for parameter, tensor in expected.items():
                    self.assertEqual(tensor.dtype, torch.double)
                    difference = float((state[parameter] - tensor).abs().max())
                    self.assertLess(difference, 1e-10, parameter)
                self.predicts_alike(folder, module, write_data(folder, "other", spec, other))

    @staticmethod
    def step(module, data):
        images, labels = (torch.from_numpy(numpy.load(path)) for path in data)
        optimiser = torch.optim.SGD(module.parameters(), lr=LEARNING_RATE)
        torch.nn.functional.cross_entropy(module(images), labels).backward()
        optimiser.step()

    @staticmethod
    def predicts_alike(folder, module, data):
        """What PyTorch has saved is a model for Tessera."""
        torch.jit.save(module, str(folder / "tuned.pt"))
        images = numpy.load(data[0])
        run(
            *("predict", str(folder / "tuned.pt"), "--input", by_x(images.shape)),
            *("--images", f"npy:{data[0]},{data[1]}", "--dtype", "float64", "--workers", "2"),
            *("--raw", str(folder / "raw.npy")),
        )
        with torch.no_grad():
            expected = module.eval()(torch.from_numpy(images)).numpy()
        ours = numpy.load(folder / "raw.npy")
        numpy.testing.assert_allclose(ours, expected, rtol=1e-6, atol=1e-6)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = sys.argv.pop(1)
    unittest.main()
