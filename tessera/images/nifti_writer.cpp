#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/images/formats.h"
#include "tessera/images/gzip_file.h"
#include "tessera/images/nifti_header.h"
#include "tessera/images/shared_output.h"

namespace tessera {
namespace {

/// Boxes go to a flat file. Where the name ends in .gz, that file lies beside the target until
/// commit() packs it, piece by piece.
class NiftiWriter final : public ArrayWriter {
 public:
  NiftiWriter(const std::string& path, const ArrayInfo& info, const std::string& temporary)
      : ArrayWriter(path, info),
        header_(format_nifti_header(info, path)),
        is_packed_(lower_case(path).ends_with(".gz")),
        output_(is_packed_ ? scratch_path(path) : path, temporary,
                std::ssize(header_) + checked_array_bytes(info.shape, info.type, "nifti", path)) {
    layout_.offset = std::ssize(header_);
    layout_.shape = info.shape;
    layout_.type = info.type;
    if (!temporary.empty()) return;
    if (is_packed_) target_.emplace(path);
    output_.file().write_at(header_.data(), header_.size(), 0);
  }

  const std::string& temporary_name() const override { return output_.temporary_name(); }
  void write(const Box& box, const void* dense) override {
    write_flat_box(output_.file(), layout_, box, dense);
  }
  void flush() override { output_.file().sync(); }
  void finish_part(int, int) override {}
  void commit() override {
    if (!is_packed_) return output_.commit();
    TESSERA_CHECK(target_, "'{}' is a guest's or committed already", path());
    append_packed(InputFile(output_.name(), "nifti"), &target_->file());
    target_->commit();
    target_.reset();
  }

 private:
  const std::string header_;
  const bool is_packed_;
  FlatLayout layout_;
  std::optional<TemporaryFile> target_;  // the creator's, of a packed file
  SharedOutput output_;
};

}  // namespace

std::unique_ptr<ArrayWriter> write_nifti(const std::string& path, const ArrayInfo& info,
                                         const std::string& temporary) {
  return std::make_unique<NiftiWriter>(path, info, temporary);
}

}  // namespace tessera
