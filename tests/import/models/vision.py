"""torchvision's own networks, as they are but small: transformers with class tokens, shifted windows
with their masks and relative positions, and what its families do in Python."""

from torch import nn
from torchvision import models
from torchvision.models import swin_transformer
from torchvision.models.convnext import CNBlockConfig, ConvNeXt
from torchvision.models.efficientnet import EfficientNet, FusedMBConvConfig, MBConvConfig
from torchvision.models.maxvit import MaxVit
from torchvision.models.regnet import BlockParams, RegNet

from .case import case


@case((2, 3, 24, 24), loss="cross_entropy")
def torchvision_vit():
    """A class token beside the patches, and what it has become is read."""
    model = models.VisionTransformer(24, 8, 2, 2, 8, 12, num_classes=4)
    nn.init.normal_(model.class_token)  # it begins with zeros
    nn.init.normal_(model.heads.head.weight)
    return model


@case((2, 3, 24, 24), loss="cross_entropy", train=False)
def torchvision_vit_eval():
    """nn.MultiheadAttention asks whether it may take its fast path."""
    return torchvision_vit()


def swin(block, merging):
    """Windows that do not divide the image: padding, rolls and masks."""
    return swin_transformer.SwinTransformer(
        patch_size=[2, 2],
        embed_dim=8,  # heads of 4: a trace has their root in float32
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=[3, 3],
        mlp_ratio=1.0,
        stochastic_depth_prob=0.0,
        num_classes=4,
        block=block,
        downsample_layer=merging,
    )


@case((2, 3, 20, 14), loss="cross_entropy")
def torchvision_swin():
    return swin(swin_transformer.SwinTransformerBlock, swin_transformer.PatchMerging)


@case((1, 3, 14, 20), loss="cross_entropy")
def torchvision_swin_v2():
    """Cosine attention; the biases of positions come from a small network of their own."""
    return swin(swin_transformer.SwinTransformerBlockV2, swin_transformer.PatchMergingV2)


@case((2, 3, 16, 16), loss="cross_entropy")
def torchvision_maxvit():
    """Attention in windows, then in grids."""
    return MaxVit((16, 16), 4, 2, [4, 8], [1, 1], 2, 0.0, num_classes=4)


@case((2, 3, 32, 32), loss="cross_entropy", random=True)
def torchvision_convnext():
    settings = [CNBlockConfig(4, 8, 1), CNBlockConfig(8, None, 1)]
    return ConvNeXt(settings, stochastic_depth_prob=0.3, num_classes=4)


@case((2, 3, 32, 24), loss="cross_entropy", random=True)
def torchvision_efficientnet():
    settings = [
        FusedMBConvConfig(2, 3, 1, 8, 8, 1),
        MBConvConfig(1, 3, 1, 8, 8, 1, 1, 1),
        MBConvConfig(2, 3, 2, 8, 8, 2, 1, 1),
    ]
    return EfficientNet(settings, dropout=0.2, last_channel=16, num_classes=4)


@case((2, 3, 32, 40), loss="cross_entropy")
def torchvision_regnet():
    parameters = BlockParams.from_init_params(2, 8, 8.0, 2.0, 4, se_ratio=0.25)
    return RegNet(parameters, num_classes=4, stem_width=4)
