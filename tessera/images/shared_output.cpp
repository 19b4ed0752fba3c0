#include "tessera/images/shared_output.h"

#include "tessera/base/error.h"
#include "tessera/images/box_runs.h"

namespace tessera {

SharedOutput::SharedOutput(const std::string& path, const std::string& temporary, int64_t bytes,
                           Space space)
    : path_(path) {
  if (temporary.empty()) {
    created_.emplace(path);
    if (space == Space::kReserved)
      created_->file().reserve(bytes);
    else
      created_->file().lengthen(bytes);
    name_ = created_->name();
    return;
  }
  name_ = temporary;
  try {
    joined_.emplace(OutputFile::join(temporary));
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>(
        "{}; the first rank has created this file, so write to a folder that all machines share",
        error.what());
  }
}

const std::string& SharedOutput::temporary_name() const {
  TESSERA_CHECK(created_, "'{}' is a guest's or committed already", path_);
  return created_->name();
}

OutputFile& SharedOutput::file() {
  TESSERA_CHECK(created_ || joined_, "'{}' is committed already", path_);
  return created_ ? created_->file() : *joined_;
}

void SharedOutput::commit() {
  TESSERA_CHECK(created_, "'{}' is a guest's or committed already", path_);
  created_->commit();
  created_.reset();
}

std::string scratch_path(const std::string& path) { return path + ".pixels"; }

void write_flat_box(OutputFile& file, const FlatLayout& layout, const Box& box, const void* dense) {
  TESSERA_CHECK(
      box.num_axes() == std::ssize(layout.shape) && Box::whole(layout.shape).contains(box),
      "[file] box {} of {}", to_string(box), to_string(layout.shape));
  const int64_t bytes = bytes_of(layout.type);
  for_each_run(layout.shape, box, [&](int64_t index, int64_t offset, int64_t count) {
    file.write_at(static_cast<const char*>(dense) + offset * bytes,
                  static_cast<size_t>(count * bytes), layout.offset + index * bytes);
  });
}

}  // namespace tessera
