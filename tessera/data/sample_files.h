#pragma once
// The files of one sample of a list: what their headers say, and boxes of the image and of the
// target that they hold together.
//
// Thread-safe; files are opened when they are asked for (open_files.h).

#include <set>

#include "tessera/data/file_dataset.h"
#include "tessera/data/file_options.h"
#include "tessera/data/open_files.h"
#include "tessera/data/sample_list.h"

namespace tessera {

/// Whether each file is a sample, or one pair of files has many.
enum class SetForm { kList, kPair };

struct SampleHeader {
  Shape image = {};                // channels x spatial
  ImageWish wish = {};             // how each file of the image is read
  std::set<PixelType> types = {};  // of these files
  ImageFrame frame = {};           // of the first of them
  Shape target = {};               // without axes where there is no file
  int64_t samples = 1;             // in the files
  bool numbers = false;            // targets are numbers, not labels
};

class SampleFiles {
 public:
  SampleFiles(SetForm form, const FileOptions& options, const DataWish& wish,
              bool targets_are_labels);

  /// Throws InvalidInput for what does not fit, with the file.
  SampleHeader header_of(const ListedSample& entry) const;

  /// Boxes of sample `index` of the files. Throw InvalidInput where a file no longer is what its
  /// header has said.
  void read_image(const ListedSample& entry, const SampleHeader& header, int64_t index,
                  const Box& box, at::Tensor target) const;
  /// Numbers of the target file as they are: int64 for labels.
  void read_target(const ListedSample& entry, const SampleHeader& header, int64_t index,
                   const Box& box, at::Tensor target) const;

 private:
  bool is_pair() const { return form_ == SetForm::kPair; }
  /// Of an image, and of each of its files.
  ImageWish whole_wish() const;
  ImageWish image_wish(const ListedSample& entry) const;
  TargetWish target_wish(const SampleHeader& header) const;
  void read_image_header(const ListedSample& entry, SampleHeader* header) const;
  bool are_numbers(const ArrayFile& targets) const;
  void read_target_header(const ListedSample& entry, SampleHeader* header) const;
  void check_mask_size(const ListedSample& entry, const SampleHeader& header) const;
  [[noreturn]] void refuse_targets(const ArrayFile& targets, const std::string& image,
                                   int64_t samples) const;

  const SetForm form_;
  const FileOptions options_;
  const DataWish wish_;
  const bool targets_are_labels_;
  const OpenFiles images_;
  const OpenFiles targets_;
};

}  // namespace tessera
