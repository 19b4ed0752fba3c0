#include "tessera/proof/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tessera {
namespace {

/// Elements that are compared at a time.
constexpr int64_t kMostElements = int64_t{1} << 20;

/// What is not a number is as large as can be, and stays so.
double larger(double a, double b) { return std::isnan(b) ? INFINITY : std::max(a, b); }

}  // namespace

void Deviation::add(const at::Tensor& ours, const at::Tensor& reference) {
  if (reference.numel() == 0) return;
  if (reference.numel() > kMostElements) {
    const auto sizes = reference.sizes();
    const int64_t axis = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
    const int64_t size = sizes[axis], half = size / 2;
    add(ours.narrow(axis, 0, half), reference.narrow(axis, 0, half));
    add(ours.narrow(axis, half, size - half), reference.narrow(axis, half, size - half));
    return;
  }
  const at::Tensor apart = ours - reference;
  difference_ = larger(difference_, apart.abs().max().item<double>());
  scale_ = larger(scale_, reference.abs().max().item<double>());
  squared_difference_ += apart.to(at::kDouble).square().sum().item<double>();
  squared_reference_ += reference.to(at::kDouble).square().sum().item<double>();
}

void Comparison::add(const std::string& name, const Deviation& deviation) {
  names_.push_back(name);
  deviations_.push_back(deviation);
}

void Comparison::add(const std::string& name, const at::Tensor& ours, const at::Tensor& reference) {
  if (!reference.defined() || reference.numel() == 0) return;
  Deviation deviation;
  deviation.add(ours, reference);
  add(name, deviation);
}

std::string Comparison::title(size_t index) const {
  return names_[index].empty() ? kind_ : fmt::format("{} {}", kind_, names_[index]);
}

double Comparison::largest_scale() const {
  double largest = 0;
  for (const Deviation& deviation : deviations_) largest = std::max(largest, deviation.scale());
  return largest;
}

double Comparison::relative(size_t index, double least_scale) const {
  const double floor = std::max(1e-3 * largest_scale(), least_scale);
  const Deviation& deviation = deviations_[index];
  if (deviation.difference() == 0) return 0;
  const double relative = deviation.difference() / std::max(deviation.scale(), floor);
  return std::isnan(relative) ? INFINITY : relative;
}

double Comparison::worst(std::string* where, double least_scale) const {
  double worst = -1;
  for (size_t i = 0; i < size(); ++i) {
    const double own = relative(i, least_scale);
    if (own <= worst) continue;
    worst = own;
    *where = title(i);
  }
  return std::max(worst, 0.0);
}

double Comparison::l2() const {
  double difference = 0, norm = 0;
  for (const Deviation& deviation : deviations_) {
    difference += deviation.squared_difference();
    norm += deviation.squared_reference();
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

}  // namespace tessera
