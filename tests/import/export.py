"""A test model as a user would hand it over: built from a seed, scripted or traced, saved."""

import warnings
import zlib

import torch

EXPORTS = ("script", "trace")
FIRST_BATCHES_TRACKED = 4  # not zero, so that a file's own count must be read


def build(case):
    """The model in float64; every number in it is random, so that no two can be mistaken."""
    torch.manual_seed(zlib.crc32(case.name.encode()))
    model = case.build()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 1.5)
            elif name.endswith("num_batches_tracked"):
                tensor.fill_(FIRST_BATCHES_TRACKED)
            elif not tensor.is_floating_point():  # indices
                continue
            elif name.endswith("running_mean") or tensor.dim() <= 1:
                tensor.add_(0.1 * torch.randn_like(tensor))
    if not case.train:
        model.eval()
    return model.double()


def copied(case, model):
    """A second one; deepcopy refuses modules that keep a computed weight, such as weight_norm's."""
    torch.manual_seed(zlib.crc32(case.name.encode()))
    copy = case.build().double()
    for theirs, own in zip(model.modules(), copy.modules()):
        own.training = theirs.training
    copy.load_state_dict(model.state_dict())
    return copy


def random_input(case):
    generator = torch.Generator().manual_seed(zlib.crc32(case.name.encode()) + 1)
    return torch.randn(case.input_shape, generator=generator, dtype=torch.float64)


def export(model, example, how):
    """A TorchScript module with the model's weights."""
    if how == "script":
        return torch.jit.script(model)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that sizes become constants is what is tested
        traced = torch.jit.trace(model, example, check_trace=False, strict=False)
    model.load_state_dict(before)  # tracing ran a step of the running statistics
    return traced


def save(case, model, how, path):
    example = random_input(case)
    model = copied(case, model)
    if case.float32:
        model, example = model.float(), example.float()
    export(model, example, how).save(str(path))
