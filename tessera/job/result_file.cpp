#include "tessera/job/result_file.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/comm/together.h"
#include "tessera/data/array_sink.h"
#include "tessera/files/folder.h"
#include "tessera/images/open_array.h"

namespace tessera {

std::vector<std::string> result_endings() { return written_endings(); }

std::string result_axes(int num_spatial, bool has_channels) {
  if (num_spatial == 0) return "";
  return (has_channels ? "C" : "") +
         std::string("ZYX").substr(static_cast<size_t>(3 - num_spatial));
}

std::string result_ending(const std::string& image, const ArrayInfo& array) {
  const std::string own = image.empty() ? "" : image_ending(image);
  if (own.empty() || !array.axes.ends_with("YX")) return ".npy";
  const auto is_one_of = [&](const auto&... endings) { return ((own == endings) || ...); };
  if (is_one_of(".png", ".jpg", ".jpeg"))
    return array.axes == "YX" && array.type == PixelType::kUint8 ? ".png" : ".tif";
  const std::vector<std::string> written = written_endings();
  if (std::ranges::find(written, own) != written.end()) return own;
  if (is_one_of(".dcm")) return ".nii.gz";
  // Files that do not say what their axes are, and where they lie.
  if (is_one_of(".raw", ".h5", ".hdf5", ".hdf")) return ".npy";
  return ".tif";
}

ResultFile::ResultFile(const std::string& path, const ArrayInfo& array, Transport& transport)
    : transport_(transport) {
  const bool is_first = transport.rank() == 0;
  do_together(transport, [&] {
    if (is_first) writer_ = create_array_writer(path, array);
  });
  place_ = broadcast_text(transport, is_first ? writer_->temporary_name() : "");
  do_together(transport, [&] {
    if (is_first) return;
    try {
      writer_ = join_array_writer(path, place_, array);
    } catch (const InvalidInput& error) {
      throw_error<InvalidInput>("{}; rank 0 has made it, and all workers must see its folder",
                                error.what());
    }
  });
}

void ResultFile::write(const Box& box, const at::Tensor& tensor) {
  if (!complaint_.empty()) return;
  try {
    write_tensor(*writer_, box, tensor);
  } catch (const InvalidInput& error) {
    complaint_ = error.what();
  }
}

void ResultFile::settle() {
  fail_together(transport_, complaint_);
  do_together(transport_, [&] { writer_->flush(); });
}

void ResultFile::finish() {
  settle();
  do_together(transport_, [&] { writer_->finish_part(transport_.rank(), transport_.size()); });
  do_together(transport_, [&] {
    if (transport_.rank() == 0) writer_->commit();
  });
}

ResultFiles::ResultFiles(std::string path, ArrayInfo array, std::vector<SampleResult> samples,
                         Transport& transport)
    : path_(std::move(path)),
      array_(std::move(array)),
      samples_(std::move(samples)),
      transport_(transport) {
  if (!wanted()) return;
  if (names_a_folder(path_)) {
    do_together(transport_, [&] {
      if (transport_.rank() == 0) make_folder(path_);
    });
    return;
  }
  const auto count = std::ssize(samples_);
  if (!lower_case(path_).ends_with(".npy")) {
    do_together(transport_, [&] {
      if (count != 1)
        throw_error<InvalidInput>(
            "[--output] {} holds one image, and there are {}; give FOLDER/ for a file each, or "
            ".npy for all of them in one",
            path_, counted(count, "sample"));
    });
    return;
  }
  ArrayInfo all = array_;
  all.shape.insert(all.shape.begin(), count);
  all.axes.clear();
  whole_ = std::make_unique<ResultFile>(path_, all, transport_);
}

void ResultFiles::begin_samples(int64_t first, int64_t count) {
  if (!wanted() || whole_) return;
  first_ = first;
  for (int64_t sample = first; sample < first + count; ++sample) {
    ArrayInfo array = array_;
    array.frame = samples_[sample].frame;
    each_.push_back(std::make_unique<ResultFile>(samples_[sample].file, array, transport_));
  }
}

void ResultFiles::write(const Box& box, const at::Tensor& tensor) {
  if (whole_) return whole_->write(box, tensor);
  for (int64_t sample = box[0].begin; sample < box[0].end; ++sample)
    each_[sample - first_]->write(without_axis(box, 0), tensor.select(0, sample - box[0].begin));
}

void ResultFiles::end_samples() {
  for (const auto& file : each_) file->finish();
  each_.clear();
}

void ResultFiles::finish() {
  if (whole_) whole_->finish();
}

bool names_a_folder(const std::string& path) { return path.ends_with('/'); }

}  // namespace tessera
