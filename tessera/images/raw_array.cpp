#include "tessera/base/error.h"
#include "tessera/images/flat_array.h"
#include "tessera/images/formats.h"

namespace tessera {
namespace {

class RawArrayFile final : public ArrayFile {
 public:
  RawArrayFile(const std::string& path, const ArrayOptions& options)
      : ArrayFile(path), array_(opened(path, options)) {
    info_.shape = array_.layout().shape;
    info_.type = array_.layout().type;
  }
  void read(const Box& box, void* to) const override { array_.read(box, to); }

 private:
  static FlatArray opened(const std::string& path, const ArrayOptions& options) {
    InputFile file(path, "raw");
    if (options.raw_shape.empty() || !options.raw_type)
      throw_error<InvalidInput>(
          "[raw] {}: the file does not say what it holds; give shape and type, such as "
          "shape=512x512,type=uint16",
          path);
    const int64_t bytes = checked_array_bytes(options.raw_shape, *options.raw_type, "raw", path);
    if (bytes != static_cast<int64_t>(file.size()))
      throw_error<InvalidInput>("[raw] {}: {} of {} have {} bytes, the file has {}", path,
                                to_string(options.raw_shape), name_of(*options.raw_type), bytes,
                                file.size());
    FlatLayout layout;
    layout.shape = options.raw_shape;
    layout.type = *options.raw_type;
    return {std::move(file), std::move(layout)};
  }

  const FlatArray array_;
};

}  // namespace

std::unique_ptr<ArrayFile> open_raw(const std::string& path, const ArrayOptions& options) {
  return std::make_unique<RawArrayFile>(path, options);
}

}  // namespace tessera
