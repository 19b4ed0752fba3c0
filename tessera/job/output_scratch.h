#pragma once
// Outputs of a network for one batch, in the grid that it sees, in a file without a name of its
// own: all ranks write their boxes, and then each reads what it needs around a box of another grid.
// It goes with the rank that has created it, rank 0.
//
// Example, on every rank:
//   OutputScratch outputs("out/x", {1, 3, 64, 64, 64}, at::kFloat, transport);
//   outputs.write(my_box, my_outputs);
//   outputs.settle();
//   const at::Tensor part = outputs.interpolated(map, box);

#include <memory>
#include <string>

#include "tessera/augment/interpolation.h"
#include "tessera/data/array_reader.h"
#include "tessera/job/result_file.h"

namespace tessera {

class OutputScratch {
 public:
  /// Lies beside `path`; `shape` is batch x channels x space. Collective over all ranks. Throws
  /// InvalidInput where the disk has no room, or a rank does not see the file of another.
  OutputScratch(const std::string& path, const Shape& shape, at::ScalarType real,
                Transport& transport);

  void write(const Box& box, const at::Tensor& outputs) { file_.write(box, outputs); }
  /// Collective. Ends writing.
  void settle();
  /// A box of one sample of the batch, all channels, in the grid that `map` leads from; beyond the
  /// outputs' centres there is what lies at their border.
  at::Tensor interpolated(const PatchMap& map, const Box& box) const;

 private:
  Transport& transport_;
  const Shape shape_;
  const at::ScalarType real_;
  ResultFile file_;
  std::unique_ptr<ArrayReader> reader_;
};

}  // namespace tessera
