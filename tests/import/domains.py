"""Domain separation networks out of scripted modules: verified on several placements, compared with
the whole loss under PyTorch's autograd, trained, resumed and applied; and what is refused.

    python3 domains.py build/tessera [--keep DIR]
"""

import argparse
import copy
import json
import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import domain_modules
import outside

TOLERANCE = 1e-10
BATCH, TARGET_BATCHES = 4, (3, 5)
IMAGE = (2, 16, 12)
GAMMA, ALPHA, BETA = 0.3, 0.4, 0.2
KINDS = {"features": domain_modules.features, "maps": domain_modules.maps}
failures = []


def check(passed, what, details=""):
    print(f"{'ok  ' if passed else 'FAIL'} {what}", flush=True)
    if not passed:
        failures.append(what)
        print(details)


def save_modules(modules, folder):
    """Scripts them; gives the options that name the files."""
    options = []
    for name, module in modules.items():
        path = folder / f"{name}.pt"
        torch.jit.script(module).save(str(path))
        options += [f"--{name}", path]
    return options


def model_of(targets, batches=TARGET_BATCHES):
    batches = "/".join(map(str, batches[:targets]))
    return f"dsn:targets={targets},target_batch={batches},gamma={GAMMA},alpha={ALPHA},beta={BETA}"


def input_options(batch=BATCH):
    return ["--input", "x".join(map(str, (batch, *IMAGE)))]


def verifies(program, kind, options):
    for targets in (1, 2):
        for placement in ([], ["--domains", 1], ["--domains", 2], ["--domains", 2, "--stages", 2]):
            if kind == "maps" and placement:
                placement = [*placement, "--space", "1x2"]
            command = [program, "verify", model_of(targets), *options, *input_options()]
            outcome = outside.run([*command, *placement, "--json"], 300)
            passed = outcome.code == 0 and json.loads(outcome.out)["ok"]
            check(passed, f"verify {kind}, {targets} targets, {placement}", outcome.describe())


def reversed_gradient(x):
    return 2 * x.detach() - x


def unit_rows(code):
    """A row for each sample or pixel, centred, of length 1."""
    rows = code.flatten(2).transpose(1, 2).reshape(-1, code.size(1)) if code.dim() > 2 else code
    return F.normalize(rows - rows.mean(dim=0), dim=1, eps=1e-6)


def whole_loss(modules, classifier, images, labels):
    """Of the source and all targets, with one classifier of domains."""
    total, rows = 0.0, sum(len(x) for x in images)
    for domain, x in enumerate(images):
        shared, own = modules["encoder"](x), modules[f"private{domain}"](x)
        if domain == 0:
            total = total + F.cross_entropy(modules["head"](shared), labels)
        features = shared.flatten(2).mean(dim=2) if shared.dim() > 2 else shared
        scores = classifier(reversed_gradient(features))
        origin = torch.full((len(x),), domain)
        total = total + GAMMA * F.cross_entropy(scores, origin, reduction="sum") / rows
        a, b = unit_rows(shared), unit_rows(own)
        total = total + BETA * ((a.T @ b) ** 2).sum() / len(a) ** 2
        wrong = (modules["decoder"](shared + own) - x).flatten(1)
        total = total + ALPHA * ((wrong**2).mean(dim=1) - wrong.mean(dim=1) ** 2).mean()
    return total


def train_one_step(program, model, options, data, folder):
    """With a learning rate of 0: its loss, gradients, and the state after it."""
    command = [program, "train", model, *options, *input_options(), "--data", data, "--steps", 1]
    command += ["--learning-rate", 0, "--momentum", 0, "--dtype", "float64", "--print-loss"]
    command += ["--validation-fraction", 0, "--dump-gradients", folder / "g.safetensors"]
    command += ["--save-weights", folder / "w.safetensors"]
    command += ["--run", folder / "one_step", "--resume", "no"]
    return outside.run(command, 300)


def trained_state(modules, classifier):
    module_names = {"encoder": "shared"}
    found = {}
    for name, module in modules.items():
        for key, tensor in module.state_dict(keep_vars=True).items():
            if not key.endswith("num_batches_tracked"):
                found[f"{module_names.get(name, name)}.{key}"] = tensor
    for layer, name in ((0, "fc1"), (2, "fc2")):
        for key, tensor in classifier[layer].state_dict(keep_vars=True).items():
            found[f"domain.{name}.{key}"] = tensor
    return found


