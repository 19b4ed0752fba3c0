#pragma once
// --augment as users write it: changes joined by +, each with options after a colon, as in
//
//   flip+rotate90+affine:rotate=15,scale=0.1+noise:std=0.05,p=0.5
//
// The order in which they are written does not matter: positions change first (all of them as one
// map), numbers after that (docs/augmentation.md has both orders).

#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// The part of the patches that a change applies to is `probability` everywhere.
struct FlipChange {
  std::string axes;          // some of the letters z y x; empty: all
  double probability = 0.5;  // of each axis for itself
};
struct Rotate90Change {
  bool all_planes = false;  // else only that of the last two axes
  double probability = 1;
};
struct AffineChange {
  double rotate = 0;     // degrees, to both sides, in each plane
  double scale = 0;      // each axis for itself, 0.1: by 1/1.1 to 1.1
  double shear = 0;      // pixels per pixel, to both sides
  double translate = 0;  // part of the patch, to both sides
  double probability = 1;
};
struct ZoomChange {
  double low = 1, high = 1;
  double probability = 1;
};
struct ElasticChange {
  double size = 0;      // standard deviation of the displacements of the grid's points, in pixels
  int64_t spacing = 1;  // of the grid, in pixels
  double probability = 1;
};

struct BlurChange {
  double sigma = 0;  // the largest, in pixels
  double probability = 1;
};
struct GammaChange {
  double range = 0;  // 0.3: exponents from 1/1.3 to 1.3
  double probability = 1;
};
struct ContrastChange {
  double range = 0;  // 0.3: factors from 1/1.3 to 1.3
  double centre = 0;
  double probability = 1;
};
struct BrightnessChange {
  double range = 0;  // added, to both sides
  double probability = 1;
};
struct NoiseChange {
  double deviation = 0;
  double probability = 1;
};
struct DropoutChange {
  int64_t boxes = 0;
  double size = 0;  // of a box, as a part of the patch's sides
  double fill = 0;
  double probability = 1;
};

struct Augmentation {
  std::optional<FlipChange> flip;
  std::optional<Rotate90Change> rotate90;
  std::optional<AffineChange> affine;
  std::optional<ZoomChange> zoom;
  std::optional<ElasticChange> elastic;

  std::optional<BlurChange> blur;
  std::optional<GammaChange> gamma;
  std::optional<ContrastChange> contrast;
  std::optional<BrightnessChange> brightness;
  std::optional<NoiseChange> noise;
  std::optional<DropoutChange> dropout;

  bool changes_positions() const { return flip || rotate90 || affine || zoom || elastic; }
  bool changes_numbers() const {
    return blur || gamma || contrast || brightness || noise || dropout;
  }
};

/// What the axes of images with so many of them are called: "yx", "zyx".
std::string axis_letters(int num_axes);
/// Throws InvalidInput where a change is for axes that the images do not have.
void check_axes(const Augmentation& augmentation, int num_axes);

/// Empty text: none. Throws InvalidInput, with a suggestion and the legal names, keys and values.
Augmentation parse_augmentation(const std::string& text);

/// Every change with its options, defaults and help: for the list that users see.
std::string augmentation_help();

}  // namespace tessera
