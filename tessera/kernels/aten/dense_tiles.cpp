#include "tessera/kernels/dense_tiles.h"

namespace tessera {

namespace aten {

/// All elements are one tile. A device computes each of them alike.
void in_dense_tiles(const std::vector<at::Tensor>& sources, const at::Tensor& target,
                    const TileKernel& kernel) {
  Tiles tiles;
  for (const at::Tensor& source : sources) tiles.push_back(source.contiguous().view({-1}));
  if (target.is_contiguous()) {
    at::Tensor result = target.view({-1});
    return kernel(tiles, result);
  }
  at::Tensor result = at::empty({target.numel()}, target.options());
  kernel(tiles, result);
  target.copy_(result.view(target.sizes()));
}

}  // namespace aten

const DenseTileKernels DenseTileKernels::kAten{.in_dense_tiles = aten::in_dense_tiles};

}  // namespace tessera
