#pragma once
// Data sets out of nothing, for demos, tests and benchmarks of any size: scenes of blobs, rings,
// cored rings and arcs (scene.h) with texture of the objects' own intensity, uneven illumination
// and noise. Each box is drawn alone and has the bits of the same region of the whole; drawing
// costs O(box), and nothing larger than a tile is held. No function of the C library that
// may round differently elsewhere is used.
//
//   segmentation    class 1: blobs; 2: rings with what they enclose; 3: cored rings with what they
//                   enclose; 0: the rest, arcs and texture included. Objects of classes that are
//                   not asked for are not drawn.
//   classification  class k: objects of kind k outnumber the others (blobs 0, rings 1, cored
//                   rings 2, arcs 3); of equal counts the first wins.
//
// With domain=1 and above the same kind of scenes looks as if another device had taken them:
// contrast and brightness, blur, noise and texture are other ones, drawn for each domain.
//
// Example:
//   SyntheticOptions options = parse_synthetic("kind=segmentation,samples=64,classes=3,noise=0.3");
//   auto data = make_synthetic(options, {1, 512, 512}, seed);

#include <memory>
#include <string>

#include "tessera/data/dataset.h"

namespace tessera {

enum class SyntheticKind { kSegmentation, kClassification };

struct SyntheticOptions {
  SyntheticKind kind = SyntheticKind::kSegmentation;
  int64_t samples = 64;
  int64_t classes = 3;   // 2 to 4
  double noise = 0.3;    // standard deviation; objects have about 1 over the background
  double texture = 0.4;  // part of the background with filaments
  Shape size = {};       // of space; empty: what is asked for
  int64_t domain = 0;    // 0: as it is
  int64_t scale = 0;     // edge in pixels of the cells that hold an object each; 0: by image size
};

/// Reads "key=value,..." (may be empty). Throws InvalidInput, naming the legal keys and values.
SyntheticOptions parse_synthetic(const std::string& text);

/// `image_shape` is channels x 1 to 3 spatial sizes; options.size replaces the latter. Throws
/// InvalidInput where the image is smaller than one cell.
std::unique_ptr<Dataset> make_synthetic(const SyntheticOptions& options, const Shape& image_shape,
                                        uint64_t seed);

}  // namespace tessera
