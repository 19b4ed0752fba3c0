#include "tessera/kernels/moments.h"

namespace tessera {

namespace aten {

/// Chan, Golub and LeVeque's formula of two, row after row. What counts nothing changes no bit.
void combine_moments(const std::vector<at::Tensor>& rows, const at::Tensor& combined) {
  at::Tensor all = at::zeros_like(cells_of_row(combined));
  for (const at::Tensor& row : rows) {
    const at::Tensor other = cells_of_row(row);
    const at::Tensor total = counts_in(all) + counts_in(other);
    const at::Tensor share = counts_in(other) / total;
    const at::Tensor apart = means_in(other) - means_in(all);
    const at::Tensor mean = means_in(all) + apart * share;
    const at::Tensor squares =
        squares_in(all) + (squares_in(other) + apart * apart * (counts_in(all) * share));
    const at::Tensor merged = at::stack({total, mean, squares}, 1);
    const at::Tensor is_first = (counts_in(all) == 0).unsqueeze(1);
    const at::Tensor is_nothing = (counts_in(other) == 0).unsqueeze(1);
    all = at::where(is_nothing, all, at::where(is_first, other, merged));
  }
  combined.copy_(all.view(combined.sizes()));
}

}  // namespace aten

const MomentKernels MomentKernels::kAten{.combine_moments = aten::combine_moments};

}  // namespace tessera
