#pragma once
// The pictures of the synthetic data sets: objects on an uneven, textured background, in one to
// three dimensions, as a function of (key, global position). The plane is cut into cells; each may
// hold one object, drawn by counter-based random numbers, which reaches at most into the next cell.
// So any box is drawn alone, from the cells around it, with the bits that the whole would have.
//
// clang-format off
//   blob        ring        cored ring      arc          what a network must do
//    ▓▓▓▓        ▓▓▓▓         ▓▓▓▓           ▓▓▓▓        Inside, a ring looks like background, and a
//   ▓▓▓▓▓▓     ▓▓    ▓▓     ▓▓    ▓▓       ▓▓    ▓▓      core like a blob; a piece of its wall looks
//   ▓▓▓▓▓▓     ▓▓    ▓▓     ▓▓ ▓▓ ▓▓                     like an arc, or like the filaments of the
//    ▓▓▓▓        ▓▓▓▓         ▓▓▓▓                       texture. Only the surroundings tell.
// clang-format on
//
// Example:
//   Scene scene(RandomKey(seed).with(sample), {512, 512}, {.scale = 32});
//   SceneTile tile(scene, Box{{0, 32}, {0, 256}});
//   tile.draw(position, &row);

#include <array>
#include <optional>
#include <vector>

#include "tessera/data/tile_noise.h"

namespace tessera {

enum class ObjectKind { kBlob, kRing, kCoredRing, kArc };
constexpr int kNumObjectKinds = 4;

struct Object {
  ObjectKind kind = ObjectKind::kBlob;
  std::array<double, 3> centre{};
  std::array<double, 3> inverse_radius{};  // an ellipsoid along the axes
  std::array<double, 3> direction{};       // an arc's open side
  double wall = 0;                         // of rings, as a part of the radius
};

struct SceneOptions {
  int64_t scale = 32;      // edge of a cell in pixels; a multiple of 4
  double occupancy = 0.8;  // chance that a cell holds an object
  double texture = 0.4;    // part of the background where there are filaments
  std::array<double, kNumObjectKinds> weights{1, 1, 1, 1};  // relative chances of the kinds
};

class Scene {
 public:
  Scene(const RandomKey& key, const Shape& spatial, const SceneOptions& options);

  int num_axes() const { return static_cast<int>(spatial_.size()); }
  const SceneOptions& options() const { return options_; }
  const RandomKey& key() const { return key_; }
  /// The object of a cell, cells numbered per axis; those around the image count too.
  std::optional<Object> object_in(const Position& cell) const;
  /// How many objects of each kind have their centre inside the image. Costs O(cells).
  std::array<int64_t, kNumObjectKinds> count_objects() const;

 private:
  RandomKey key_;
  RandomKey object_key_;
  Shape spatial_;
  SceneOptions options_;
};

/// One row of a tile.
struct SceneRow {
  std::vector<int8_t> kind;          // of the object that a pixel belongs to, or -1
  std::vector<double> brightness;    // 1 on walls, blobs, cores and filaments, else 0
  std::vector<double> illumination;  // in [0, 1)
};

class SceneTile {
 public:
  /// `tile` is spatial and inside the image.
  SceneTile(const Scene& scene, const Box& tile);

  /// Only the kinds: what labels need.
  void draw_kinds(const Position& position, SceneRow* row);
  /// The whole row at `position` (its last coordinate is not read).
  void draw(const Position& position, SceneRow* row);

 private:
  void collect_objects(const Scene& scene);
  void paint(const Object& object, const Position& position, SceneRow* row) const;

  const Box tile_;
  std::vector<Object> objects_;  // that may reach into the tile; later ones cover earlier ones
  double texture_;
  TileNoise wobble_, filament_, zone_, illumination_;
  std::vector<double> wobble_row_, filament_row_, zone_row_;
};

/// Tiles of a good size to draw a box by: visit(tile) for parts that cover it. Long along rows, so
/// that what is drawn once per tile costs little per pixel.
template <class Visit>
void for_each_tile(const Box& box, int64_t scale, Visit visit) {
  const int last = box.num_axes() - 1;
  Box counts;
  for (int axis = 0; axis <= last; ++axis) {
    const int64_t edge = axis == last ? 8 * scale : scale;
    counts.push_back({box[axis].begin / edge, (box[axis].end + edge - 1) / edge});
  }
  const std::vector<int64_t> strides(counts.num_axes(), 0);
  for_each_row(counts, strides, [&](Position at, int64_t) {
    for (; at[last] < counts[last].end; ++at[last]) {
      Box tile;
      for (int axis = 0; axis <= last; ++axis) {
        const int64_t edge = axis == last ? 8 * scale : scale;
        tile.push_back(intersect(box[axis], {at[axis] * edge, (at[axis] + 1) * edge}));
      }
      visit(tile);
    }
  });
}

}  // namespace tessera
