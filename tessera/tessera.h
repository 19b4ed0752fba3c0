#pragma once
// Tessera as a library: everything that a C++ program needs, in one include.
//
//   find_package(Tessera REQUIRED)
//   target_link_libraries(my_program PRIVATE Tessera::tessera)
//
// Build or import a graph (zoo/zoo.h, import/import.h, or operator by operator from ops/), put a
// loss on it (loss/add_losses.h), choose a plan (plan/plan.h, or by options as the command line
// does in job/job.h), and verify, measure, train, predict or evaluate (job/run.h, job/predict.h,
// job/evaluate.h). examples/ shows most of them. Other headers are there, too, but may change from
// version to version.

#include "tessera/augment/prepared.h"
#include "tessera/base/error.h"
#include "tessera/base/exit_code.h"
#include "tessera/config/config_layer.h"
#include "tessera/config/train_config.h"
#include "tessera/data/dataset.h"
#include "tessera/data/open.h"
#include "tessera/export/script_file.h"
#include "tessera/graph/graph.h"
#include "tessera/graph/op.h"
#include "tessera/graph/script.h"
#include "tessera/import/import.h"
#include "tessera/job/applied_weights.h"
#include "tessera/job/data_report.h"
#include "tessera/job/evaluate.h"
#include "tessera/job/forecast.h"
#include "tessera/job/job.h"
#include "tessera/job/predict.h"
#include "tessera/job/run.h"
#include "tessera/job/run_source.h"
#include "tessera/loss/add_losses.h"
#include "tessera/ops/conv/convolution.h"
#include "tessera/ops/conv/linear.h"
#include "tessera/ops/conv/transposed_convolution.h"
#include "tessera/ops/norm/batch_norm.h"
#include "tessera/ops/norm/group_norm.h"
#include "tessera/ops/norm/instance_norm.h"
#include "tessera/ops/norm/layer_norm.h"
#include "tessera/ops/pointwise/add.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pointwise/dropout.h"
#include "tessera/ops/pointwise/pointwise.h"
#include "tessera/ops/pointwise/prelu.h"
#include "tessera/ops/pointwise/relu.h"
#include "tessera/ops/pointwise/softmax.h"
#include "tessera/ops/pool/adaptive_pool.h"
#include "tessera/ops/pool/global_pool.h"
#include "tessera/ops/pool/pooling.h"
#include "tessera/ops/shape/concat.h"
#include "tessera/ops/shape/flatten.h"
#include "tessera/ops/shape/interpolate.h"
#include "tessera/ops/shape/pad.h"
#include "tessera/ops/shape/pixel_shuffle.h"
#include "tessera/ops/shape/slice.h"
#include "tessera/plan/plan.h"
#include "tessera/zoo/zoo.h"
