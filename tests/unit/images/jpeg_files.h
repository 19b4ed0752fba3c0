#pragma once
// JPEG files, encoded by libjpeg, for the tests of readers.

// clang-format off
#include <cstdio>
#include <cstdlib>
#include <jpeglib.h>
// clang-format on

#include <string>
#include <vector>

namespace tessera {

struct JpegKind {
  int width = 70, height = 45;
  int components = 3;  // 4: CMYK
  bool progressive = false;
};

/// What is encoded, as smooth as JPEG likes it.
inline int jpeg_sample(int64_t y, int64_t x, int c) {
  return static_cast<int>(40 + x + y * 2 + c * 10) % 256;
}

inline std::string jpeg_bytes(const JpegKind& kind) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = static_cast<JDIMENSION>(kind.width);
  jpeg.image_height = static_cast<JDIMENSION>(kind.height);
  jpeg.input_components = kind.components;
  jpeg.in_color_space = kind.components == 1   ? JCS_GRAYSCALE
                        : kind.components == 3 ? JCS_RGB
                                               : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 95, TRUE);
  if (kind.progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  for (int y = 0; y < kind.height; ++y) {
    std::vector<JSAMPLE> row;
    for (int x = 0; x < kind.width; ++x)
      for (int c = 0; c < kind.components; ++c)
        row.push_back(static_cast<JSAMPLE>(jpeg_sample(y, x, c)));
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&jpeg, &pointer, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string result(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return result;
}

}  // namespace tessera
