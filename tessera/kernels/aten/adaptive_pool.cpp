#include "tessera/kernels/adaptive_pool.h"

#include <tuple>
#include <vector>

#include "tessera/kernels/aten/tensors.h"

namespace tessera {
namespace {

/// Of an image with five axes.
constexpr int64_t axis_of_image(int axis) { return 2 + axis; }

/// Calls visit(i, window) for the piece's outputs along an axis; the window is counted from the
/// start of the needed range.
template <class Visit>
void for_windows(const AdaptiveAxis& axis, Visit&& visit) {
  for (int64_t output = axis.out.begin; output < axis.out.end; ++output)
    visit(output - axis.out.begin, axis.window(output).shifted(-axis.in.begin));
}

at::Tensor means_along(int axis, const AdaptivePiece& piece, const at::Tensor& image) {
  const int64_t of_image = axis_of_image(axis);
  std::vector<at::Tensor> means;
  for_windows(piece[axis], [&](int64_t, const Range& window) {
    means.push_back(image.narrow(of_image, window.begin, window.size())
                        .mean(of_image, /*keepdim=*/true, at::kDouble));
  });
  return at::cat(means, of_image);
}

at::Tensor shares_along(int axis, const AdaptivePiece& piece, const at::Tensor& grad) {
  const int64_t of_image = axis_of_image(axis);
  std::vector<int64_t> sizes = grad.sizes().vec();
  sizes[of_image] = piece[axis].in.size();
  const at::Tensor sums = at::zeros(sizes, grad.options());
  for_windows(piece[axis], [&](int64_t i, const Range& window) {
    sums.narrow(of_image, window.begin, window.size())
        .add_(grad.narrow(of_image, i, 1) / window.size());
  });
  return sums;
}

/// Where windows begin along an axis, counted from the start of the needed range, and their sizes.
/// As an axis of an image.
struct WindowNumbers {
  at::Tensor begin, size;

