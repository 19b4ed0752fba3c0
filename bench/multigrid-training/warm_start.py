#!/usr/bin/env python3
"""What a guess is worth: V-cycles that begin with states of earlier steps, beside those of Tessera.

    python3 bench/multigrid-training/warm_start.py --folder FOLDER [--epochs 5] [--images 6000]

Trains the network of run.py (32 residual blocks of 8 channels with batch norm, digits as 14x14 pixels,
AdamW) layer after layer, in PyTorch. On the way it solves each step's chain by multigrid as well (2
levels, coarsening 4, F) from different guesses for the states between the intervals, and prints how
far the states are (L2, relative, median of an epoch's steps) after 0, 1 and 2 V-cycles:

    before the chain   the state before the chain, everywhere: what Tessera does
    coarse walk        ... and one walk over the coarse level: skip=yes
    last step          the states of the step before, which had another batch
    an epoch ago       the states that the same images had when they were last seen
    one update ago     the states of the very same batch before the last update: a run that takes each
                       batch twice, or has one batch
"""

import argparse
import statistics
from pathlib import Path

import numpy
import torch
from torch import nn
from torch.nn import functional

from run import fetch_digits

BLOCKS, COARSENING, WIDTH, TIME, BATCH = 32, 4, 8, 4.0, 50
STEP = TIME / BLOCKS
INTERVALS = BLOCKS // COARSENING


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.open = nn.Conv2d(1, WIDTH, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(WIDTH, WIDTH, 3, padding=1, bias=False)
                                   for _ in range(BLOCKS))
        self.norms = nn.ModuleList(nn.BatchNorm2d(WIDTH) for _ in range(BLOCKS))
        self.head = nn.Linear(WIDTH, 10)

    def step(self, state, block, size=STEP):
        """Batch norm by the batch alone: sweeps update no statistics."""
        norm = self.norms[block]
        change = functional.batch_norm(self.convs[block](state), None, None, norm.weight, norm.bias,
                                       training=True)
        return state + size * functional.relu(change)

    def interval(self, state, index):
        for block in range(index * COARSENING, (index + 1) * COARSENING):
            state = self.step(state, block)
        return state

    def coarse_step(self, state, index):
        return self.step(state, index * COARSENING, COARSENING * STEP)

    def scores(self, states):
        return self.head(states[-1].mean((2, 3)))

    def states(self, images):
        """Before each interval, and after the last."""
        found = [functional.relu(self.open(images))]
        for index in range(INTERVALS):
            found.append(self.interval(found[-1], index))
        return found


def coarse_walk(chain, first):
    states = [first]
    for index in range(INTERVALS - 1):
        states.append(chain.coarse_step(states[-1], index))
    return states


def v_cycle(chain, states):
    """F, and a walk over the coarse level: arrived + (step from the new state - step from the old)."""
    found = [states[0]]
    for index, old in enumerate(states[:-1]):
        found.append(chain.interval(old, index)
                     + (chain.coarse_step(found[-1], index) - chain.coarse_step(old, index)))
    return found


def distance(states, right):
    difference = sum((a - b).square().sum() for a, b in zip(states[1:], right[1:]))
    return (difference / sum(b.square().sum() for b in right[1:])).sqrt().item()


def distances(chain, guess, right):
    found = [distance(guess, right)]
    for _ in range(2):
        guess = v_cycle(chain, guess)
        found.append(distance(guess, right))
    return found


def guesses(chain, right, last, epoch_ago):
    first = right[0]
    yield "before the chain", [first] * INTERVALS
    yield "coarse walk", coarse_walk(chain, first)
    if last is not None:
        yield "last step", [first, *last[1:INTERVALS]]
    if epoch_ago is not None:
        yield "an epoch ago", [first, *epoch_ago]


def train(options, images, labels):
    """Per epoch, per guess: the distances of each step."""
    torch.manual_seed(1)
    chain = Chain()
    optimiser = torch.optim.AdamW(chain.parameters(), lr=0.01)
    steps = options.epochs * (len(images) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    kept = torch.zeros(INTERVALS - 1, len(images), WIDTH, 14, 14)
    last = None
    for epoch in range(options.epochs):
        found = {}
        for batch in torch.randperm(len(images))[:len(images) // BATCH * BATCH].split(BATCH):
            states = chain.states(images[batch])
            with torch.no_grad():
                right = [state.detach() for state in states[:INTERVALS]]
                ago = list(kept[:, batch]) if epoch > 0 else None
                for name, guess in guesses(chain, right, last, ago):
                    found.setdefault(name, []).append(distances(chain, guess, right))
                last = right
                kept[:, batch] = torch.stack(right[1:])
            loss = functional.cross_entropy(chain.scores(states), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            with torch.no_grad():
                updated = chain.states(images[batch])[:INTERVALS]
                guess = [updated[0], *right[1:]]
                found.setdefault("one update ago", []).append(distances(chain, guess, updated))
        yield epoch + 1, loss.item(), found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--images", type=int, default=6000)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (options.folder / "images.npy").exists():
        fetch_digits(options.folder, options.images)
    images = torch.from_numpy(numpy.load(options.folder / "images.npy"))[:, None]
    labels = torch.from_numpy(numpy.load(options.folder / "labels.npy").astype("int64"))
    print("| epoch | guess | as it is | after 1 V-cycle | after 2 |")
    print("|---:|---|---:|---:|---:|")
    for epoch, _, found in train(options, images, labels):
        for name, rows in found.items():
            medians = [f"{statistics.median(row[i] for row in rows):.1e}" for i in range(3)]
            print(f"| {epoch} | {name} | {' | '.join(medians)} |", flush=True)


if __name__ == "__main__":
    main()
