#pragma once
// An array of a file as images: channels first, then space, whatever the order in the file.
//
// Formats that name their axes (TIFF, NIfTI, ...) are believed. Those that do not (.npy, HDF5, raw)
// hold channels x space, or space alone for one channel; a file of many samples has these first.
//
// Example:
//   const FileAxes axes = image_axes(*open_array("slide.tif"), {.shape = {3, 512, 512}});

#include "tessera/data/file_axes.h"

namespace tessera {

/// Where an array has its channels: before space, as PyTorch, or after it.
enum class ChannelAxis { kFirst, kLast };

/// What the pages of a file are (also its points in time).
enum class Pages {
  kAuto,  // what fits: depth, channels or samples, in this order
  kChannels,
  kSamples,
  kDepth,
};

struct ImageWish {
  /// Channels x spatial, as the network takes it; 0 channels: any number. Empty: anything.
  Shape shape = {};
  /// Of files that do not name their axes.
  ChannelAxis channels = ChannelAxis::kFirst;
  Pages pages = Pages::kAuto;
  /// Whether the file is all of a set, and has many samples.
  bool many_samples = false;
  /// Of files that do not name their axes, where no shape is wanted: the sizes of the targets'
  /// file.
  Shape target_sizes = {};
};

/// Throws InvalidInput with [data] and the path where the channels or the number of axes are not
/// what is wanted. The size of the space is not looked at.
FileAxes image_axes(const ArrayFile& file, const ImageWish& wish);

/// Throws InvalidInput: the image of this shape in the file is not what the network takes. Says
/// what to do, and where the channels are.
[[noreturn]] void refuse_image(const ArrayFile& file, const ImageWish& wish, const Shape& image);

struct TargetWish {
  int num_spatial = 0;       // of the images
  bool are_numbers = false;  // channels x space; else labels: space
  ChannelAxis channels = ChannelAxis::kFirst;
  bool many_samples = false;
};

/// The same for targets. A file of many samples that does not name its axes may have any others
/// than samples; without them there is a label per image. Masks with several channels are refused.
FileAxes target_axes(const ArrayFile& file, const TargetWish& wish);

}  // namespace tessera
