#include "tessera/proof/comparison.h"

#include <fmt/format.h>

#include <cmath>

namespace tessera {

void Comparison::add(const std::string& name, const at::Tensor& ours, const at::Tensor& reference) {
  if (!reference.defined() || reference.numel() == 0) return;
  names_.push_back(name);
  differences_.push_back((ours - reference).abs().max().item<double>());
  scales_.push_back(reference.abs().max().item<double>());
}

double Comparison::largest_scale() const {
  double largest = 0;
  for (double scale : scales_) largest = std::max(largest, scale);
  return largest;
}

double Comparison::worst(std::string* where, double least_scale) const {
  const double floor = std::max(1e-3 * largest_scale(), least_scale);
  double worst = -1;
  for (size_t i = 0; i < names_.size(); ++i) {
    const double scale = std::max(scales_[i], floor);
    double relative = differences_[i] == 0 ? 0 : differences_[i] / scale;
    if (std::isnan(relative)) relative = INFINITY;
    if (relative <= worst) continue;
    worst = relative;
    *where = names_[i].empty() ? kind_ : fmt::format("{} {}", kind_, names_[i]);
  }
  return std::max(worst, 0.0);
}

double l2_difference(const std::vector<at::Tensor>& ours,
                     const std::vector<at::Tensor>& reference) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    if (!reference[i].defined()) continue;
    difference += (ours[i] - reference[i]).to(at::kDouble).pow(2).sum().item<double>();
    norm += reference[i].to(at::kDouble).pow(2).sum().item<double>();
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

}  // namespace tessera
