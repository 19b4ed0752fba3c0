"""Networks with operators that cannot be cut, or are not supported exactly. The message names the
operator and the line of this file."""

import torch
import torch.nn.functional as F
from torch import nn

from .refusal import network


class Conv(nn.Module):
    """Something to train before what is refused."""

    def __init__(self, channels=4):
        super().__init__()
        self.conv = nn.Conv2d(3, channels, 3, padding=1)


@network(["aten::fft_fft2"])
class Fourier(Conv):
    def forward(self, x):
        return torch.fft.fft2(self.conv(x)).real


@network(["aten::sort"])
class Sorts(Conv):
    def forward(self, x):
        values, _ = torch.sort(self.conv(x), dim=1)
        return values


@network(["aten::cumsum"])
class CumulativeSum(Conv):
    def forward(self, x):
        return self.conv(x).cumsum(dim=2)


@network(["aten::eye", "aten::affine_grid_generator"])
class GridSample(Conv):
    def forward(self, x):
        x = self.conv(x)
        theta = torch.eye(2, 3).expand(x.size(0), 2, 3)
        return F.grid_sample(x, F.affine_grid(theta, x.size(), False), align_corners=False)


@network(["aten::flip"])
class Flip(Conv):
    def forward(self, x):
        return torch.flip(self.conv(x), dims=[3])


@network(["aten::lstm", "aten::flatten", "aten::permute", "aten::transpose"])
class Recurrent(Conv):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 4, batch_first=True)

    def forward(self, x):
        y, _ = self.lstm(self.conv(x).flatten(2).transpose(1, 2))
        return y


