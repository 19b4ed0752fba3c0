#include "tessera/kernels/pack.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "tessera/base/error.h"
#include "tessera/geometry/divide.h"
#include "tessera/kernels/cuda/box_binding.h"

namespace tessera {
namespace cuda {
namespace {

constexpr int64_t kUnitsOfBlock = int64_t{kBoxThreads} * kUnitsOfThread;

int64_t blocks_of(const PackedBox& box) {
  int64_t units = 1;
  for (const uint32_t size : box.sizes) units *= size;
  return ceil_div(units, kUnitsOfBlock);
}

/// Gathers boxes for as long as one launch can take them: of one kind, and none of which touches
/// what another one writes, because the boxes of a launch are in no order.
class BoxLauncher {
 public:
  explicit BoxLauncher(const at::Tensor& beside) : here_(beside.device()) {}

  void add(const BoxKind& kind, PackedBox box, const at::Tensor& target) {
    if (call_.count == kBoxesOfCall || !(kind == kind_) || meets(target)) flush();
    kind_ = kind;
    box.first_block = call_.blocks;
    call_.blocks += blocks_of(box);
    call_.boxes[call_.count++] = box;
    targets_.push_back(target);
  }

  void flush() {
    if (call_.count == 0) return;
    call_.work = kind_.work;
    call_.source = kind_.source;
    call_.target = kind_.target;
    C10_CUDA_CHECK(launch(call_, c10::cuda::getCurrentCUDAStream()));
    call_.count = 0;
    call_.blocks = 0;
    targets_.clear();
  }

 private:
  bool meets(const at::Tensor& target) const {
    for (const at::Tensor& other : targets_)
      if (may_meet(target, other)) return true;
    return false;
  }

  const c10::cuda::CUDAGuard here_;
  BoxKind kind_{BoxWork::kZero};
  BoxCall call_;
  std::vector<at::Tensor> targets_;
};

void move_boxes(BoxStore store, const std::vector<at::Tensor>& sources,
                const std::vector<at::Tensor>& targets) {
  TESSERA_CHECK(sources.size() == targets.size(), "{} boxes for {} places", sources.size(),
                targets.size());
  BoxLauncher launcher(targets.front());
  for (size_t i = 0; i < targets.size(); ++i) {
    const at::Tensor &source = sources[i], &target = targets[i];
    TESSERA_CHECK(source.sizes() == target.sizes(), "box {} and its place differ in shape", i);
    if (target.numel() == 0) continue;
    const auto kind = kind_of(store == BoxStore::kAdd, source, target);
    const auto box = kind ? pack_box(*kind, source, target) : std::nullopt;
    if (box) {
      launcher.add(*kind, *box, target);
    } else {
      launcher.flush();
      PackKernels::kAten.move_boxes(store, {source}, {target});
    }
  }
  launcher.flush();
}

void zero_boxes(const std::vector<at::Tensor>& targets) {
  BoxLauncher launcher(targets.front());
  for (const at::Tensor& target : targets) {
    if (target.numel() == 0) continue;
    const auto kind = kind_of(/*adds=*/false, {}, target);
    const auto box = kind ? pack_box(*kind, {}, target) : std::nullopt;
    if (box)
      launcher.add(*kind, *box, target);
    else
      target.zero_();
  }
  launcher.flush();
}

constexpr PackKernels kTable{.move_boxes = move_boxes, .zero_boxes = zero_boxes};

}  // namespace
}  // namespace cuda

const PackKernels* const PackKernels::kCuda = &cuda::kTable;

}  // namespace tessera
