"""Random ways to cut a test model, the same ones in every run."""

import random

GRIDS = {
    1: [(2,), (3,), (5,)],
    2: [(1, 3), (3, 1), (2, 2), (3, 2), (1, 2), (2, 1), (2, 3)],
    3: [(2, 1, 2), (1, 3, 1), (2, 2, 1), (1, 1, 3), (2, 2, 2)],
}
# More parts than the deep levels have pixels: some ranks own nothing there.
THIN_GRIDS = {1: [(11,), (8,)], 2: [(7, 1), (1, 6), (5, 2)], 3: [(5, 1, 1), (1, 1, 6)]}

MAX_RANKS = 10


def random_placements(case, how, count):
    """Arguments of the command line: the first is a plain grid, later ones mix the axes."""
    draw = random.Random(f"{case.name} {how}")
    plain = draw.sample(GRIDS[case.num_axes], count)
    placements = []
    for i, space in enumerate(plain):
        if i == count - 1 and draw.random() < 0.4:
            space = draw.choice(THIN_GRIDS[case.num_axes])
        placements.append(with_extras(case, space, draw, plain_grid=i == 0))
    return placements


def with_extras(case, space, draw, plain_grid):
    arguments = ["--space", "x".join(map(str, space))]
    ranks = 1
    for parts in space:
        ranks *= parts
    chance = 0.15 if plain_grid else 0.6
    if case.input_shape[0] % 2 == 0 and 2 * ranks <= MAX_RANKS and draw.random() < chance:
        arguments += ["--replicas", "2"]
    if ranks <= 4 and draw.random() < chance:
        arguments += ["--pieces", "2"]
    return arguments