@network(["aten::embedding", "aten::to"])
class Embeds(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(9, 4)

    def forward(self, x):
        return self.embedding(x.abs().clamp(max=8).long())


@network(["aten::complex", "aten::view_as_complex"])
class Complex(Conv):
    def forward(self, x):
        x = self.conv(x)
        return torch.complex(x, x).abs()


@network(["aten::topk"])
class TopK(Conv):
    def forward(self, x):
        return torch.topk(self.conv(x), 2, dim=1)[0]


@network(["aten::nonzero", "aten::gt"])
class Nonzero(Conv):
    def forward(self, x):
        return torch.nonzero(self.conv(x) > 0).float()


@network(["aten::index", "aten::gt"])
class BooleanMask(Conv):
    def forward(self, x):
        x = self.conv(x)
        return x[x > 0]


@network(["aten::masked_fill", "aten::lt"])
class MaskedFill(Conv):
    def forward(self, x):
        x = self.conv(x)
        return x.masked_fill(x < 0, 1.0)


@network(["aten::copy_", "aten::fill_", "aten::select", "aten::slice"])
class IndexAssignment(Conv):
    def forward(self, x):
        x = self.conv(x)
        x[:, 0] = 1.0
        return x


@network(["aten::add_", "aten::mul_", "aten::slice"])
class InplaceOnView(Conv):
    """Changes x through a view of it: ignoring that would be a wrong result, not an error."""

    def forward(self, x):
        x = self.conv(x)
        y = x[:, :2]
        y.mul_(2.0)
        return x


@network(["first axis is not the batch"])
class ReshapeMixesBatch(Conv):
    def forward(self, x):
        x = self.conv(x)
        return x.reshape(1, -1, x.size(2), x.size(3))


@network(["an axis begins in the middle of another"])
class ViewMixesAxes(Conv):
    def __init__(self):
        super().__init__(6)

    def forward(self, x):
        x = self.conv(x)
        return x.view(x.size(0), 4, -1, x.size(3))


@network(["first axis is not the batch"])
class TransposesBatch(Conv):
    def forward(self, x):
        return self.conv(x).transpose(0, 1)


@network(["aten::argmax"])
class ArgmaxOutput(Conv):
    def forward(self, x):
        return self.conv(x).argmax(dim=1)


@network(["aten::rand_like", "aten::rand"])
class RandomNoise(Conv):
    def forward(self, x):
        x = self.conv(x)
        return x + torch.rand_like(x)


@network(["one random mask twice"])
class OneMaskTwice(Conv):
    def forward(self, x):
        x = self.conv(x)
        mask = x.new_empty([x.shape[0], 1, 1, 1]).bernoulli_(0.5)
        return x * mask + torch.tanh(x) * mask


@network(["output_size=x.size()"])
class UnpoolToAnotherSize(Conv):
    def forward(self, x):
        y, indices = F.max_pool2d(self.conv(x), 2, return_indices=True)
        return torch.ops.aten.max_unpool2d(y, indices, [2 * y.shape[2] + 1, 2 * y.shape[3]])


@network(["in place"])
class WeightInPlace(Conv):
    """Standardises the weight itself: PyTorch would change it with every step."""

    def forward(self, x):
        weight = self.conv.weight.detach()
        weight.sub_(weight.mean())
        return F.conv2d(x, weight, padding=1)


@network(["aten::unfold", "aten::im2col"])
class Unfold(Conv):
    def forward(self, x):
        return F.unfold(self.conv(x), kernel_size=3, padding=1)


@network(["aten::scatter_", "aten::scatter", "aten::one_hot", "aten::argmax"])
class OneHot(Conv):
    def forward(self, x):
        x = self.conv(x)
        return torch.zeros_like(x).scatter_(1, x.argmax(1, keepdim=True), 1.0)


@network(["aten::quantize_per_tensor"])
class Quantizes(Conv):
    def forward(self, x):
        return torch.quantize_per_tensor(self.conv(x), 0.1, 0, torch.qint8).dequantize()


@network(["aten::to", "dtype", "float16", "half"])
class CastsToHalf(Conv):
    """Rounding inside the network would be lost without a word."""

    def forward(self, x):
        return self.conv(x).half().float()


# A trace holds the factor of its first step as a number, and so does PyTorch that loads it.
@network(["aten::batch_norm", "momentum", "cumulative"], exports=("script",))
class CumulativeAverage(Conv):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(4, momentum=None)

    def forward(self, x):
        return self.norm(self.conv(x))


@network(["parametrizations.orthogonal"], exports=("trace",))
class Orthogonal(Conv):
    def __init__(self):
        super().__init__()
        self.mix = nn.utils.parametrizations.orthogonal(nn.Conv2d(4, 4, 3))

    def forward(self, x):
        return self.mix(self.conv(x))


@network(["torch.no_grad()"], exports=("trace",))
class FastPathOfAttention(Conv):
    """Traced in eval mode without gradients, nn.MultiheadAttention is one operator."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.eval()

    def forward(self, x):
        x = self.conv(x).flatten(2).transpose(1, 2)
        with torch.no_grad():
            return self.attention(x, x, x, need_weights=False)[0]


@network(["one tensor of whole numbers"])
class WeightByTwoIndices(Conv):
    def __init__(self):
        super().__init__()
        self.register_buffer("index", torch.tensor([0, 1]))

    def forward(self, x):
        return self.conv(x) + self.conv.weight[self.index, self.index].sum()


@network(["all sizes but that of axis 1"], exports=("script",))
class BesideAnotherSize(Conv):
    def forward(self, x):
        return torch.cat([self.conv(x), torch.zeros(x.size(0), 2, 3, 3)], dim=1)


@network(["positions that rise"])
class SplitsBackwards(Conv):
    def forward(self, x):
        parts = torch.tensor_split(self.conv(x), [3, 1], dim=1)
        return parts[0]


class WithManyNumbers(Conv):
    def __init__(self):
        super().__init__()
        self.register_buffer("numbers", torch.arange(100000))


@network(["computes with weights alone"], exports=("script",))
class TableOfAllPairs(WithManyNumbers):
    """The numbers are few, but no machine has room for their sums; it must not be tried."""

    def forward(self, x):
        pairs = self.numbers.view(-1, 1) + self.numbers.view(1, -1)
        return self.conv(x) * int(pairs[0, 0])


@network(["indexing by a tensor"], exports=("script",))
class CopiesOfALongRow(WithManyNumbers):
    def forward(self, x):
        rows = self.numbers.view(1, -1)[self.numbers * 0]
        return self.conv(x) * int(rows[0, 0])


@network(["copies of 60000 positions"], exports=("script",))
class ManyCopiesOfPositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(60000))

    def forward(self, x):
        return x * self.weight.repeat_interleave(60000, dim=0)[0]


@network(["join them by torch.cat"], exports=("script",))
class WritesAWeightBitByBit(nn.Module):
    """Each write is a list of all elements; a thousand of them are gigabytes."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(60000))

    def forward(self, x):
        weight = self.weight.clone()
        for i in range(1000):
            weight[i : i + 1].mul_(2.0)
        return x * weight[0]


@network(["writes into a part of a weight of 70000 elements"], exports=("script",))
class WritesIntoALargeWeight(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(70000))

    def forward(self, x):
        weight = self.weight.clone()
        weight[1:2].zero_()
        return x * weight[0]
