#include "tessera/graph/op.h"

#include "tessera/base/error.h"

namespace tessera {

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kRecompute:
      return "recompute";
    case Phase::kPieceStatistics:
      return "statistics";
    case Phase::kCombineStatistics:
      return "combine statistics";
    case Phase::kMergeStatistics:
      return "merge statistics";
    case Phase::kUpdateBuffers:
      return "update buffers";
    case Phase::kPieceGradStatistics:
      return "gradient statistics";
    case Phase::kCombineGradStatistics:
      return "combine gradient statistics";
    case Phase::kInputGradient:
      return "input gradient";
    case Phase::kWeightGradient:
      return "weight gradient";
  }
  return "?";
}

at::Tensor Operand::view(const Box& sub) const {
  TESSERA_CHECK(box.contains(sub), "{} does not lie in {}", to_string(sub), to_string(box));
  if (sub.empty()) return tensor.new_empty(sub.shape());
  at::Tensor result = tensor;
  for (int axis = 0; axis < box.num_axes(); ++axis)
    if (sub[axis] != box[axis])
      result = result.narrow(axis, sub[axis].begin - box[axis].begin, sub[axis].size());
  return result;
}

double Op::elements_moved(const Box& out, const NodeTypes& types) const {
  int64_t elements = is_loss() ? 0 : out.volume();
  for (size_t i = 0; i < types.inputs.size(); ++i) {
    const Box image = Box::whole(types.inputs[i].shape());
    elements += intersect(needed(static_cast<int>(i), out, types), image).volume();
  }
  return static_cast<double>(elements);
}

void Op::combine_statistics(const std::vector<at::Tensor>& rows, const at::Tensor& combined) const {
  sum_statistics(rows, combined);
}

void Op::merge_statistics(MergeArgs& args) const { args.merged.copy_(args.row); }

void sum_statistics(const std::vector<at::Tensor>& rows, const at::Tensor& sum) {
  sum.zero_();  // not the first row: a negative zero must not depend on who else is there
  for (const at::Tensor& row : rows) sum.add_(row);
}

}  // namespace tessera
