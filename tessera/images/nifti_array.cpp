#include <algorithm>
#include <memory>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/images/formats.h"
#include "tessera/images/gzip_stream.h"
#include "tessera/images/nifti_header.h"
#include "tessera/images/scaled_numbers.h"
#include "tessera/images/unpacked_copy.h"

namespace tessera {
namespace {

std::string beginning_of(const InputFile& file) {
  std::string bytes(std::min<size_t>(file.size(), kMaxNiftiHeaderBytes), '\0');
  file.read_at(0, bytes.data(), bytes.size());
  return bytes;
}

std::string unpacked_beginning_of(const InputFile& file) {
  GzipStream stream(file, "nifti");
  std::string bytes(kMaxNiftiHeaderBytes, '\0');
  bytes.resize(stream.read(bytes.data(), bytes.size()));
  return bytes;
}

class NiftiArrayFile final : public ArrayFile {
 public:
  NiftiArrayFile(const std::string& path, InputFile file, NiftiHeader header)
      : ArrayFile(path),
        scale_(header.scale),
        scaled_(header.scale != LinearScale{}),
        array_(std::move(file), header.layout) {
    info_.shape = header.layout.shape;
    info_.axes = header.axes;
    info_.type = scaled_ ? scaled_type(header.layout.type) : header.layout.type;
    info_.frame = header.frame;
  }

  void read(const Box& box, void* to) const override {
    if (!scaled_) return array_.read(box, to);
    const PixelType stored = array_.layout().type;
    const int64_t count = box.volume();
    std::vector<char> numbers(static_cast<size_t>(count * bytes_of(stored)));
    array_.read(box, numbers.data());
    scale_numbers(numbers.data(), stored, count, scale_, to);
  }

 private:
  const LinearScale scale_;
  const bool scaled_;
  const FlatArray array_;
};

}  // namespace

std::unique_ptr<ArrayFile> open_nifti(const std::string& path, const ArrayOptions&) {
  InputFile file(path, "nifti");
  if (lower_case(path).ends_with(".gz")) {
    NiftiHeader header = parse_nifti_header(unpacked_beginning_of(file), path);
    InputFile plain = open_unpacked(file, static_cast<uint64_t>(header.end()), "nifti");
    return std::make_unique<NiftiArrayFile>(path, std::move(plain), std::move(header));
  }
  NiftiHeader header = parse_nifti_header(beginning_of(file), path);
  if (static_cast<uint64_t>(header.end()) > file.size())
    throw_error<InvalidInput>(
        "[nifti] {}: shape {} of {} needs {} bytes, the file has {}; it is truncated", path,
        to_string(header.layout.shape), name_of(header.layout.type), header.end(), file.size());
  return std::make_unique<NiftiArrayFile>(path, std::move(file), std::move(header));
}

}  // namespace tessera
