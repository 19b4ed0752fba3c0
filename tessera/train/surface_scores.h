#pragma once
// How far the outlines of a predicted mask and of the true one are apart, class by class.
//
// The surface of a class are its pixels that touch another class, or the end of the image, by a
// face. With the distances of every pixel of one surface to the other surface, in both directions:
//
//   Hausdorff (95%)   the larger one of the two directions' 95th percentiles (with NumPy's linear
//                     interpolation): 0 is perfect, the unit that of the spacing
//   surface Dice      the part of both surfaces that is not farther than a tolerance from the other
//
// A class that one of the two masks does not have has no Hausdorff distance (NaN), and a surface
// Dice of 0; one that neither has, has neither. Distances are exact (distance_transform.h).

#include <ATen/ATen.h>

#include <vector>

#include "tessera/geometry/box.h"

namespace tessera {

struct SurfaceScores {
  double hausdorff95 = 0;
  double surface_dice = 0;
};

struct SurfaceOptions {
  int64_t num_classes = 2;
  std::vector<double> spacing = {};  // of a pixel along each axis; empty: 1
  double tolerance = 1;              // in the unit of the spacing
  int64_t ignored = -100;            // pixels with this label belong to no class, in both masks
};

/// Per class, of int64 class maps of one shape.
std::vector<SurfaceScores> surface_scores(const at::Tensor& prediction, const at::Tensor& truth,
                                          const SurfaceOptions& options);

/// The percentile of numbers, 0 to 100, between two of them by linear interpolation. At least one.
double percentile(std::vector<double> numbers, double percent);

/// Means over samples, number by number, of those that are numbers.
class MeanSurfaceScores {
 public:
  void add(const std::vector<SurfaceScores>& of_sample);
  void add(const MeanSurfaceScores& other);
  /// Empty where nothing was added.
  std::vector<SurfaceScores> means() const;

 private:
  struct Sum {
    double hausdorff95 = 0, surface_dice = 0;
    int64_t num_hausdorff95 = 0, num_surface_dice = 0;
  };
  std::vector<Sum> sums_;  // per class
};

}  // namespace tessera
