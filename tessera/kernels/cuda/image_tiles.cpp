#include "tessera/kernels/cuda/image_tiles.h"

#include "tessera/geometry/divide.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kEnoughBlocks = 1024;
constexpr int kLeastPixels = 4;  // of a thread

void share_out_pixels(ImageTiles& tiles, int pixels_of_thread) {
  tiles.tile_pixels = static_cast<int64_t>(tiles.pixel_threads) * pixels_of_thread;
  tiles.pixel_tiles = ceil_div(tiles.pixels.count, tiles.tile_pixels);
}

}  // namespace

ImageTiles share_out(const Pixels& pixels, int64_t rows, int channels, int width, int most_pixels) {
  ImageTiles tiles;
  tiles.pixels = pixels;
  tiles.rows = rows;
  tiles.channels = channels;
  tiles.width = width;
  const int groups = channels / width;
  tiles.channel_tiles = static_cast<int>(ceil_div(groups, kMostChannelThreads));
  tiles.channel_threads = static_cast<int>(ceil_div(groups, tiles.channel_tiles));
  tiles.pixel_threads = kThreads / tiles.channel_threads;
  int pixels_of_thread = most_pixels;
  share_out_pixels(tiles, pixels_of_thread);
  while (tiles.blocks() < kEnoughBlocks && pixels_of_thread > kLeastPixels)
    share_out_pixels(tiles, pixels_of_thread /= 2);
  int64_t rest = tiles.pixel_threads;
  for (int axis = kPixelAxes; axis-- > 0; rest /= pixels.sizes[axis])
    tiles.steps[axis] = static_cast<int>(rest % pixels.sizes[axis]);
  return tiles;
}

}  // namespace tessera::cuda
