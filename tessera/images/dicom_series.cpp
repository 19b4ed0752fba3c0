#include "tessera/images/dicom_series.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/images/dicom_files.h"
#include "tessera/images/dicom_header.h"

namespace tessera {
namespace {

constexpr double kSamePlace = 0.1;  // of the mean distance

DicomVector cross(const DicomVector& a, const DicomVector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

double inner(const DicomVector& a, const DicomVector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

bool have_same_direction(const DicomHeader& a, const DicomHeader& b) {
  if (a.orientation.has_value() != b.orientation.has_value()) return false;
  if (!a.orientation) return true;
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      if (std::abs((*a.orientation)[i][j] - (*b.orientation)[i][j]) > kDirectionTolerance)
        return false;
  return true;
}

/// Refuses files that are not slices of one stack.
void check_alike(const std::vector<DicomHeader>& headers, const std::string& path) {
  const DicomHeader& first = headers.front();
  for (const DicomHeader& other : headers) {
    if (other.series != first.series)
      throw_error<InvalidInput>(
          "[dicom] {}: holds several series ({} and {}, such as {} and {}); give each a folder of "
          "its own",
          path, first.series, other.series, first.path, other.path);
    if (other.height != first.height || other.width != first.width ||
        other.channels != first.channels || other.stored != first.stored)
      throw_error<InvalidInput>(
          "[dicom] {}: slices differ: {} has {}x{}x{} of {}, {} has {}x{}x{} of {}", path,
          first.path, first.height, first.width, first.channels, name_of(first.stored), other.path,
          other.height, other.width, other.channels, name_of(other.stored));
    if (!have_same_direction(first, other) || other.spacing != first.spacing)
      throw_error<InvalidInput>(
          "[dicom] {}: {} and {} have different orientations or sizes of pixels; a stack needs "
          "equal ones",
          path, first.path, other.path);
  }
}

struct PlacedSlice {
  DicomSlice slice;
  DicomVector position{};
  double height = 0;  // along the normal
};

/// All frames of all files; `placed` says whether they have positions.
std::vector<PlacedSlice> frames_of(const std::vector<DicomHeader>& headers, bool* placed) {
  std::vector<PlacedSlice> frames;
  *placed = true;
  for (const DicomHeader& header : headers) {
    *placed = *placed && header.orientation && std::ssize(header.positions) == header.num_frames;
    for (int64_t frame = 0; frame < header.num_frames; ++frame) {
      const size_t described = header.scales.size() > 1 ? static_cast<size_t>(frame) : 0;
      PlacedSlice slice{.slice = {header.path, frame, header.num_frames, header.scales[described]}};
      if (*placed) {
        const auto& [row, column] = *header.orientation;
        slice.position = header.positions[static_cast<size_t>(frame)];
        slice.height = inner(slice.position, cross(row, column));
      }
      frames.push_back(std::move(slice));
    }
  }
  return frames;
}

[[noreturn]] void refuse_gap(const std::vector<PlacedSlice>& frames, size_t i, double mean,
                             const std::string& path, const char* why) {
  throw_error<InvalidInput>(
      "[dicom] {}: slices {} and {} ({} and {}) are {:.4g} mm apart, {:.4g} mm on average; {}",
      path, i - 1, i, frames[i - 1].slice.path, frames[i].slice.path,
      frames[i].height - frames[i - 1].height, mean, why);
}

/// Positions are rounded to a few digits, and scanners are not perfect.
double gap_tolerance(double mean) { return std::min(std::max(0.02 * mean, 0.01), 0.3 * mean); }

/// Refuses slices, in their order, that are not at equal distances.
void check_gaps(const std::vector<PlacedSlice>& frames, const std::string& path) {
  const double mean =
      (frames.back().height - frames.front().height) / static_cast<double>(frames.size() - 1);
  const auto gap_before = [&](size_t i) { return frames[i].height - frames[i - 1].height; };
  for (size_t i = 1; i < frames.size(); ++i)
    if (!(gap_before(i) > kSamePlace * mean))
      refuse_gap(frames, i, mean, path,
                 "two slices at one position: give each time point or stack a folder of its own");
  for (size_t i = 1; i < frames.size(); ++i)
    if (std::abs(gap_before(i) - mean) > gap_tolerance(mean))
      refuse_gap(frames, i, mean, path, "a slice is missing, or there are several stacks");
}

/// From the directions in the patient (left, posterior, superior) to NIfTI's (right, anterior,
/// superior).
std::array<double, 12> affine_of(const DicomVector& x, const DicomVector& y, const DicomVector& z,
                                 const DicomVector& origin) {
  std::array<double, 12> rows{};
  for (size_t i = 0; i < 3; ++i) {
    const double sign = i < 2 ? -1 : 1;
    rows[4 * i] = sign * x[i];
    rows[4 * i + 1] = sign * y[i];
    rows[4 * i + 2] = sign * z[i];
    rows[4 * i + 3] = sign * origin[i];
  }
  return rows;
}

DicomVector times(const DicomVector& vector, double factor) {
  return {vector[0] * factor, vector[1] * factor, vector[2] * factor};
}

/// Where the slices lie, as far as the files say it. With one slice or frames without positions of
/// their own, the third direction is the normal.
ImageFrame dicom_frame(const DicomHeader& header, const std::vector<PlacedSlice>& frames,
                       bool placed) {
  ImageFrame frame;
  if (header.spacing.size() != 2 || !(header.spacing[0] > 0) || !(header.spacing[1] > 0))
    return frame;
  double distance = header.frame_distance;
  const bool stack = frames.size() > 1;
  DicomVector step{};
  if (placed && stack) {
    const DicomVector &begin = frames.front().position, &end = frames.back().position;
    for (size_t i = 0; i < 3; ++i)
      step[i] = (end[i] - begin[i]) / static_cast<double>(frames.size() - 1);
    distance = std::hypot(step[0], step[1], step[2]);
  } else if (header.orientation) {
    step = times(cross((*header.orientation)[0], (*header.orientation)[1]),
                 distance > 0 ? distance : 1);
  }
  if (stack && !(distance > 0)) return frame;
  if (stack) frame.spacing.push_back(distance);
  frame.spacing.insert(frame.spacing.end(), header.spacing.begin(), header.spacing.end());
  if (header.orientation && !header.positions.empty())
    frame.affine = affine_of(times((*header.orientation)[0], header.spacing[1]),
                             times((*header.orientation)[1], header.spacing[0]), step,
                             placed ? frames.front().position : header.positions.front());
  return frame;
}

}  // namespace

DicomSeries read_dicom_series(const std::string& path) {
  std::vector<DicomHeader> headers;
  for (const std::string& file : dicom_files_of(path)) headers.push_back(read_dicom_header(file));
  check_alike(headers, path);
  bool placed = false;
  std::vector<PlacedSlice> frames = frames_of(headers, &placed);
  if (!placed && headers.size() > 1)
    throw_error<InvalidInput>(
        "[dicom] {}: its slices do not say where they lie (Image Position, Image Orientation), so "
        "their order is not known; store them as one file, or as NIfTI",
        path);
  if (placed && frames.size() > 1) {
    std::ranges::stable_sort(frames, {}, &PlacedSlice::height);
    check_gaps(frames, path);
  }
  const DicomHeader& first = headers.front();
  DicomSeries series{.height = first.height,
                     .width = first.width,
                     .channels = first.channels,
                     .stored = first.stored,
                     .frame = dicom_frame(first, frames, placed)};
  for (PlacedSlice& frame : frames) series.slices.push_back(std::move(frame.slice));
  return series;
}

}  // namespace tessera
