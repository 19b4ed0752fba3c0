"""The networks and placements of the three tables."""

from dataclasses import dataclass, replace


NORMS = ("none", "batch")


@dataclass(frozen=True)
class Case:
    table: str
    way: str  # of using the workers
    norm: str
    size: str
    layers: int
    space: tuple = ()
    slices: int = 1
    multigrid: str = ""  # empty: layer after layer
    width: int = 32

    @property
    def network(self):
        axes = self.size.count("x") - 1
        return f"resnet_chain{axes}d:blocks={self.layers},width={self.width},norm={self.norm}"

    @property
    def workers(self):
        workers = self.slices
        for parts in self.space:
            workers *= parts
        return workers

    def placement(self):
        words = ["--space", "x".join(map(str, self.space))] if max(self.space, default=1) > 1 else []
        if self.multigrid:
            words += ["--layers", self.slices, "--multigrid", self.multigrid]
        return words


def grid_of(image, parts):
    """Halves of the longest axis until there are so many parts; the image's part, and the grid."""
    part, grid = list(image), [1] * len(image)
    while parts > 1:
        axis = part.index(max(part))
        part[axis] //= 2
        grid[axis] *= 2
        parts //= 2
    return tuple(part), tuple(grid)


def doubled(image, times):
    """An image of so many times the pixels: the shortest axis is doubled again and again."""
    image = list(image)
    while times > 1:
        image[image.index(min(image))] *= 2
        times //= 2
    return tuple(image)


def cycles(levels, coarsening, relax, forward, backward, skip="no"):
    return (f"levels={levels},coarsening={coarsening},forward={forward},backward={backward},"
            f"relax={relax},skip={skip}")


def usual_cycles(layers, slices):
    """2 V-cycles forward, 1 backward; an interval a slice, and a third level where the walk over
    the intervals would be longer than a slice."""
    coarsening = max(2, layers // slices)
    return cycles(3 if slices > 2 * coarsening else 2, coarsening, "F", 2, 1)


def layers_cases(workers, small):
    """(a) One chain on slices of layers; against one worker that walks it."""
    layers = 32 if small else 256
    base = Case("layers", "one worker", "none", "2x3x16x16" if small else "8x3x64x64", layers)
    slice_ = layers // workers
    settings = {workers: [(2, slice_, "F", 1, 1, "yes"), (2, slice_, "F", 1, 1),
                          (2, slice_, "F", 2, 1), (2, slice_, "F", 2, 2, "yes"),
                          (2, slice_, "FCF", 1, 1), (2, slice_, "FCF", 2, 1),
                          (3, 4, "F", 1, 1), (3, 4, "F", 2, 1), (3, 4, "FCF", 2, 1),
                          (2, slice_, "F", 2, 2), (2, slice_, "F", 3, 3), (2, 8, "F", 2, 1)]}
    for fewer in (8, 4, 2):
        if fewer < workers:
            settings[fewer] = [(2, layers // fewer, "F", 1, 1, "yes"), (2, slice_, "F", 1, 1),
                               (2, slice_, "F", 2, 1)]
    yield base
    for slices, choices in settings.items():
        for choice in dict.fromkeys(choices):
            yield replace(base, way="layers", slices=slices, multigrid=cycles(*choice))
    yield base


def ways_of(base, image, workers, time_slices):
    """Space only, layers only, both: `time_slices` of them, and space for the rest."""
    if workers == 1:
        return [replace(base, way="one worker")]
    ways = [("space", 1), ("layers", workers)]
    if 1 < time_slices < workers:
        ways.append(("space x layers", time_slices))
    cases = []
    for way, slices in ways:
        if base.layers // slices < 2:
            continue
        grid = grid_of(image, workers // slices)[1]
        multigrid = usual_cycles(base.layers, slices) if slices > 1 else ""
        cases.append(replace(base, way=way, space=grid, slices=slices, multigrid=multigrid))
    return cases


def sized(image):
    return "x".join(map(str, (1, 1, *image)))


def weak_cases(workers, small):
    """(b) 16^3 pixels and 8 layers a worker, the same problem for all ways: more workers have more
    layers and more pixels in turns."""
    edge = 8 if small else 16
    for norm in NORMS:
        times, depths, many = 1, 1, 1
        while many <= workers:
            image = doubled((edge,) * 3, times)
            base = Case("weak", "", norm, sized(image), 8 * depths)
            yield from ways_of(base, image, many, depths)
            if depths <= times:
                depths *= 2
            else:
                times *= 2
            many *= 2


def strong_problem(small, norm):
    edge, layers = (16, 32) if small else (128, 128)
    return Case("strong", "", norm, sized((edge,) * 3), layers, width=4), (edge,) * 3


def strong_cases(workers, small):
    """(c) 128^3 pixels and 128 layers on more and more workers; the most first."""
    for norm in NORMS:
        base, image = strong_problem(small, norm)
        for many in dict.fromkeys((workers, 1, 8, 4, 2)):
            if many <= workers:
                yield from ways_of(base, image, many, max(2, many // 4))


TABLES = {"layers": layers_cases, "weak": weak_cases, "strong": strong_cases}
