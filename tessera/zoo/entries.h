#pragma once
// What each model's file gives to the registry in zoo.cpp. Their build functions expect an input
// with the right number of axes, all sizes at least 1.

#include "tessera/zoo/zoo.h"

namespace tessera {

ModelInfo cnn(int num_spatial);
ModelInfo fcn2d();
ModelInfo unet(int num_spatial);

}  // namespace tessera
