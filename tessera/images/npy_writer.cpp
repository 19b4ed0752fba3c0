#include "tessera/images/formats.h"
#include "tessera/images/npy_header.h"
#include "tessera/images/shared_output.h"

namespace tessera {
namespace {

class NpyWriter final : public ArrayWriter {
 public:
  NpyWriter(const std::string& path, const ArrayInfo& info, const std::string& temporary)
      : ArrayWriter(path, info), layout_(layout_of(path, info)), output_(path, temporary, bytes()) {
    if (!temporary.empty()) return;
    const std::string header = format_npy_header(info.type, info.shape);
    output_.file().write_at(header.data(), header.size(), 0);
  }

  const std::string& temporary_name() const override { return output_.temporary_name(); }
  void write(const Box& box, const void* dense) override {
    write_flat_box(output_.file(), layout_, box, dense);
  }
  void flush() override { output_.file().sync(); }
  void finish_part(int, int) override {}
  void commit() override { output_.commit(); }

 private:
  static FlatLayout layout_of(const std::string& path, const ArrayInfo& info) {
    checked_array_bytes(info.shape, info.type, "npy", path);
    FlatLayout layout;
    layout.offset = std::ssize(format_npy_header(info.type, info.shape));
    layout.shape = info.shape;
    layout.type = info.type;
    return layout;
  }
  int64_t bytes() const {
    return layout_.offset + checked_array_bytes(shape(), type(), "npy", path());
  }

  const FlatLayout layout_;
  SharedOutput output_;
};

}  // namespace

std::unique_ptr<ArrayWriter> write_npy(const std::string& path, const ArrayInfo& info,
                                       const std::string& temporary) {
  return std::make_unique<NpyWriter>(path, info, temporary);
}

}  // namespace tessera
