#include "tessera/data/synthetic.h"

#include <algorithm>

#include "tessera/base/key_values.h"
#include "tessera/data/blur.h"
#include "tessera/data/scene.h"

namespace tessera {
namespace {

/// Nearly normal, mean 0, deviation 1, within 3.5: four 16-bit uniforms of one draw. Exact integer
/// arithmetic and one rounding.
double draw_noise(uint64_t bits) {
  const uint64_t sum =
      (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
  constexpr double kMean = 2.0 * 0xffff, kDeviation = 37837.23;  // 65536 / sqrt(3)
  return (static_cast<double>(sum) - kMean) / kDeviation;
}

/// Cells of a quarter of the image's smallest side, within what a small network's field of view can
/// take in.
int64_t default_scale(const Shape& spatial) {
  const int64_t largest = spatial.size() == 1 ? 64 : spatial.size() == 2 ? 32 : 24;
  const int64_t smallest_side = *std::min_element(spatial.begin(), spatial.end());
  return std::clamp<int64_t>(smallest_side / 16 * 4, 8, largest);
}

/// How a domain looks beside domain 0.
struct Appearance {
  explicit Appearance(int64_t domain) {
    if (domain == 0) return;
    const RandomKey key = RandomKey(static_cast<uint64_t>(domain)).with("appearance");
    contrast = 0.4 + 0.4 * key.uniform(0);
    brightness = (key.uniform(1) < 0.5 ? -1 : 1) * (0.5 + key.uniform(2));
    noise = 1 + key.uniform(3);
    texture = 0.4 * key.uniform(4);
    blur = static_cast<int64_t>(3 * key.uniform(5));
  }
  double contrast = 1;    // factor
  double brightness = 0;  // added
  double noise = 1;       // factor
  double texture = 0;     // more of it
  int64_t blur = 0;       // radius (blur.h)
};

/// What a tile looks like before noise, pixel by pixel: gain * bright + light in each channel.
struct Light {
  std::vector<double> bright;
  std::vector<double> light;
};

class Synthetic : public Dataset {
 public:
  Synthetic(const SyntheticOptions& options, const Shape& image_shape, uint64_t seed)
      : options_(options),
        image_shape_(image_shape),
        spatial_(image_shape.begin() + 1, image_shape.end()),
        appearance_(options.domain),
        key_(RandomKey(seed).with("synthetic")) {}

  int64_t size() const override { return options_.samples; }
  Shape image_shape() const override { return image_shape_; }
  int64_t num_classes() const override { return options_.classes; }
  bool labels_are_made_up() const override { return true; }
  bool per_pixel() const override { return options_.kind == SyntheticKind::kSegmentation; }
  void load_image(Sample sample, const Box& box, at::Tensor target) const override;
  void load_target(Sample sample, const Box& box, at::Tensor target) const override;

 private:
  RandomKey sample_key(int64_t sample) const;
  Scene scene(int64_t sample) const;
  Light light_of(const Scene& scene, const Box& tile) const;
  template <class T>
  void draw_tile(const Scene& scene, const Box& box, const Box& tile, T* data,
                 at::IntArrayRef strides) const;
  int64_t class_of(int64_t sample) const;

  const SyntheticOptions options_;
  const Shape image_shape_;
  const Shape spatial_;
  const Appearance appearance_;
  const RandomKey key_;
};

RandomKey Synthetic::sample_key(int64_t sample) const {
  TESSERA_CHECK(0 <= sample && sample < options_.samples, "sample {} of {}", sample,
                options_.samples);
  return key_.with(static_cast<uint64_t>(sample));
}

Scene Synthetic::scene(int64_t sample) const {
  SceneOptions scene{.scale = options_.scale,
                     .texture = std::min(1.0, options_.texture + appearance_.texture)};
  const RandomKey key = sample_key(sample);
  scene.weights = {0, 0, 0, 0};
  if (per_pixel()) {
    for (int64_t kind = 0; kind + 1 < options_.classes; ++kind) scene.weights[kind] = 1;
    scene.weights[static_cast<int>(ObjectKind::kArc)] = 0.4;
  } else {
    // One kind is favoured, so that classes are about as frequent as each other; the label is what
    // really came of it.
    const int64_t kinds = options_.classes;
    const int64_t favoured = static_cast<int64_t>(key.with("favoured").bits(0) % kinds);
    for (int64_t kind = 0; kind < kinds; ++kind) scene.weights[kind] = kind == favoured ? 2.0 : 0.7;
    scene.occupancy = 1;  // never an image without an object
  }
  return Scene(key, spatial_, scene);
}

Light Synthetic::light_of(const Scene& scene, const Box& tile) const {
  const Box around = grown_within(tile, spatial_, appearance_.blur);
  SceneTile drawn(scene, around);
  SceneRow row;
  Light result;
  for (std::vector<double>* plane : {&result.bright, &result.light})
    plane->reserve(static_cast<size_t>(around.volume()));
  const std::vector<int64_t> no_strides(tile.num_axes(), 0);
  for_each_row(around, no_strides, [&](const Position& at, int64_t) {
    drawn.draw(at, &row);
    for (size_t i = 0; i < row.brightness.size(); ++i) {
      result.bright.push_back((0.75 + 0.5 * row.illumination[i]) * row.brightness[i]);
      result.light.push_back(row.illumination[i] - 0.5);
    }
  });
  if (appearance_.blur == 0) return result;
  for (std::vector<double>* plane : {&result.bright, &result.light})
    *plane = blur(std::move(*plane), around, tile, spatial_, appearance_.blur);
  return result;
}

/// Box and tile in global coordinates; `data` is the box's first element.
template <class T>
void Synthetic::draw_tile(const Scene& scene, const Box& box, const Box& tile, T* data,
                          at::IntArrayRef strides) const {
  const Light drawn = light_of(scene, tile);
  const int last = tile.num_axes() - 1;
  const RandomKey noise_key = scene.key().with("noise");
  const double noise_level = options_.noise * appearance_.noise;
  const RandomKey gain_key = key_.with("gain");
  const std::vector<int64_t> no_strides(tile.num_axes(), 0);
  size_t row = 0;  // its first pixel in the tile
  for_each_row(tile, no_strides, [&](const Position& at, int64_t) {
    int64_t offset = 0;
    uint64_t pixel = 0;  // global, row major
    for (int axis = 0; axis <= last; ++axis) {
      offset += (at[axis] - box[axis + 1].begin) * strides[axis + 1];
      pixel = pixel * static_cast<uint64_t>(spatial_[axis]) + static_cast<uint64_t>(at[axis]);
    }
    for (int64_t channel = box[0].begin; channel < box[0].end; ++channel) {
      const RandomKey noise = noise_key.with(static_cast<uint64_t>(channel));
      const double gain = 1.0 - 0.3 * gain_key.uniform(static_cast<uint64_t>(channel));
      T* out = data + (channel - box[0].begin) * strides[0] + offset;
      for (int64_t i = 0; i < tile[last].size(); ++i) {
        const double clean = gain * drawn.bright[row + i] + drawn.light[row + i];
        out[i * strides[last + 1]] =
            static_cast<T>(appearance_.contrast * clean + appearance_.brightness +
                           noise_level * draw_noise(noise.bits(pixel + static_cast<uint64_t>(i))));
      }
    }
    row += static_cast<size_t>(tile[last].size());
  });
}

void Synthetic::load_image(Sample sample, const Box& box, at::Tensor target) const {
  check_request("synthetic image", image_shape_, box, target);
  if (box.empty()) return;
  Box region;
  for (int axis = 1; axis < box.num_axes(); ++axis) region.push_back(box[axis]);
  const Scene picture = scene(sample);
  write_real(target, [&](auto* data, at::IntArrayRef strides) {
    for_each_tile(region, options_.scale,
                  [&](const Box& tile) { draw_tile(picture, box, tile, data, strides); });
  });
}

int64_t Synthetic::class_of(int64_t sample) const {
  const auto counts = scene(sample).count_objects();
  return std::max_element(counts.begin(), counts.end()) - counts.begin();
}

void Synthetic::load_target(Sample sample, const Box& box, at::Tensor target) const {
  check_request("synthetic target", target_shape(), box, target);
  if (!per_pixel()) {
    target.fill_(class_of(sample));
    return;
  }
  if (box.empty()) return;
  const Scene picture = scene(sample);
  const int last = box.num_axes() - 1;
  write_labels(target, [&](int64_t* data, at::IntArrayRef strides) {
    for_each_tile(box, options_.scale, [&](const Box& tile) {
      SceneTile drawn(picture, tile);
      SceneRow row;
      int64_t origin = 0;
      for (int axis = 0; axis <= last; ++axis)
        origin += (tile[axis].begin - box[axis].begin) * strides[axis];
      for_each_row(tile, strides, [&](const Position& at, int64_t offset) {
        drawn.draw_kinds(at, &row);
        for (int64_t i = 0; i < tile[last].size(); ++i) {
          const bool arc = row.kind[i] == static_cast<int8_t>(ObjectKind::kArc);
          data[origin + offset + i * strides[last]] = arc ? 0 : row.kind[i] + 1;
        }
      });
    });
  });
}

}  // namespace

SyntheticOptions parse_synthetic(const std::string& text) {
  SyntheticOptions options;
  const KeyValues given("synthetic", text,
                        {{"kind", "segmentation"},
                         {"samples", fmt::format("{}", options.samples)},
                         {"classes", fmt::format("{}", options.classes)},
                         {"noise", fmt::format("{}", options.noise)},
                         {"texture", fmt::format("{}", options.texture)},
                         {"domain", fmt::format("{}", options.domain)},
                         {"size"},
                         {"scale", fmt::format("{}", options.scale)}});
  const std::string kind = given.choice("kind", {"segmentation", "classification"});
  if (kind == "classification") options.kind = SyntheticKind::kClassification;
  options.samples = given.integer("samples", 1, int64_t{1} << 40);
  options.classes = given.integer("classes", 2, 4);
  options.noise = given.real("noise", 0, 10);
  options.texture = given.real("texture", 0, 1);
  options.domain = given.integer("domain", 0, 1000);
  options.size = given.sizes("size");
  options.scale = given.integer("scale", 0, 4096);
  return options;
}

std::unique_ptr<Dataset> make_synthetic(const SyntheticOptions& options, const Shape& asked_for,
                                        uint64_t seed) {
  Shape image_shape = asked_for;
  if (!options.size.empty()) {
    image_shape.resize(1);
    image_shape.insert(image_shape.end(), options.size.begin(), options.size.end());
  }
  if (std::ranges::find(image_shape, 0) != image_shape.end())
    throw_error<InvalidInput>(
        "[synthetic] patches are cut from larger images; say how large: size=512x512");
  if (image_shape.size() < 2 || image_shape.size() > 4)
    throw_error<InvalidInput>(
        "[synthetic] an image is channels x 1 to 3 spatial sizes, got shape {}",
        to_string(image_shape));
  SyntheticOptions chosen = options;
  const Shape spatial(image_shape.begin() + 1, image_shape.end());
  if (chosen.scale == 0) chosen.scale = default_scale(spatial);
  if (chosen.scale < 8 || chosen.scale % 4 != 0)
    throw_error<InvalidInput>("[synthetic] scale must be a multiple of 4, 8 or more, got {}",
                              chosen.scale);
  for (int64_t size : spatial)
    if (size < chosen.scale)
      throw_error<InvalidInput>(
          "[synthetic] image {} is smaller than a cell of {} pixels, which holds one object; use "
          "sizes of {} or more, or a smaller scale (8 at least)",
          to_string(image_shape), chosen.scale, chosen.scale);
  return std::make_unique<Synthetic>(chosen, image_shape, seed);
}

}  // namespace tessera
