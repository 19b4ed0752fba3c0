#pragma once
// The data sets by name, as `--data` takes them:
//
//   synthetic:kind=segmentation,samples=64,classes=3,noise=0.3   (synthetic.h; all have defaults)
//   files:images.npy,targets.npy,classes=4                       (file_dataset.h; npy: is the same)
//   folder:scans,ignore=255                                      (folder_list.h)
//   list:samples.csv, list:dataset.json                          (table_list.h, json_list.h)
//
// file_options.h has the options of the last three.

#include <memory>
#include <string>
#include <vector>

#include "tessera/data/dataset.h"
#include "tessera/data/file_dataset.h"

namespace tessera {

/// `image_shape` is channels x spatial, from the model's input; `num_classes` is the model's, for
/// files that do not say how many labels are legal; `channels` is where files have theirs; `sizes`
/// is whether images of another size are refused. Throws InvalidInput for an unknown name (naming
/// the known ones) and whatever the data set refuses.
std::unique_ptr<Dataset> open_dataset(const std::string& spec, const Shape& image_shape,
                                      uint64_t seed, int64_t num_classes = 0,
                                      ChannelAxis channels = ChannelAxis::kFirst,
                                      ImageSizes sizes = ImageSizes::kAsWanted);

/// The files and folders that a spec names; none where the data is made up.
std::vector<std::string> paths_in_spec(const std::string& spec);

}  // namespace tessera
