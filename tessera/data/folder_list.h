#pragma once
// A folder as a list of samples, by the names of what lies in it:
//
//   images/ and masks/ (or labels/)   each image has the mask of the same name, whatever their
//                                     endings; a mask may also be called NAME_mask, NAME_seg, ...
//   imagesTr/ and labelsTr/           nnU-Net's names; imagesTs/ is for tests. x_0000, x_0001, ...
//                                     are channels of one image x
//   cat/ dog/ ...                     a folder for each class; labels go by their sorted names
//   train/ val/ test/                 each of them one of the above
//   images alone, without folders     images without targets
//
// Hidden files and those that are not images do not count.

#include "tessera/data/sample_list.h"

namespace tessera {

/// Throws InvalidInput with [folder] where the folder is none of these, an image has no mask or a
/// mask no image.
SampleList list_folder(const std::string& path);

/// The pairs of two folders of nnU-Net, with the channels of each image; `labels` may not exist.
std::vector<ListedSample> list_pairs(const std::string& images, const std::string& labels,
                                     SamplePart part);

}  // namespace tessera
