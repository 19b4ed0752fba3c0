// U-Net (in 3-D: Cicek et al., "3D U-Net", 2016) with same padding, so that the logits have the
// size of the input.

#include "tessera/zoo/entries.h"
#include "tessera/zoo/unet_frame.h"

namespace tessera {

ModelInfo unet(int num_spatial) {
  const std::string name = fmt::format("unet{}d", num_spatial);
  return {.name = name,
          .summary = fmt::format("U-Net with same padding for segmenting {}",
                                 num_spatial == 2 ? "images" : "volumes"),
          .num_spatial = num_spatial,
          .default_input = num_spatial == 2 ? Shape{1, 3, 256, 256} : Shape{1, 1, 64, 64, 64},
          .options = with_any_norm({kUnetBase.info(64), kUnetDepth.info(5), kClasses.info(2)}),
          .build = [name](const ModelOptions& options, const Shape& input) {
            check_unet_sizes(name, options, input);
            return build_unet(options, input, Border::kSame);
          }};
}

}  // namespace tessera
