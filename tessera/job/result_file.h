#pragma once
// A result that all ranks write together: rank 0 makes the file and gives it its name in the end,
// the others join in, and each writes its own boxes. This is the one place that knows how results
// become files; the ending of the name says the format.
//
// What cannot be written on one rank fails on all. In the middle of a prediction ranks do not meet,
// so a complaint waits for the end.

#include <memory>
#include <string>
#include <vector>

#include "tessera/comm/transport.h"
#include "tessera/data/dataset.h"
#include "tessera/images/array_writer.h"

namespace tessera {

/// Of the formats in which results can be written, such as ".npy".
std::vector<std::string> result_endings();

/// The letters of an array of space, with channels before it or not; empty for what has no space.
std::string result_axes(int num_spatial, bool has_channels);

/// The ending of a file for an array that belongs to this image: the image's own, if results of
/// such an array can be written so. Pictures with a lossy or no writer of their own have a near
/// relative: .png of JPEG, .tif of slides and rasters, .nii.gz of DICOM; all else is .npy. An empty
/// `image` is one without a file.
std::string result_ending(const std::string& image, const ArrayInfo& array);

class ResultFile {
 public:
  /// Collective over all ranks.
  ResultFile(const std::string& path, const ArrayInfo& array, Transport& transport);

  void write(const Box& box, const at::Tensor& tensor);
  /// Collective. All that was written can be read then, where it lies meanwhile.
  void settle();
  const std::string& place() const { return place_; }
  /// Collective. The file has its name then; one that is never finished leaves nothing.
  void finish();

 private:
  Transport& transport_;
  std::string place_;
  std::unique_ptr<ArrayWriter> writer_;
  std::string complaint_;
};

/// One sample's file, and where its image lies in the world.
struct SampleResult {
  std::string file;
  ImageFrame frame;
};

/// One kind of result for all samples of a data set: one .npy file with an axis for the samples, a
/// file of another format for a single sample, or a file for each sample in a folder.
class ResultFiles {
 public:
  /// `path` names a folder where it ends in a slash, else a file; empty: the result is not wanted.
  /// `array` is that of one sample. Collective over all ranks. Throws InvalidInput where a format
  /// has no place for all samples.
  ResultFiles(std::string path, ArrayInfo array, std::vector<SampleResult> samples,
              Transport& transport);

  bool wanted() const { return !path_.empty(); }
  /// Collective. Between these calls the samples [first, first + count) are written.
  void begin_samples(int64_t first, int64_t count);
  void end_samples();
  /// `box` has the sample as its first axis.
  void write(const Box& box, const at::Tensor& tensor);
  /// Collective.
  void finish();

 private:
  std::string path_;
  ArrayInfo array_;
  std::vector<SampleResult> samples_;
  Transport& transport_;
  std::unique_ptr<ResultFile> whole_;  // of all samples
  int64_t first_ = 0;
  std::vector<std::unique_ptr<ResultFile>> each_;  // of the samples that are under way
};

/// Whether results of this path are a folder with a file for each sample.
bool names_a_folder(const std::string& path);

}  // namespace tessera
