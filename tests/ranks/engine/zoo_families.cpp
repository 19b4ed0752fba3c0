#include "tests/ranks/engine/zoo_families.h"

namespace tessera {

std::vector<ZooFamily> small_models() {
  const Grids lines{{2}, {3}, {5}};
  const Grids planes{{2, 2}, {1, 3}, {3, 2}, {4, 4}};
  const Grids solids{{2, 2, 2}, {1, 2, 3}};
  return {
      {"cnn1d:base=3,depth=3", {2, 2, 101}, lines, {4}},
      {"cnn2d:base=3,depth=3", {2, 3, 37, 41}, planes, {2, 2}},
      {"cnn3d:base=2,depth=2,norm=none", {2, 1, 11, 13, 12}, solids, {2, 2, 1}},
      {"fcn2d:width=0.02,classes=3", {2, 3, 67, 70}, planes, {4, 1}},
      {"unet2d:base=2,depth=4,classes=3", {2, 3, 43, 38}, planes, {2, 2}},
      {"unet2d:base=2,depth=3,norm=none", {2, 1, 23, 30}, planes, {1, 4}},
      {"unet3d:base=2,depth=3", {2, 1, 13, 12, 15}, solids, {1, 2, 2}},
      {"attention_unet2d:base=2,depth=3,classes=3", {2, 3, 43, 38}, planes, {2, 2}},
      {"resunet2d:base=2,depth=3,classes=3", {2, 3, 43, 38}, planes, {2, 2}},
      {"unet2d_valid:base=2,depth=3,classes=3", {2, 1, 60, 52}, planes, {2, 2}},
      {"unet2d:base=2,depth=3,norm=instance", {2, 3, 27, 30}, planes, {2, 2}},
      {"unet2d:base=4,depth=3,norm=group,groups=2", {2, 3, 27, 30}, planes, {1, 4}},
      {"unet3d:base=2,depth=3,norm=group,groups=2", {2, 1, 13, 12, 15}, solids, {1, 2, 2}},
      {"unet3d:base=2,depth=2,norm=instance", {2, 1, 7, 9, 8}, {{2, 2, 2}}, {2, 1, 1}},
      {"attention_unet2d:base=2,depth=3,norm=group,groups=1", {2, 3, 27, 30}, {{3, 2}}, {2, 2}},
      {"resunet2d:base=2,depth=3,norm=instance", {2, 3, 27, 30}, {{3, 2}}, {2, 2}},
      {"resunet2d:base=4,depth=3,norm=group,groups=4", {2, 3, 27, 30}, {{1, 3}}, {2, 2}},
      {"unet2d_valid:base=2,depth=2,norm=instance", {2, 1, 30, 28}, {{2, 2}}, {2, 2}},
      {"resnet_chain1d:width=3,blocks=4,classes=3,norm=none", {2, 2, 41}, lines, {4}},
      {"resnet_chain2d:width=3,blocks=5,classes=3", {2, 3, 17, 21}, planes, {2, 2}},
      {"resnet_chain3d:width=4,blocks=4,classes=3,norm=group,groups=2",
       {2, 1, 9, 8, 7},
       solids,
       {1, 2, 2}},
      // Deep levels with fewer pixels than workers.
      {"unet2d:base=2,depth=4,classes=3", {2, 3, 17, 16}, planes, {2, 2}},
      {"cnn2d:base=2,depth=4", {2, 3, 17, 19}, planes, {2, 2}},
      {"cnn1d:base=2,depth=4,norm=none", {2, 1, 21}, lines, {4}},
      {"unet3d:base=2,depth=3,norm=none", {2, 1, 5, 8, 7}, solids, {1, 2, 2}},
      {"attention_unet2d:base=2,depth=4", {2, 3, 17, 19}, {{3, 2}}, {2, 2}},
      {"resunet2d:base=2,depth=4", {2, 3, 17, 19}, {{3, 2}}, {2, 2}},
  };
}

std::vector<ZooFamily> published_models() {
  const Grids few{{2, 2}, {1, 3}}, one{{2, 1}};
  return {
      {"alexnet:width=4,classes=3", {2, 3, 71, 95}, few, {2, 1}},
      {"vgg11:width=2,classes=3", {2, 3, 35, 49}, few, {1, 2}},
      {"vgg16:width=2,classes=3,norm=batch", {2, 3, 49, 35}, one, {2, 2}},
      {"resnet18:width=3,classes=3", {2, 3, 57, 50}, few, {2, 2}},
      {"resnet50:width=4,classes=3", {4, 3, 64, 57}, one, {1, 2}, 1},
      {"resnet110_v2:width=2,classes=3", {2, 3, 19, 16}, one, {1, 2}},
      {"resnet1001_v2:width=2,blocks=3", {2, 3, 19, 16}, few, {2, 2}},
      {"densenet121:growth=2,classes=3", {2, 3, 67, 64}, one, {1, 2}},
      {"mobilenet_v2:width=0.05,classes=3", {2, 3, 67, 64}, one, {1, 2}},
      {"inception_v3:width=2,classes=3", {2, 3, 299, 299}, one, {1, 2}, 1},
      {"inception_v3:width=2,classes=3,aux=no", {2, 3, 107, 110}, few, {1, 2}, 1},
  };
}

}  // namespace tessera
