#include "tessera/data/listed_rows.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tessera/base/error.h"
#include "tessera/base/text.h"
#include "tessera/files/json.h"
#include "tessera/images/open_array.h"

namespace tessera {
namespace {

double weight_in(const ListedRow& row) {
  if (row.weight.empty()) return 1;
  const std::optional<double> weight = read_number<double>(row.weight);
  if (!weight || !(*weight >= 0) || !std::isfinite(*weight))
    throw_error<InvalidInput>("[list] {}: weight {} must be a number from 0 on", row.where,
                              cut_short(row.weight));
  return *weight;
}

SamplePart part_in(const ListedRow& row) {
  const std::optional<SamplePart> part = part_called(row.split);
  if (!part)
    throw_error<InvalidInput>(
        "[list] {}: split {} is not known; use train, validation, test, or leave it empty",
        row.where, cut_short(row.split));
  return *part;
}

bool is_class(const ListedRow& row) { return !row.label.empty() && !is_image_path(row.label); }

ListedSample sample_of(const std::string& list_path, const ListedRow& row) {
  if (row.images.empty() || row.images.front().empty())
    throw_error<InvalidInput>("[list] {}: no image is given; name its file", row.where);
  if (!row.mask.empty() && !row.label.empty())
    throw_error<InvalidInput>("[list] {}: mask {} and label {}; give one of them", row.where,
                              cut_short(row.mask), cut_short(row.label));
  ListedSample sample;
  for (const std::string& image : row.images) sample.images.push_back(beside(list_path, image));
  const std::string& mask = row.mask.empty() && !is_class(row) ? row.label : row.mask;
  if (!mask.empty()) sample.target = beside(list_path, mask);
  sample.part = part_in(row);
  sample.weight = weight_in(row);
  return sample;
}

}  // namespace

SampleList list_rows(const std::string& list_path, const std::vector<ListedRow>& rows) {
  SampleList list;
  list.source = list_path;
  std::map<std::string, int64_t> classes;  // by name
  bool numbers = true;
  for (const ListedRow& row : rows) {
    list.samples.push_back(sample_of(list_path, row));
    if (!is_class(row)) continue;
    classes[row.label] = 0;
    numbers = numbers && read_number<int64_t>(row.label);
  }
  if (list.samples.empty())
    throw_error<InvalidInput>("[list] {} has no samples; give at least one", list_path);
  if (!numbers) {
    for (auto& [name, label] : classes) {
      label = std::ssize(list.class_names);
      list.class_names.push_back(name);
    }
  }
  for (size_t i = 0; i < rows.size(); ++i)
    if (is_class(rows[i]))
      list.samples[i].label =
          numbers ? *read_number<int64_t>(rows[i].label) : classes.at(rows[i].label);
  name_samples(&list);
  return list;
}

}  // namespace tessera