def equals_pytorch(program, kind, modules, options, folder):
    """Loss, gradients and running statistics of a step with two targets."""
    images = [torch.randn(n, *IMAGE).double() for n in (BATCH, *TARGET_BATCHES)]
    shape = (BATCH,) if kind == "features" else (BATCH, *IMAGE[1:])
    labels = torch.randint(domain_modules.CLASSES, shape)
    specs = []
    for domain, x in enumerate(images):
        outside.write_npy(folder / f"x{domain}.npy", x)
        files = f"files:{folder}/x{domain}.npy"
        specs.append(f"target{domain}={files}" if domain else f"source={files},{folder}/y.npy")
    outside.write_npy(folder / "y.npy", labels)
    outcome = train_one_step(program, model_of(2), options, ";".join(specs), folder)
    check(outcome.code == 0, f"{kind}: a step of training", outcome.describe())
    if outcome.code != 0:
        return
    weights = outside.read_safetensors(folder / "w.safetensors")
    classifier = nn.Sequential(nn.Linear(domain_modules.CODE, 100), nn.ReLU(), nn.Linear(100, 3))
    classifier = classifier.double()
    with torch.no_grad():
        for layer, name in ((0, "fc1"), (2, "fc2")):
            for key, tensor in classifier[layer].state_dict().items():
                tensor.copy_(weights[f"domain.{name}.{key}"])
    parts = {name: modules[name] for name in ("encoder", "decoder", "head")}
    for domain in range(3):
        parts[f"private{domain}"] = copy.deepcopy(modules["private"])
    loss = whole_loss(parts, classifier, images, labels)
    loss.backward()
    printed = float(outcome.out.split()[3])  # step 1 loss ...
    check(abs(printed - loss.item()) < TOLERANCE, f"{kind}: loss", f"{printed} {loss.item()}")
    state = trained_state(parts, classifier)
    gradients = {k: v.grad for k, v in state.items() if v.requires_grad}
    for what, actual, expected in (
        ("gradients", outside.read_safetensors(folder / "g.safetensors"), gradients),
        ("state", weights, state),
    ):
        worst, whose = outside.difference(actual, expected)
        check(worst < TOLERANCE, f"{kind}: {what} {worst:.1e}", whose)
        extra = set(actual) - set(expected)
        check(not extra, f"{kind}: no other {what}", extra)


def trains_and_applies(program, kind, options, folder):
    """Runs that are entered again, and are applied by their folder alone."""
    made_up = "synthetic:classes=3,samples=16"
    made_up += ",kind=classification" if kind == "features" else ""
    model = "dsn:targets=1,similarity=mmd"
    run = folder / "run"
    train = [program, "train", model, *options, *input_options(), "--domains", 2, "--json"]
    train += ["--data", f"source={made_up};target1={made_up},domain=1", "--run", run]
    for steps in (2, 4):
        outcome = outside.run([*train, "--steps", steps], 300)
        check(outcome.code == 0, f"{kind}: trained to step {steps}", outcome.describe())
    outcome = outside.run([program, "evaluate", run, "--data", made_up, "--json"], 300)
    scored = outcome.code == 0 and json.loads(outcome.out)["samples"] == 16
    check(scored, f"{kind}: evaluate RUN", outcome.describe())
    predict = [program, "predict", run, "--images", made_up, "--output", f"{folder}/classes.npy"]
    outcome = outside.run(predict, 300)
    check(outcome.code == 0, f"{kind}: predict RUN", outcome.describe())
    for command in (["plan"], ["bench", "--iterations", 1]):
        outcome = outside.run([program, *command, model, *options, *input_options()], 300)
        check(outcome.code == 0, f"{kind}: {command[0]}", outcome.describe())
    fresh = [program, "evaluate", model, *options, *input_options(), "--data", made_up]
    outcome = outside.run(fresh, 300)  # the files have weights
    check(outcome.code == 0, f"{kind}: evaluate modules", outcome.describe())


def refuses(program, folder):
    good = domain_modules.features()
    options = dict(zip(*[iter(save_modules(good, folder))] * 2))
    strange = {
        "wide": nn.Sequential(nn.Flatten(), nn.Linear(384, 7)),
        "small": nn.Sequential(nn.Linear(5, 2 * 8 * 6), nn.Unflatten(1, (2, 8, 6))),
        "one": domain_modules.MeanOverBatch(),
        "two": domain_modules.TwoInputs(),
    }
    for name, module in strange.items():
        torch.jit.script(module).save(str(folder / f"{name}.pt"))

    def expect(part, model="dsn:targets=1", more=(), **changed):
        given = dict(options)
        for name, file in changed.items():
            given[f"--{name}"] = folder / f"{file}.pt" if file else None
        named = [word for name, file in given.items() if file for word in (name, file)]
        command = [program, "plan", model, *named, *(more or input_options())]
        outcome = outside.run(command, 60)
        check(outcome.code == 2 and part in outcome.err, f"refused: {part}", outcome.describe())

    expect("--private and --head are missing; give all four", private=None, head=None)
    expect("the private code is 4x7, the shared one is 4x5; make both of one shape", private="wide")
    expect("what the decoder makes is 4x2x8x6, the image is 4x2x16x12", decoder="small")
    expect("forward() takes 2 inputs", encoder="two")
    expect("reduces the batch", head="one")
    expect("dann:targets=1 does not take --encoder", model="dann:targets=1")
    expect("has no option 'base'", model="dsn:base=4")
    expect("give batch x channels x spatial sizes", more=["--batch", 4])
    expect("gone.pt", decoder="gone")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--keep", help="leave the files in this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(arguments.keep or temporary)
        for kind, build in KINDS.items():
            torch.manual_seed(len(kind))
            folder = root / kind
            folder.mkdir(parents=True, exist_ok=True)
            modules = {name: module.double() for name, module in build().items()}
            options = save_modules(modules, folder)
            equals_pytorch(arguments.program, kind, modules, options, folder)
            verifies(arguments.program, kind, options)
            trains_and_applies(arguments.program, kind, options, folder)
        (root / "refused").mkdir(exist_ok=True)
        refuses(arguments.program, root / "refused")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
