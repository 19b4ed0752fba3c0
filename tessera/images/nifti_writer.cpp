#include "tessera/images/nifti_writer.h"

#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/images/box_runs.h"
#include "tessera/images/gzip_file.h"
#include "tessera/images/nifti_header.h"

namespace tessera {

std::unique_ptr<NiftiWriter> NiftiWriter::create(const std::string& path, const ArrayInfo& info) {
  std::unique_ptr<NiftiWriter> writer(new NiftiWriter(path, info));
  const int64_t bytes = checked_array_bytes(info.shape, info.type, "nifti", path);
  if (lower_case(path).ends_with(".gz")) writer->target_.emplace(path);
  writer->created_.emplace(writer->target_ ? path + ".flat" : path);
  writer->file().reserve(std::ssize(writer->header_) + bytes);
  writer->file().write_at(writer->header_.data(), writer->header_.size(), 0);
  return writer;
}

std::unique_ptr<NiftiWriter> NiftiWriter::join(const std::string& path,
                                               const std::string& temporary,
                                               const ArrayInfo& info) {
  std::unique_ptr<NiftiWriter> writer(new NiftiWriter(path, info));
  try {
    writer->joined_.emplace(OutputFile::join(temporary));
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>(
        "{}; the first rank has created this file, so write to a folder that all machines share",
        error.what());
  }
  return writer;
}

NiftiWriter::NiftiWriter(std::string path, const ArrayInfo& info)
    : path_(std::move(path)), info_(info), header_(format_nifti_header(info, path_)) {}

OutputFile& NiftiWriter::file() {
  TESSERA_CHECK(created_ || joined_, "'{}' is committed already", path_);
  return created_ ? created_->file() : *joined_;
}

const std::string& NiftiWriter::temporary_name() const {
  TESSERA_CHECK(created_, "'{}' is a guest's or committed already", path_);
  return created_->name();
}

void NiftiWriter::write(const Box& box, const void* from) {
  TESSERA_CHECK(box.num_axes() == std::ssize(info_.shape) && Box::whole(info_.shape).contains(box),
                "[nifti] box {} of {}", to_string(box), to_string(info_.shape));
  const int64_t bytes = bytes_of(info_.type);
  for_each_run(info_.shape, box, [&](int64_t index, int64_t offset, int64_t count) {
    file().write_at(static_cast<const char*>(from) + offset * bytes,
                    static_cast<size_t>(count * bytes), std::ssize(header_) + index * bytes);
  });
}

void NiftiWriter::flush() { file().sync(); }

void NiftiWriter::commit() {
  TESSERA_CHECK(created_, "'{}' is a guest's or committed already", path_);
  if (target_) {
    append_packed(InputFile(created_->name(), "nifti"), &target_->file());
    target_->commit();
    target_.reset();
  } else {
    created_->commit();
  }
  created_.reset();
}

}  // namespace tessera
