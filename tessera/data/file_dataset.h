#pragma once
// Images and targets in files of any format that images/ can read; each rank reads its own boxes. A
// set is one pair of files with many samples, or a list of files with a sample each, which may
// differ in size but not in channels and number of axes.
//
//   images   channels x spatial, or spatial for one channel; a pair has samples first
//   targets  a label per pixel or per image (integers), or numbers to be met (regression, channels
//            x spatial)
//
// All headers are read when the set is opened, in parallel; files themselves are opened on demand
// (open_files.h). Labels are checked as they are read: one that is not a class and not to be
// ignored is InvalidInput with the file, the sample and the position.
//
// Example:
//   auto data = open_file_dataset(list_folder("scans"), {}, {.image_shape = {1, 512, 512}});

#include <memory>
#include <string>

#include "tessera/data/dataset.h"
#include "tessera/data/file_images.h"
#include "tessera/data/file_options.h"
#include "tessera/data/sample_list.h"

namespace tessera {

/// Whether images of another size than is wanted are refused. Their channels must fit in any case.
enum class ImageSizes { kAsWanted, kAny };

/// What a network takes.
struct DataWish {
  /// Channels x spatial; empty: whatever the files hold.
  Shape image_shape = {};
  ImageSizes sizes = ImageSizes::kAsWanted;
  /// Where neither the options nor the data say how many classes there are. 0: one more than the
  /// largest label, for which all targets are read when it is asked for.
  int64_t num_classes = 0;
  /// Of files that do not name their axes: images, and targets that are numbers.
  ChannelAxis channels = ChannelAxis::kFirst;
};

/// The samples of a list, each with files of its own. Throws InvalidInput for what does not fit.
std::unique_ptr<Dataset> open_file_dataset(SampleList list, const FileOptions& options,
                                           const DataWish& wish);

/// Two files with many samples; without `targets` images alone.
std::unique_ptr<Dataset> open_file_pair(const std::string& images, const std::string& targets,
                                        const FileOptions& options, const DataWish& wish);

}  // namespace tessera
