#pragma once
// What verify() found, for a test that fails.

#include <fmt/format.h>

#include <string>

#include "tessera/proof/verify.h"

namespace tessera {

inline std::string differences(const VerifyReport& report) {
  return fmt::format(
      "loss {} output {} input gradient {} gradient {} updated {} buffer {}, worst: {}",
      report.loss_rel, report.output_rel, report.input_grad_rel, report.param_grad_rel,
      report.updated_param_rel, report.buffer_rel, report.worst);
}

}  // namespace tessera
