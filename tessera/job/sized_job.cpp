#include "tessera/job/sized_job.h"

#include <algorithm>
#include <functional>

#include "tessera/base/error.h"
#include "tessera/base/standard_streams.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

void say_windows(const Shape& image, const WindowedJob& windowed) {
  if (is_secondary_process()) return;
  const Shape window = windowed.job.graph().type(windowed.job.graph().inputs()[0]).shape();
  print_error("an image of {} is predicted by {} of {}, which gives the same numbers\n",
              to_string(Shape(image.begin() + 1, image.end())),
              counted(std::ssize(windowed.windows), "window"),
              to_string(Shape(window.begin() + 2, window.end())));
}

}  // namespace

Job job_for_size(const JobConfig& config, const Job& own, const Shape& image_shape) {
  Shape input = own.graph().type(own.graph().inputs()[0]).shape();
  if (Shape(input.begin() + 1, input.end()) == image_shape) return own;
  if (input.size() != image_shape.size() + 1 || input[1] != image_shape[0])
    throw_error<InvalidInput>(
        "[data] an image is {}, the network takes {} channels x {} spatial axes; give other images",
        to_string(image_shape), input[1], input.size() - 2);
  input = image_shape;
  input.insert(input.begin(), own.plan.data * own.plan.micro_batches);
  JobConfig sized = config;
  sized.input = to_string(input);
  sized.batch = 0;
  Job job = resolve_job(sized, own.real);
  job.device = own.device;
  return job;
}

bool is_within(const Shape& image, const Shape& window) {
  if (window.empty()) return true;
  if (window.size() + 1 != image.size())
    throw_error<InvalidInput>("[--window] {} has {} axes, an image of {} has {}", to_string(window),
                              window.size(), to_string(image), image.size() - 1);
  return std::equal(window.begin(), window.end(), image.begin() + 1, std::greater_equal<>());
}

WindowedJob prediction_for_size(const JobConfig& config, const Job& own, const Shape& image_shape,
                                const Shape& most) {
  Job whole = job_for_size(config, own, image_shape);
  std::string shortage;
  if (is_within(image_shape, most) && prediction_fits(whole, &shortage))
    return {std::move(whole), {}};
  WindowedJob windowed = choose_windows(
      whole, most, [&](const Shape& window) { return job_for_size(config, whole, window); });
  say_windows(image_shape, windowed);
  return windowed;
}

}  // namespace tessera