  WindowNumbers(int axis, const AdaptivePiece& piece, const at::Tensor& beside) {
    std::vector<int64_t> begins, sizes;
    for_windows(piece[axis], [&](int64_t, const Range& window) {
      begins.push_back(window.begin);
      sizes.push_back(window.size());
    });
    begin = aten::along_axis(aten::indices(begins, beside), axis_of_image(axis), 5);
    size = aten::along_axis(aten::indices(sizes, beside), axis_of_image(axis), 5);
  }
};

/// Maxima, and where they lie in what has been searched of their windows.
struct Maxima {
  at::Tensor value, place;
};

/// The index of the first of equal maxima, or of the last number that is none.
std::tuple<at::Tensor, at::Tensor> maximum_along(int64_t axis, const at::Tensor& image) {
  const auto [value, first] = at::max(image, axis, /*keepdim=*/true);
  const at::Tensor number =
      aten::along_axis(aten::count_up(1, image.size(axis) + 1, image), axis, image.dim());
  const at::Tensor last_none = (image.isnan() * number).amax(axis, /*keepdim=*/true) - 1;
  return {value, at::where(last_none < 0, first, last_none)};
}

/// Searches windows along one more axis. `searched`: elements of a window along the axes before.
Maxima search_along(int axis, const AdaptivePiece& piece, const Maxima& before,
                    const at::Tensor& searched) {
  const int64_t of_image = axis_of_image(axis);
  std::vector<at::Tensor> values, places;
  for_windows(piece[axis], [&](int64_t, const Range& window) {
    const auto part = [&](const at::Tensor& all) {
      return all.narrow(of_image, window.begin, window.size());
    };
    const auto [value, index] = maximum_along(of_image, part(before.value));
    values.push_back(value);
    places.push_back(part(before.place).gather(of_image, index) + index * searched);
  });
  return {at::cat(values, of_image), at::cat(places, of_image)};
}

/// How many neighbours to leave out so that windows do not share an input.
int64_t distance_apart(const AdaptiveAxis& axis) {
  int64_t distance = 1;
  for (int64_t output = axis.out.begin; output + distance < axis.out.end; ++output)
    while (output + distance < axis.out.end &&
           axis.window(output).end > axis.window(output + distance).begin)
      ++distance;
  return distance;
}

/// Where in the plane of the needed box the chosen elements lie.
at::Tensor chosen_inputs(const AdaptivePiece& piece, const at::Tensor& choices) {
  at::Tensor rest = choices.to(at::kLong), place = at::zeros_like(rest);
  int64_t step = 1;
  for (int axis = 2; axis >= 0; --axis) {
    const WindowNumbers windows(axis, piece, choices);
    place.add_(at::remainder(rest, windows.size).add_(windows.begin), step);
    rest = at::div(rest, windows.size, "floor");
    step *= piece[axis].in.size();
  }
  return place;
}

/// Calls visit(part) with a function that takes every so many outputs of an image, such that their
/// windows have no input in common; together all outputs.
template <class Visit>
void for_separate_outputs(const AdaptivePiece& piece, Visit&& visit) {
  const int64_t d = distance_apart(piece[0]), h = distance_apart(piece[1]),
                w = distance_apart(piece[2]);
  for (int64_t i = 0; i < d * h * w; ++i)
    visit([&](const at::Tensor& image) {
      return image.slice(2, i / (h * w), {}, d)
          .slice(3, i / w % h, {}, h)
          .slice(4, i % w, {}, w)
          .flatten(2);
    });
}

}  // namespace

namespace aten {

void pool_adaptive_averages(const AdaptivePiece& piece, const at::Tensor& x, const at::Tensor& y) {
  at::Tensor means = as_volume(x);
  for (int axis = 2; axis >= 0; --axis) means = means_along(axis, piece, means);
  as_volume(y).copy_(means);
}

void pool_adaptive_averages_gradient(const AdaptivePiece& piece, const at::Tensor& grad_y,
                                     const at::Tensor& grad_x) {
  at::Tensor shares = as_volume(grad_y);
  for (int axis = 0; axis < 3; ++axis) shares = shares_along(axis, piece, shares);
  as_volume(grad_x).copy_(shares);
}

void pool_adaptive_maxima(const AdaptivePiece& piece, const at::Tensor& x, const at::Tensor& y,
                          const at::Tensor& choices) {
  const at::Tensor image = as_volume(x);
  Maxima maxima{image, at::zeros(image.sizes(), image.options().dtype(at::kLong))};
  at::Tensor searched = at::ones({1}, maxima.place.options());
  for (int axis = 2; axis >= 0; --axis) {
    maxima = search_along(axis, piece, maxima, searched);
    searched = searched * WindowNumbers(axis, piece, image).size;
  }
  as_volume(y).copy_(maxima.value);
  choices.copy_(maxima.place.flatten());
}

void pool_adaptive_maxima_gradient(const AdaptivePiece& piece, const at::Tensor& grad_y,
                                   const at::Tensor& choices, const at::Tensor& grad_x) {
  const at::Tensor dy = as_volume(grad_y);
  const at::Tensor inputs = chosen_inputs(piece, choices.view(dy.sizes()));
  const at::Tensor sums = at::zeros(as_volume(grad_x).sizes(), dy.options());
  const at::Tensor planes = sums.view({sums.size(0), sums.size(1), -1});
  for_separate_outputs(piece, [&](const auto& part) {
    const at::Tensor places = part(inputs);
    planes.scatter_(2, places, planes.gather(2, places).add_(part(dy)));
  });
  as_volume(grad_x).copy_(sums);
}

}  // namespace aten

const AdaptivePoolKernels AdaptivePoolKernels::kAten{
    .pool_adaptive_averages = aten::pool_adaptive_averages,
    .pool_adaptive_averages_gradient = aten::pool_adaptive_averages_gradient,
    .pool_adaptive_maxima = aten::pool_adaptive_maxima,
    .pool_adaptive_maxima_gradient = aten::pool_adaptive_maxima_gradient};

}  // namespace tessera
