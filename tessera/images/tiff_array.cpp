#include <tiffio.h>

#include <algorithm>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/images/box_runs.h"
#include "tessera/images/element_of.h"
#include "tessera/images/flat_array.h"
#include "tessera/images/formats.h"
#include "tessera/images/image_levels.h"
#include "tessera/images/tiff_blocks.h"
#include "tessera/images/tiff_frame.h"
#include "tessera/images/tiff_image.h"

namespace tessera {
namespace {

constexpr size_t kMaxPages = 1 << 20;
constexpr size_t kMaxLevels = 64;

/// An image and its reduced forms, finest first.
using TiffLevels = std::vector<TiffImage>;

/// Offsets of the directories that hang on the one where the handle is.
std::vector<uint64_t> children_of(TiffHandle& handle) {
  uint16_t count = 0;
  const uint64_t* offsets = nullptr;
  if (TIFFGetField(handle.get(), TIFFTAG_SUBIFD, &count, &offsets) != 1 || offsets == nullptr)
    return {};
  return {offsets, offsets + std::min<size_t>(count, kMaxLevels)};
}

uint32_t kind_of_subfile(TiffHandle& handle) {
  uint32_t kind = 0;
  TIFFGetFieldDefaulted(handle.get(), TIFFTAG_SUBFILETYPE, &kind);
  return kind;
}

/// A reduced form of the image of a page, unless it is of another kind (a thumbnail in grey).
void add_level(TiffHandle& handle, TiffLevels* levels) {
  const TiffImage image = describe_tiff_image(handle);
  if (image.same_pixels(levels->front()) && image.width <= levels->back().width &&
      image.height <= levels->back().height && levels->size() < kMaxLevels)
    levels->push_back(image);
}

/// All pages. What is reduced belongs to the page before it; masks of transparency are no pages.
std::vector<TiffLevels> pages_of(TiffHandle& handle) {
  std::vector<TiffLevels> pages;
  std::vector<std::vector<uint64_t>> children;
  while (handle.next_directory()) {
    const uint32_t kind = kind_of_subfile(handle);
    if ((kind & FILETYPE_MASK) != 0) continue;
    if ((kind & FILETYPE_REDUCEDIMAGE) != 0 && !pages.empty()) {
      add_level(handle, &pages.back());
      continue;
    }
    if (pages.size() == kMaxPages) handle.refuse(fmt::format("more than {} pages", kMaxPages));
    pages.push_back({describe_tiff_image(handle)});
    children.push_back(children_of(handle));
  }
  if (pages.empty()) handle.refuse("has no image");
  for (size_t page = 0; page < pages.size(); ++page)
    for (const uint64_t child : children[page]) {
      handle.go_to(child);
      if ((kind_of_subfile(handle) & FILETYPE_REDUCEDIMAGE) != 0) add_level(handle, &pages[page]);
    }
  return pages;
}

std::string described(const TiffImage& image) {
  return fmt::format("{} x {} x {} of {}", image.height, image.width, image.samples,
                     name_of(image.type));
}

void check_alike(const std::vector<TiffLevels>& pages, size_t level, const std::string& path) {
  for (size_t page = 0; page < pages.size(); ++page) {
    const TiffImage& first = pages[0][level];
    if (pages[page].size() <= level)
      throw_error<InvalidInput>("[tiff] {}: page {} has {}, page 0 has {}", path, page,
                                counted(std::ssize(pages[page]), "level"), pages[0].size());
    const TiffImage& image = pages[page][level];
    if (!image.same_pixels(first) || !image.same_size(first))
      throw_error<InvalidInput>(
          "[tiff] {}: page {} is {}, page 0 is {}; pages must be alike: write them to files of "
          "their own",
          path, page, described(image), described(first));
  }
}

class TiffArrayFile final : public ArrayFile {
 public:
  TiffArrayFile(const std::string& path, const ArrayOptions& options)
      : ArrayFile(path), pool_(InputFile(path, "tiff")) {
    const TiffPool::Loan handle = pool_.borrow();
    const std::vector<TiffLevels> pages = pages_of(*handle);
    go_to_image(*handle, pages[0][0]);
    take_axes(axes_of_pages(*handle, std::ssize(pages)), pages[0][0]);
    const bool has_depth = info_.axes.find('Z') != std::string::npos;
    info_.frame = tiff_frame(*handle, has_depth);
    take_level(pages, options);
    for (const TiffLevels& levels : pages) images_.push_back(levels[level_]);
    take_shape();
  }

