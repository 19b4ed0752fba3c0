"""PyTorch's side of `--loss SPEC`: a weighted sum of terms over one or several outputs.

A target is labels (integers, without the channel axis) or real numbers of the output's shape.
"""

import torch
import torch.nn.functional as F


def as_outputs(result):
    """The outputs in the order in which Tessera counts them."""
    if isinstance(result, torch.Tensor):
        return [result]
    return list(result.values()) if isinstance(result, dict) else list(result)


def as_real(target):
    """Labels of a single channel, 0 or 1, as numbers."""
    return target if target.is_floating_point() else target[:, None].double()


def bce(logits, target):
    return F.binary_cross_entropy_with_logits(logits, as_real(target).reshape(logits.shape))


def dice(logits, target):
    """MONAI's DiceLoss with sigmoid=True: one value a sample and class, then their mean."""
    p, target = torch.sigmoid(logits), as_real(target)
    axes = tuple(range(2, logits.dim()))
    numerator = 2 * (p * target).sum(axes) + 1e-5
    denominator = p.sum(axes) + target.sum(axes) + 1e-5
    return (1 - numerator / denominator).mean()


TERMS = {
    "cross_entropy": F.cross_entropy,
    "bce": bce,
    "bce:target=real": bce,
    "dice:activation=sigmoid": dice,
    "dice:activation=sigmoid,target=real": dice,
    "mse": F.mse_loss,
    "l1": F.l1_loss,
    "smooth_l1": F.smooth_l1_loss,
}


def parse(spec):
    """'0.5*bce+0.5*mse' -> [(0.5, 'bce'), (0.5, 'mse')]"""
    terms = []
    for term in spec.split("+"):
        weight, _, name = term.rpartition("*")
        assert name in TERMS, f"unknown loss {name}"
        terms.append((float(weight or 1), name))
    return terms


def random_target(output, spec, generator):
    labels_shape = (output.shape[0], *output.shape[2:])
    channels = output.shape[1] if output.dim() > 1 else 1
    if "cross_entropy" in spec:
        return torch.randint(0, channels, labels_shape, generator=generator)
    if "bce" in spec or "dice" in spec:
        if "target=real" not in spec:
            assert channels == 1, "labels of several channels are one-hot: give target=real"
            return torch.randint(0, 2, labels_shape, generator=generator)
        return torch.rand(output.shape, generator=generator).gt(0.6).double()
    return torch.randn(output.shape, generator=generator, dtype=torch.float64)


def resized(target, output):
    """One target for all outputs: labels are resized by the nearest, as masks are."""
    space = output.shape[2:]
    is_labels = not target.is_floating_point()
    if target.shape[1 if is_labels else 2 :] == space:
        return target
    if is_labels:
        return F.interpolate(target[:, None].double(), size=space, mode="nearest")[:, 0].long()
    return F.interpolate(target, size=space, mode="nearest")


def total_loss(outputs, targets, spec, output_weights=None):
    """`targets` holds one for all outputs, or one for each."""
    weights = output_weights or [1.0] * len(outputs)
    loss = 0
    for i, (output, output_weight) in enumerate(zip(outputs, weights)):
        target = targets[i] if len(targets) > 1 else resized(targets[0], output)
        for weight, name in parse(spec):
            loss = loss + output_weight * weight * TERMS[name](output, target)
    return loss
