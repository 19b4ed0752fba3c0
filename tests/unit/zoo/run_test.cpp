// The models run on the reference path, and every parameter gets a gradient.

#include <gtest/gtest.h>

#include <cmath>

#include "tessera/graph/reference.h"
#include "tessera/zoo/zoo.h"
#include "tests/unit/zoo/random_start.h"

namespace tessera::run_test {
namespace {

struct Case {
  const char* spec;
  Shape input;
};

class RunsOnReference : public testing::TestWithParam<Case> {};

TEST_P(RunsOnReference, ForwardAndBackward) {
  const Graph graph = build_model(GetParam().spec, GetParam().input);
  std::vector<at::Tensor> parameters = initial_parameters(graph);
  const ReferenceResult result =
      run_reference(graph, random_inputs(graph), parameters, /*seed=*/1, /*step=*/0);
  EXPECT_TRUE(std::isfinite(result.loss));
  EXPECT_GT(result.loss, 0);
  EXPECT_GT(result.input_gradients[0].abs().max().item<double>(), 0);
  for (size_t id = 0; id < parameters.size(); ++id) {
    const Parameter& parameter = graph.parameters()[id];
    if (parameter.role == ParameterRole::kBuffer) continue;
    EXPECT_TRUE(at::isfinite(result.gradients[id]).all().item<bool>()) << parameter.name;
    EXPECT_GT(result.gradients[id].abs().max().item<double>(), 0) << parameter.name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Small, RunsOnReference,
    testing::Values(
        Case{"cnn1d:base=4,depth=3", {2, 1, 37}},
        Case{"cnn2d:base=4,depth=2,classes=3", {2, 3, 11, 8}},
        Case{"cnn2d:base=4,depth=2,norm=none", {1, 2, 11, 8}},
        Case{"cnn3d:base=2,depth=2", {2, 1, 6, 5, 4}},
        Case{"alexnet:width=8,classes=3", {2, 3, 63, 70}},
        Case{"attention_unet2d:base=4,depth=3", {1, 3, 13, 10}},
        Case{"densenet121:growth=4,classes=3", {2, 3, 32, 35}},
        Case{"dann:base=4,code=9,classes=3", {3, 3, 17, 16}},
        Case{"dsn:base=4,code=9,classes=3,targets=3", {3, 3, 17, 16}},
        Case{"dsn:base=4,code=9,targets=2,target_batch=2,similarity=mmd", {3, 1, 12, 16}},
        Case{"dsn:base=4,code=9,targets=2,target_batch=2/4,similarity=pairwise", {3, 1, 12, 16}},
        Case{"dann:base=4,code=9,targets=0", {3, 1, 12, 16}},
        Case{"dsn_unet2d:base=3,depth=3,targets=2", {2, 1, 13, 10}},
        Case{"dsn_unet3d:base=2,depth=2,norm=none", {2, 1, 9, 8, 7}},
        Case{"fcn2d:width=0.05,classes=3", {1, 3, 47, 33}},
        Case{"inception_v3:width=4,classes=3", {2, 3, 299, 299}},
        Case{"inception_v3:width=4,classes=3,aux=no", {2, 3, 75, 80}},
        Case{"mobilenet_v2:width=0.1,classes=3", {2, 3, 33, 40}},
        Case{"resnet18:width=8,classes=3", {2, 3, 33, 40}},
        Case{"resnet50:width=4,classes=3", {2, 3, 40, 33}},
        Case{"resnet110_v2:width=4,blocks=3", {2, 3, 17, 16}},
        Case{"resnet1001_v2:width=2,blocks=4", {2, 3, 16, 15}},
        Case{"resnet_chain1d:width=3,blocks=4,norm=none", {2, 1, 17}},
        Case{"resnet_chain2d:width=3,blocks=5", {2, 3, 9, 8}},
        Case{"resnet_chain3d:width=4,blocks=3,norm=group,groups=2", {2, 1, 5, 4, 6}},
        Case{"resunet2d:base=3,depth=3", {1, 3, 13, 10}},
        Case{"resunet2d:base=3,depth=3,norm=none", {1, 3, 9, 10}},
        Case{"unet2d_valid:base=3,depth=3", {1, 1, 48, 44}},
        Case{"vgg11:width=8,classes=3", {1, 3, 32, 40}},
        Case{"vgg16:width=4,classes=3,norm=batch", {2, 3, 33, 40}},
        Case{"unet2d:base=3,depth=3", {1, 3, 13, 10}},
        Case{"unet2d:base=3,depth=4,norm=none,classes=5", {1, 1, 9, 8}},
        Case{"unet3d:base=2,depth=3", {1, 2, 9, 8, 7}}));

}  // namespace
}  // namespace tessera::run_test