  void read(const Box& box, void* to) const override {
    TESSERA_CHECK(box.num_axes() == std::ssize(shape()) && Box::whole(shape()).contains(box),
                  "[tiff] box {} of {}", to_string(box), to_string(shape()));
    if (box.empty()) return;
    TiffTarget target;
    const bool planar = images_[0].planar;
    int axis = num_page_axes_;
    target.samples = {0, images_[0].samples};
    if (planar) target.samples = box[axis++];
    target.rows = box[axis++];
    target.columns = box[axis++];
    if (!planar && axis < box.num_axes()) target.samples = box[axis];
    target.planar = planar;
    if (info_.frame.no_data) target.left_out = element_of(type(), *info_.frame.no_data);
    target.data = static_cast<char*>(to);
    const TiffPool::Loan handle = pool_.borrow();
    for_each_page(box, [&](int64_t page) {
      read_tiff_image(*handle, pool_.file(), images_[static_cast<size_t>(page)], target);
      target.data += target.bytes(type());
    });
  }

 private:
  void take_axes(const std::vector<std::pair<char, int64_t>>& page_axes, const TiffImage& image) {
    const bool two_channel_axes =
        image.samples > 1 && std::ranges::find(page_axes, 'C', [](const auto& axis) {
                               return axis.first;
                             }) != page_axes.end();
    if (two_channel_axes) {
      int64_t num_pages = 1;
      for (const auto& axis : page_axes) num_pages *= axis.second;
      info_.axes = "P";
      info_.shape = {num_pages};
    } else {
      for (const auto& [letter, size] : page_axes) {
        info_.axes += letter;
        info_.shape.push_back(size);
      }
    }
    num_page_axes_ = static_cast<int>(info_.axes.size());
    info_.type = image.type;
    info_.axes += image.planar ? "CYX" : image.samples > 1 ? "YXC" : "YX";
  }

  void take_level(const std::vector<TiffLevels>& pages, const ArrayOptions& options) {
    const TiffImage& finest = pages[0][0];
    std::vector<double> downsamples;
    for (const TiffImage& level : pages[0])
      downsamples.push_back(static_cast<double>(finest.width) / static_cast<double>(level.width));
    std::optional<double> microns;
    if (!info_.frame.spacing.empty()) microns = info_.frame.spacing.back() * 1000;
    level_ = static_cast<size_t>(choose_level(options, downsamples, microns, "tiff", path()));
    check_alike(pages, level_, path());
    const TiffImage& chosen = pages[0][level_];
    const double along_x = downsamples[level_],
                 along_y = static_cast<double>(finest.height) / static_cast<double>(chosen.height);
    std::vector<double>& spacing = info_.frame.spacing;
    if (!spacing.empty()) {
      spacing[spacing.size() - 1] *= along_x;
      spacing[spacing.size() - 2] *= along_y;
    }
    if (info_.frame.geotransform)
      for (const int at : {1, 2, 4, 5})
        (*info_.frame.geotransform)[at] *= at % 3 == 1 ? along_x : along_y;
  }

  void take_shape() {
    const TiffImage& image = images_[0];
    if (image.planar) info_.shape.push_back(image.samples);
    info_.shape.push_back(image.height);
    info_.shape.push_back(image.width);
    if (!image.planar && image.samples > 1) info_.shape.push_back(image.samples);
    checked_array_bytes(info_.shape, info_.type, "tiff", path());
    if (image.access == TiffAccess::kFlat) return;
    info_.block = Shape(info_.shape.size(), 1);
    const auto rows = static_cast<size_t>(num_page_axes_ + (image.planar ? 1 : 0));
    info_.block[rows] = image.access == TiffAccess::kRows ? 1 : image.block_height;
    info_.block[rows + 1] = image.block_width;
    if (rows + 2 < info_.block.size()) info_.block[rows + 2] = image.samples;
  }

  template <class Visit>
  void for_each_page(const Box& box, Visit visit) const {
    Shape pages(info_.shape.begin(), info_.shape.begin() + num_page_axes_);
    Box wanted;
    for (int axis = 0; axis < num_page_axes_; ++axis) wanted.push_back(box[axis]);
    for_each_run(pages, wanted, [&](int64_t index, int64_t, int64_t count) {
      for (int64_t i = 0; i < count; ++i) visit(index + i);
    });
  }

  const TiffPool pool_;
  std::vector<TiffImage> images_;  // of the level, page by page
  int num_page_axes_ = 0;
  size_t level_ = 0;
};

}  // namespace

std::unique_ptr<ArrayFile> open_tiff(const std::string& path, const ArrayOptions& options) {
  return std::make_unique<TiffArrayFile>(path, options);
}

}  // namespace tessera
