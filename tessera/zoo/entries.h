#pragma once
// What each model's file gives to the registry in zoo.cpp. Their build functions expect an input
// with the right number of axes, all sizes at least 1.

#include "tessera/zoo/zoo.h"

namespace tessera {

ModelInfo alexnet();
ModelInfo attention_unet2d();
ModelInfo cnn(int num_spatial);
ModelInfo dann();
ModelInfo densenet(int depth);  // 121, 161, 169 or 201
ModelInfo dsn();
ModelInfo dsn_unet(int num_spatial);
ModelInfo fcn2d();
ModelInfo inception_v3();
ModelInfo mobilenet_v2();
ModelInfo resnet(int depth);     // 18, 34, 50, 101 or 152
ModelInfo resnet_chain(int num_spatial);
ModelInfo resnet_v2(int depth);  // 110 or 1001
ModelInfo resunet2d();
ModelInfo unet(int num_spatial);
ModelInfo unet2d_valid();
ModelInfo vgg(int depth);  // 11, 13, 16 or 19

}  // namespace tessera
