// Domain separation for segmentation: the shared encoder and the head are a U-Net with its skips;
// the private encoders are its way down once more, and the decoder is a way up without skips, so
// that a reconstruction has nothing but the codes.

#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/zoo/domains.h"
#include "tessera/zoo/entries.h"
#include "tessera/zoo/unet_frame.h"

namespace tessera {
namespace {

DomainParts unet_parts(const ModelOptions& options, int64_t image_channels) {
  const UnetSizes sizes = read_unet_sizes(options);
  const int64_t classes = kClasses.read(options);
  DomainParts parts;
  parts.encode = [=](Graph& graph, ValueId image) {
    const UnetCode code = descend_unet(graph, image, "shared.", sizes);
    return DomainCodes{image, code.bottom, global_average_pool(graph, code.bottom), code.skips};
  };
  parts.solve = [=](Graph& graph, const DomainCodes& codes) {
    const ValueId x = ascend_unet(graph, {codes.shared, codes.skips}, "head.", sizes);
    finish_with_cross_entropy(
        graph, convolution(graph, x, "head.out", {.out_channels = classes, .kernel = {1}}));
  };
  parts.encode_private = [=](Graph& graph, ValueId image, const std::string& prefix) {
    return descend_unet(graph, image, prefix, sizes).bottom;
  };
  parts.decode = [=](Graph& graph, ValueId code, const DomainCodes& codes) {
    const ValueId x = ascend_without_skips(graph, {code, codes.skips}, "decoder.", sizes);
    return convolution(graph, x, "decoder.out", {.out_channels = image_channels, .kernel = {1}});
  };
  return parts;
}

}  // namespace

ModelInfo dsn_unet(int num_spatial) {
  const std::string name = fmt::format("dsn_unet{}d", num_spatial);
  const std::vector<OptionInfo> sizes =
      with_any_norm({kUnetBase.info(32), kUnetDepth.info(4), kClasses.info(2)}, "instance");
  return {.name = name,
          .summary = fmt::format("domain separation network that segments {} by a U-Net",
                                 num_spatial == 2 ? "images" : "volumes"),
          .num_spatial = num_spatial,
          .default_input = num_spatial == 2 ? Shape{2, 1, 128, 128} : Shape{2, 1, 32, 32, 32},
          .options = with_separation(with_domains(sizes, /*gamma=*/0.1)),
          .build = [name](const ModelOptions& options, const Shape& input) {
            check_unet_sizes(name, options, input);
            return build_domains(options, input, unet_parts(options, input[1]));
          }};
}

}  // namespace tessera
