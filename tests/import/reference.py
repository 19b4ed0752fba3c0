"""What PyTorch makes of a test model: losses, first gradients, and the state after some steps."""

from dataclasses import dataclass
from typing import Dict, List

import torch

import export
import loss as loss_functions

STEPS = 3
LEARNING_RATE = 0.05
MOMENTUM = 0.9


@dataclass
class Reference:
    input: torch.Tensor
    targets: List[torch.Tensor]
    losses: List[float]
    gradients: Dict[str, torch.Tensor]  # of step 1; a parameter that nothing uses has none
    state: Dict[str, torch.Tensor]  # parameters and buffers at the end


def random_targets(case, model, x):
    with torch.no_grad():
        outputs = loss_functions.as_outputs(export.copied(case, model)(x))
    generator = torch.Generator().manual_seed(len(case.name))
    wanted = outputs if case.target_per_output else outputs[:1]
    return [loss_functions.random_target(output, case.loss, generator) for output in wanted]


def train(case, model):
    """Trains `model` itself, in float64, on the same batch at every step."""
    x = export.random_input(case)
    targets = random_targets(case, model, x)
    optimiser = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    losses, gradients = [], {}
    for step in range(STEPS):
        optimiser.zero_grad()
        outputs = loss_functions.as_outputs(model(x))
        loss = loss_functions.total_loss(outputs, targets, case.loss, case.output_weights)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            gradients = {
                name: parameter.grad.clone()
                for name, parameter in model.named_parameters()
                if parameter.grad is not None
            }
        optimiser.step()
    state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    return Reference(x, targets, losses, gradients, state)
