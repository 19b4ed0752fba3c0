#pragma once
// Batches as the graph's inputs want them: images of shape batch x channels x spatial and targets
// as the data set has them (labels: batch x spatial, or batch), read box by box from a data set in
// the order of a plan.
//
// Thread-safe; holds no data. The data set must outlive it.
//
// Example:
//   BatchLoader loader(*data, plan);
//   loader.load({Field::kImages, {{0, 2}, {0, 3}, {0, 64}, {64, 128}}}, batch, target);

#include "tessera/data/batch_plan.h"
#include "tessera/data/dataset.h"

namespace tessera {

enum class Field { kImages, kTargets };

/// A box of a batch, in its global coordinates.
struct BatchBox {
  Field field = Field::kImages;
  Box box;
  bool operator==(const BatchBox&) const = default;
};

class BatchLoader {
 public:
  BatchLoader(const Dataset& dataset, const BatchPlan& plan) : dataset_(dataset), plan_(plan) {}

  const BatchPlan& plan() const { return plan_; }
  /// The whole batch's shape.
  Shape shape(Field field) const;
  /// Whether the field holds numbers; else labels.
  bool is_real(Field field) const { return field == Field::kImages || dataset_.real_targets(); }
  /// Writes the box of batch number `batch` into `target`, a view of the box's shape.
  void load(const BatchBox& request, int64_t batch, at::Tensor target) const;

 private:
  const Dataset& dataset_;
  BatchPlan plan_;
};

}  // namespace tessera
