#include <algorithm>

#include "tessera/images/formats.h"
#include "tessera/images/npy_header.h"

namespace tessera {
namespace {

class NpyArrayFile final : public ArrayFile {
 public:
  explicit NpyArrayFile(const std::string& path) : ArrayFile(path), array_(opened(path)) {
    info_.shape = array_.layout().shape;
    info_.type = array_.layout().type;
  }
  void read(const Box& box, void* to) const override { array_.read(box, to); }

 private:
  static FlatArray opened(const std::string& path) {
    InputFile file(path, "npy");
    const auto file_bytes = static_cast<int64_t>(file.size());
    std::string beginning(static_cast<size_t>(std::min(file_bytes, kMaxNpyHeaderBytes)), '\0');
    file.read_at(0, beginning.data(), beginning.size());
    FlatLayout layout = parse_npy_header(beginning.data(), std::ssize(beginning), file_bytes, path);
    return {std::move(file), std::move(layout)};
  }

  const FlatArray array_;
};

}  // namespace

std::unique_ptr<ArrayFile> open_npy(const std::string& path, const ArrayOptions&) {
  return std::make_unique<NpyArrayFile>(path);
}

}  // namespace tessera
