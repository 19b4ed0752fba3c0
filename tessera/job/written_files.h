#pragma once
// The files that a prediction will write, known before anything is computed, so that none of them
// takes the place of an image that is read.

#include <string>
#include <vector>

#include "tessera/data/dataset.h"

namespace tessera {

struct WrittenFile {
  std::string option;  // that asks for it
  std::string path;
};

/// Throws InvalidInput, naming option and file, where one of them is a file that a sample is read
/// from, also through links, or lies in a folder that is; and where two of them are the same.
void check_images_stay(const Dataset& data, const std::vector<WrittenFile>& files);

}  // namespace tessera
