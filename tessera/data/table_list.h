#pragma once
// A CSV file as a list of samples. Its first line names the columns:
//
//   image                  a file, as seen from the folder of the list
//   image2, image3, ...    further channels of the same image
//   mask                   a file with a label per pixel
//   label                  or the class of the image, by number or name
//   split                  train, validation or test; empty: the fraction or the fold decides
//   weight                 how often it is drawn in training, relative to the others; empty: 1
//
// Other columns do not count. Cells are separated by commas, semicolons or tabs, and may stand in
// quotes.

#include "tessera/data/sample_list.h"

namespace tessera {

/// Throws InvalidInput with [list], the file and the line.
SampleList list_table(const std::string& path);

}  // namespace tessera
