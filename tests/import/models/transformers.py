"""Products between pixels: attention over all of an image, over windows of it, over its channels."""

from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn

from .case import case


def conv(channels_in, channels_out, **options):
    return nn.Conv2d(channels_in, channels_out, 3, padding=1, **options)


@case((2, 3, 9, 8), loss="cross_entropy")
class NonLocal(nn.Module):
    """Wang et al. 2018, with subsampled keys."""

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 6)
        self.theta = nn.Conv2d(6, 4, 1)
        self.phi = nn.Sequential(nn.Conv2d(6, 4, 1), nn.MaxPool2d(2))
        self.g = nn.Sequential(nn.Conv2d(6, 4, 1), nn.MaxPool2d(2))
        self.out = nn.Sequential(nn.Conv2d(4, 6, 1, bias=False), nn.BatchNorm2d(6))
        self.head = nn.Conv2d(6, 3, 1)

    def forward(self, x):
        x = self.stem(x)
        n = x.size(0)
        g = self.g(x).view(n, 4, -1).permute(0, 2, 1)
        theta = self.theta(x).view(n, 4, -1).permute(0, 2, 1)
        phi = self.phi(x).view(n, 4, -1)
        scores = F.softmax(torch.matmul(theta, phi), dim=-1)
        y = torch.matmul(scores, g).permute(0, 2, 1).contiguous().view(n, 4, x.size(2), x.size(3))
        return self.head(x + self.out(y))


@case((2, 3, 7, 9), loss="mse")
class SaganAttention(nn.Module):
    """SAGAN: bmm, with the pixels as columns; the learned gate begins away from 0 here."""

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 8)
        self.query = nn.Conv2d(8, 2, 1)
        self.key = nn.Conv2d(8, 2, 1)
        self.value = nn.Conv2d(8, 8, 1)
        self.gamma = nn.Parameter(torch.full((1,), 0.5))
        self.softmax = nn.Softmax(dim=-1)
        self.head = conv(8, 2)

    def forward(self, x):
        x = self.stem(x)
        n, c, width, height = x.size()
        query = self.query(x).view(n, -1, width * height).permute(0, 2, 1)
        key = self.key(x).view(n, -1, width * height)
        attention = self.softmax(torch.bmm(query, key))
        value = self.value(x).view(n, -1, width * height)
        out = torch.bmm(value, attention.permute(0, 2, 1)).view(n, c, width, height)
        return self.head(self.gamma * out + x)


@case((2, 3, 8, 7), loss="l1")
class DualAttention(nn.Module):
    """DANet: between pixels, and between channels."""

    def __init__(self):
        super().__init__()
        self.stem = conv(3, 6)
        self.head = conv(6, 2)

    def between_pixels(self, x):
        n, c, h, w = x.size()
        energy = torch.bmm(x.view(n, c, -1).permute(0, 2, 1), x.view(n, c, -1))
        attention = torch.softmax(energy, dim=-1)
        return torch.bmm(x.view(n, c, -1), attention.permute(0, 2, 1)).view(n, c, h, w)

    def between_channels(self, x):
        n, c, h, w = x.size()
        energy = torch.bmm(x.view(n, c, -1), x.view(n, c, -1).permute(0, 2, 1))
        attention = torch.softmax(energy / (h * w), dim=-1)
        return torch.bmm(attention, x.view(n, c, -1)).view(n, c, h, w)

    def forward(self, x):
        x = torch.tanh(self.stem(x))
        return self.head(self.between_pixels(x) + self.between_channels(x))


class Attention(nn.Module):
    """As timm and DINO write it: queries, keys and values from one linear layer."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.drop = nn.Dropout(0.0)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = self.drop(attn.softmax(dim=-1))
        return self.proj((attn @ v).transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


@case((2, 3, 12, 10), loss="cross_entropy")
class VisionTransformer(nn.Module):
    """Patches as tokens with learned positions, two blocks, and back to an image."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 2, stride=2)
        self.position = nn.Parameter(torch.randn(1, 30, 8) * 0.5)
        self.blocks = nn.Sequential(Block(8, 2), Block(8, 4))
        self.norm = nn.LayerNorm(8)
        self.head = nn.ConvTranspose2d(8, 3, 2, stride=2)

    def forward(self, x):
        x = self.embed(x)
        n, c, h, w = x.shape
        x = self.norm(self.blocks(x.flatten(2).transpose(1, 2) + self.position))
        return self.head(x.transpose(1, 2).reshape(n, c, h, w))


@case((3, 3, 9, 12), loss="cross_entropy")
class TransformerClassifier(nn.Module):
    """The mean over tokens before a linear layer."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(3, 6, 3, stride=3)
        self.block = Block(6, 3)
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        x = self.block(self.embed(x).flatten(2).transpose(1, 2))
        return self.head(x.mean(dim=1))


@case((2, 3, 8, 6), loss="mse")
class MultiheadModule(nn.Module):
    """nn.MultiheadAttention, batch second."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 2, stride=2)
        self.attention = nn.MultiheadAttention(6, 2)
        self.head = conv(6, 2)

    def forward(self, x):
        x = self.stem(x)
        n, c, h, w = x.shape
        tokens = x.flatten(2).permute(2, 0, 1)
        tokens = tokens + self.attention(tokens, tokens, tokens)[0]
        return self.head(tokens.permute(1, 2, 0).reshape(n, c, h, w))


