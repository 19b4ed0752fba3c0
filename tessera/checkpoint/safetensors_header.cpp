#include "tessera/checkpoint/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/files/json.h"

namespace tessera {
namespace {

using nlohmann::json;

constexpr const char* kMetadata = "__metadata__";
constexpr size_t kMaxNameBytes = 1000;
constexpr int kMaxDepth = 4;  // file, tensor, list; one more for a good message

constexpr std::pair<const char*, at::ScalarType> kTypes[] = {
    {"BOOL", at::ScalarType::Bool}, {"U8", at::ScalarType::Byte},
    {"I8", at::ScalarType::Char},   {"I16", at::ScalarType::Short},
    {"I32", at::ScalarType::Int},   {"I64", at::ScalarType::Long},
    {"F16", at::ScalarType::Half},  {"BF16", at::ScalarType::BFloat16},
    {"F32", at::ScalarType::Float}, {"F64", at::ScalarType::Double},
};

constexpr const char* kTypeNames = "BOOL, U8, I8, I16, I32, I64, F16, BF16, F32 and F64";

const char* name_of(const TensorEntry& entry) {
  for (const auto& [name, type] : kTypes)
    if (type == entry.type) return name;
  throw_error<InvalidInput>("tensor {} has the type {}; the format is written with {}", entry.name,
                            c10::toString(entry.type), kTypeNames);
}

at::ScalarType type_of(const std::string& tensor, const json& dtype) {
  if (dtype.is_string())
    for (const auto& [name, type] : kTypes)
      if (dtype.get_ref<const std::string&>() == name) return type;
  throw_error<InvalidInput>("tensor {} has dtype {}; can be read: {}", tensor, excerpt(dtype),
                            kTypeNames);
}

json parse_text(std::string_view text) {
  if (text.empty() || text.front() != '{')
    throw_error<InvalidInput>("the header does not begin with {{");
  try {
    return parse_json(text, {.max_depth = kMaxDepth});
  } catch (const InvalidInput& error) {
    throw_error<InvalidInput>("in the header: {}", error.what());
  }
}

Metadata parse_metadata(const json& object) {
  Metadata metadata;
  if (!object.is_object())
    throw_error<InvalidInput>("{} is {}, not an object", kMetadata, object.type_name());
  for (const auto& [key, value] : object.items()) {
    if (!value.is_string())
      throw_error<InvalidInput>("{} has a {} under {}, not a string", kMetadata, value.type_name(),
                                key);
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

std::vector<uint64_t> unsigned_list(const std::string& tensor, const char* what, const json& list) {
  std::vector<uint64_t> numbers;
  bool legal = list.is_array();
  for (size_t i = 0; legal && i < list.size(); ++i) {
    legal = list[i].is_number_unsigned();
    if (legal) numbers.push_back(list[i].get<uint64_t>());
  }
  if (!legal)
    throw_error<InvalidInput>("tensor {} has a {} that is not a list of whole numbers: {}", tensor,
                              what, excerpt(list));
  return numbers;
}

// Zero sizes count as 1 here: LibTorch multiplies strides that way, and must not overflow either.
void check_shape(const TensorEntry& entry) {
  int64_t bytes = static_cast<int64_t>(c10::elementSize(entry.type));
  for (int64_t size : entry.shape)
    if (size < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(size, 1), &bytes))
      throw_error<InvalidInput>("tensor {} has a shape of more bytes than can be counted",
                                entry.name);
}

void check_size(const TensorEntry& entry) {
  uint64_t bytes = c10::elementSize(entry.type);
  for (int64_t size : entry.shape) bytes *= static_cast<uint64_t>(size);
  if (entry.begin > entry.end)
    throw_error<InvalidInput>("tensor {} ends at byte {}, before its beginning at {}", entry.name,
                              entry.end, entry.begin);
  if (entry.end - entry.begin != bytes)
    throw_error<InvalidInput>("tensor {} has {} bytes, but {} of shape [{}] are {}", entry.name,
                              entry.end - entry.begin, name_of(entry), to_string(entry.shape),
                              bytes);
}

TensorEntry parse_entry(const std::string& name, const json& object) {
  if (!object.is_object())
    throw_error<InvalidInput>("tensor {} is described by a {}, not an object", name,
                              object.type_name());
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!object.contains(key)) throw_error<InvalidInput>("tensor {} has no {}", name, key);
  if (object.size() != 3)
    throw_error<InvalidInput>("tensor {} has more than dtype, shape and data_offsets", name);
  TensorEntry entry{name, type_of(name, object["dtype"]), {}, 0, 0};
  for (uint64_t size : unsigned_list(name, "shape", object["shape"]))
    entry.shape.push_back(static_cast<int64_t>(size));
  const std::vector<uint64_t> offsets = unsigned_list(name, "data_offsets", object["data_offsets"]);
  if (offsets.size() != 2)
    throw_error<InvalidInput>("tensor {} has {} data_offsets, not 2", name, offsets.size());
  entry.begin = offsets[0];
  entry.end = offsets[1];
  check_shape(entry);
  check_size(entry);
  return entry;
}

// The tensors in the order of their bytes must follow each other without a gap, from 0 to the end.
void check_cover(const std::vector<TensorEntry>& entries, uint64_t data_bytes) {
  std::vector<const TensorEntry*> order;
  for (const TensorEntry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const TensorEntry* a, const TensorEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t covered = 0;
  for (const TensorEntry* entry : order) {
    if (entry->end > data_bytes)
      throw_error<InvalidInput>(
          "tensor {} ends at byte {} of the data, but there are {}: the file is truncated",
          entry->name, entry->end, data_bytes);
    if (entry->begin < covered)
      throw_error<InvalidInput>("tensor {} begins at byte {}, inside another that ends at {}",
                                entry->name, entry->begin, covered);
    if (entry->begin > covered)
      throw_error<InvalidInput>("bytes {} to {} of the data belong to no tensor", covered,
                                entry->begin);
    covered = entry->end;
  }
  if (covered != data_bytes)
    throw_error<InvalidInput>("{} bytes follow the last tensor", data_bytes - covered);
}

}  // namespace

std::string format_header(const SafetensorsHeader& header) {
  json object = json::object();
  if (!header.metadata.empty()) object[kMetadata] = header.metadata;
  for (const TensorEntry& entry : header.entries) {
    if (object.contains(entry.name) || entry.name == kMetadata)
      throw_error<InvalidInput>("the name {} is given to two things", entry.name);
    object[entry.name] = {{"dtype", name_of(entry)},
                          {"shape", entry.shape},
                          {"data_offsets", {entry.begin, entry.end}}};
  }
  try {
    std::string text = object.dump();  // throws where a name is not UTF-8
    text.resize((text.size() + 7) / 8 * 8, ' ');
    return text;
  } catch (const json::exception& error) {
    throw_error<InvalidInput>("a name or the metadata is not UTF-8 text ({})", error.what());
  }
}

SafetensorsHeader parse_header(std::string_view text, uint64_t data_bytes) {
  SafetensorsHeader header;
  const json object = parse_text(text);
  for (const auto& [name, value] : object.items()) {
    if (name.size() > kMaxNameBytes)
      throw_error<InvalidInput>("the name {} has {} bytes; at most {} are read", excerpt(name),
                                name.size(), kMaxNameBytes);
    if (name == kMetadata)
      header.metadata = parse_metadata(value);
    else
      header.entries.push_back(parse_entry(name, value));
  }
  check_cover(header.entries, data_bytes);
  return header;
}

}  // namespace tessera
