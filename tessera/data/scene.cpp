#include "tessera/data/scene.h"

#include <cmath>

namespace tessera {
namespace {

// Objects keep to their cell and a fifth of the next: see Scene::object_in.
constexpr double kLargestRadius = 0.42;
// The boundary of an object is where its distance, times a factor within 1 +- kWobble / 2, is 1.
constexpr double kWobble = 0.16;
constexpr double kReach = 1.0 / (1.0 - kWobble / 2);
constexpr double kFilamentWidth = 0.05;
constexpr double kCore = 0.45;

ObjectKind draw_kind(const std::array<double, kNumObjectKinds>& weights, double uniform) {
  double total = 0;
  for (double weight : weights) total += weight;
  double at = uniform * total;
  int last = 0;
  for (int kind = 0; kind < kNumObjectKinds; ++kind) {
    if (weights[kind] <= 0) continue;
    last = kind;
    at -= weights[kind];
    if (at < 0) break;
  }
  return static_cast<ObjectKind>(last);
}

}  // namespace

Scene::Scene(const RandomKey& key, const Shape& spatial, const SceneOptions& options)
    : key_(key), object_key_(key.with("object")), spatial_(spatial), options_(options) {
  TESSERA_CHECK(num_axes() >= 1 && num_axes() <= 3, "{} spatial axes", num_axes());
  TESSERA_CHECK(options.scale >= 4 && options.scale % 4 == 0, "scale {}", options.scale);
}

std::optional<Object> Scene::object_in(const Position& cell) const {
  RandomKey key = object_key_;
  for (int axis = 0; axis < num_axes(); ++axis) key = key.with(static_cast<uint64_t>(cell[axis]));
  if (key.uniform(0) >= options_.occupancy) return std::nullopt;
  Object object;
  object.kind = draw_kind(options_.weights, key.uniform(1));
  const double scale = static_cast<double>(options_.scale);
  const double radius = scale * (0.26 + (kLargestRadius - 0.26) * key.uniform(2));
  // Two pixels at least where cells are small, but never so thick that nothing is left inside.
  object.wall = std::min(std::max(0.24, 2.0 / radius), 0.5);
  double length = 0;
  for (int axis = 0; axis < num_axes(); ++axis) {
    const uint64_t draw = 3 + 3 * static_cast<uint64_t>(axis);
    const double offset = 0.3 + 0.4 * key.uniform(draw);
    object.centre[axis] = (static_cast<double>(cell[axis]) + offset) * scale;
    object.inverse_radius[axis] = 1.0 / (radius * (0.75 + 0.25 * key.uniform(draw + 1)));
    object.direction[axis] = key.uniform(draw + 2) - 0.5;
    length += object.direction[axis] * object.direction[axis];
  }
  if (length == 0) object.direction[0] = 1;
  return object;
}

std::array<int64_t, kNumObjectKinds> Scene::count_objects() const {
  std::array<int64_t, kNumObjectKinds> counts{};
  Box cells;
  for (int64_t size : spatial_) cells.push_back({0, (size + options_.scale - 1) / options_.scale});
  const int last = num_axes() - 1;
  const std::vector<int64_t> strides(spatial_.size(), 0);
  for_each_row(cells, strides, [&](Position cell, int64_t) {
    for (; cell[last] < cells[last].end; ++cell[last]) {
      const std::optional<Object> object = object_in(cell);
      bool inside = object.has_value();
      for (int axis = 0; inside && axis <= last; ++axis)
        inside = object->centre[axis] < static_cast<double>(spatial_[axis]);
      if (inside) ++counts[static_cast<int>(object->kind)];
    }
  });
  return counts;
}

SceneTile::SceneTile(const Scene& scene, const Box& tile)
    : tile_(tile),
      texture_(scene.options().texture),
      wobble_(scene.key().with("wobble"), scene.options().scale / 2, tile),
      filament_(scene.key().with("filament"), scene.options().scale / 4, tile),
      zone_(scene.key().with("zone"), scene.options().scale, tile),
      illumination_(scene.key().with("illumination"), 4 * scene.options().scale, tile) {
  collect_objects(scene);
}

void SceneTile::collect_objects(const Scene& scene) {
  const int64_t scale = scene.options().scale;
  const int last = tile_.num_axes() - 1;
  Box cells;
  for (int axis = 0; axis <= last; ++axis)
    cells.push_back({tile_[axis].begin / scale - 1, (tile_[axis].end - 1) / scale + 2});
  const std::vector<int64_t> strides(cells.num_axes(), 0);
  // In the order of cells, which every tile shares: where objects overlap, the later one is seen.
  for_each_row(cells, strides, [&](Position cell, int64_t) {
    for (; cell[last] < cells[last].end; ++cell[last])
      if (const std::optional<Object> object = scene.object_in(cell)) objects_.push_back(*object);
  });
}

void SceneTile::draw_kinds(const Position& position, SceneRow* row) {
  const size_t length = static_cast<size_t>(tile_[tile_.num_axes() - 1].size());
  row->kind.assign(length, -1);
  row->brightness.assign(length, -1.0);  // not decided by an object
  wobble_.row(position, &wobble_row_);
  for (const Object& object : objects_) paint(object, position, row);
}

void SceneTile::paint(const Object& object, const Position& position, SceneRow* row) const {
  const int last = tile_.num_axes() - 1;
  double outer_square = 0, outer_side = 0;
  for (int axis = 0; axis < last; ++axis) {
    const double away = static_cast<double>(position[axis]) - object.centre[axis];
    const double distance = away * object.inverse_radius[axis];
    outer_square += distance * distance;
    outer_side += away * object.direction[axis];
  }
  if (outer_square > kReach * kReach) return;
  const double reach = kReach / object.inverse_radius[last] + 1;
  const Range along =
      intersect(tile_[last], {static_cast<int64_t>(std::floor(object.centre[last] - reach)),
                              static_cast<int64_t>(std::ceil(object.centre[last] + reach)) + 1});
  for (int64_t x = along.begin; x < along.end; ++x) {
    const int64_t i = x - tile_[last].begin;
    const double away = static_cast<double>(x) - object.centre[last];
    const double distance = away * object.inverse_radius[last];
    const double bend = 1.0 + kWobble * (wobble_row_[i] - 0.5);
    const double depth = std::sqrt(outer_square + distance * distance) * bend;
    if (depth >= 1.0) continue;
    const bool wall = depth > 1.0 - object.wall;
    if (object.kind == ObjectKind::kArc &&
        !(wall && outer_side + away * object.direction[last] > 0))
      continue;
    const bool bright = wall || object.kind == ObjectKind::kBlob ||
                        (object.kind == ObjectKind::kCoredRing && depth < kCore);
    row->kind[i] = static_cast<int8_t>(object.kind);
    row->brightness[i] = bright ? 1.0 : -1.0;  // where dark, the background shows through
  }
}

void SceneTile::draw(const Position& position, SceneRow* row) {
  draw_kinds(position, row);
  illumination_.row(position, &row->illumination);
  filament_.row(position, &filament_row_);
  zone_.row(position, &zone_row_);
  for (size_t i = 0; i < row->brightness.size(); ++i) {
    if (row->brightness[i] > 0) continue;
    const bool filament =
        zone_row_[i] < texture_ && std::abs(filament_row_[i] - 0.5) < kFilamentWidth;
    row->brightness[i] = filament ? 1.0 : 0.0;
  }
}

}  // namespace tessera