class WindowAttention(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.heads, self.window = heads, window
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.bias = nn.Parameter(torch.randn(heads, window * window, window * window) * 0.3)

    def forward(self, x, shift: int):
        n, h, w, c = x.shape
        s = self.window
        if shift > 0:
            x = torch.roll(x, shifts=(-shift, -shift), dims=(1, 2))
        x = x.view(n, h // s, s, w // s, s, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, s * s, c)
        qkv = self.qkv(x).reshape(x.size(0), s * s, 3, self.heads, c // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attn = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1) + self.bias.unsqueeze(0)
        x = (attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(-1, s * s, c)
        x = self.proj(x).view(n, h // s, w // s, s, s, c)
        x = x.permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        if shift > 0:
            x = torch.roll(x, shifts=(shift, shift), dims=(1, 2))
        return x


@case((2, 3, 16, 8), loss="cross_entropy")
class ShiftedWindows(nn.Module):
    """Swin blocks without a mask: windows, and windows of the rolled image."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 2, stride=2)
        self.norm1 = nn.LayerNorm(8)
        self.attn1 = WindowAttention(8, 2, 4)
        self.norm2 = nn.LayerNorm(8)
        self.attn2 = WindowAttention(8, 2, 4)
        self.merge = nn.Linear(32, 12, bias=False)
        self.head = nn.Conv2d(12, 3, 1)

    def forward(self, x):
        x = self.embed(x).permute(0, 2, 3, 1)
        x = x + self.attn1(self.norm1(x), 0)
        x = x + self.attn2(self.norm2(x), 2)
        even, odd = x[:, 0::2], x[:, 1::2]
        x = torch.cat([even[:, :, 0::2], odd[:, :, 0::2], even[:, :, 1::2], odd[:, :, 1::2]], -1)
        return self.head(self.merge(x).permute(0, 3, 1, 2))


@case((2, 3, 8, 10), loss="l1")
class MixerBlock(nn.Module):
    """A linear layer over the tokens, and one over the channels."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Conv2d(3, 6, 2, stride=2)
        self.norm = nn.LayerNorm(6)
        self.tokens = nn.Linear(20, 20)
        self.channels = nn.Linear(6, 6)
        self.head = nn.Conv2d(6, 2, 1)

    def forward(self, x):
        x = self.embed(x)
        n, c, h, w = x.shape
        x = x.flatten(2).transpose(1, 2)
        x = x + F.gelu(self.tokens(self.norm(x).transpose(1, 2))).transpose(1, 2)
        x = x + self.channels(x)
        return self.head(x.transpose(1, 2).view(n, c, h, w))


@case((2, 2, 7, 6), loss="mse")
class EinsumAttention(nn.Module):
    """Letters instead of views, in one and in two spatial axes."""

    def __init__(self):
        super().__init__()
        self.q = nn.Conv2d(2, 4, 1)
        self.k = nn.Conv2d(2, 4, 1)
        self.v = nn.Conv2d(2, 4, 1)
        self.head = conv(8, 2)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        n, c, h, w = q.shape
        rows = torch.softmax(torch.einsum("nchw,nchv->nhwv", q, k), dim=-1)
        along_rows = torch.einsum("nhwv,nchv->nchw", rows, v)
        scores = torch.einsum("nci,ncj->nij", q.flatten(2), k.flatten(2))
        everywhere = torch.einsum("nij,ncj->nci", scores.softmax(-1), v.flatten(2))
        return self.head(torch.cat([along_rows, everywhere.view(n, c, h, w)], dim=1))


@case((2, 2, 5, 4, 6), loss="mse")
class VolumeAttention(nn.Module):
    """Between all voxels of a volume."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv3d(2, 4, 3, padding=1)
        self.head = nn.Conv3d(4, 2, 1)

    def forward(self, x):
        x = self.stem(x)
        tokens = x.flatten(2).transpose(1, 2)
        scores = torch.softmax(tokens @ tokens.transpose(1, 2) * 0.5, dim=-1)
        return self.head((scores @ tokens).transpose(1, 2).reshape(x.shape) + x)


if hasattr(F, "scaled_dot_product_attention"):
    attention = F.scaled_dot_product_attention
else:

    def attention(q, k, v, attn_mask: Optional[torch.Tensor] = None, is_causal: bool = False):
        return F._scaled_dot_product_attention(q, k, v, attn_mask, is_causal=is_causal)[0]


@case((2, 3, 8, 6), loss="mse")
class MaskedAttention(nn.Module):
    """Masks of numbers, learned ones, of yes and no, and those that code makes of a shape."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 2, stride=2)
        self.module = nn.MultiheadAttention(4, 2, batch_first=True)
        self.bias = nn.Parameter(torch.randn(12, 12))
        self.register_buffer("near", torch.rand(12, 12).gt(0.5) | torch.eye(12).bool())
        self.head = conv(4, 2)

    def forward(self, x):
        x = self.stem(x)
        y = torch.tanh(x.flatten(2).transpose(1, 2))
        not_near = ~self.near
        y = y + self.module(y, y, y, attn_mask=not_near, need_weights=False)[0]
        rows = torch.zeros(12, 12, dtype=x.dtype)
        rows[:6, 6:] = -1.5
        y = y + self.module(y, y, y, attn_mask=rows)[0]
        y = torch.tanh(y + attention(y, y, y, attn_mask=self.bias))
        y = torch.tanh(y + attention(y, y, y, attn_mask=self.near))
        y = torch.tanh(y + attention(y, y, y, is_causal=True))
        return self.head(y.transpose(1, 2).reshape(x.shape))
