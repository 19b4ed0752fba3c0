#pragma once
// Zip archives written by hand, whose parts may lie.

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::zip {

inline std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

/// One record as both of its descriptions say it, each of which may lie.
struct Record {
  std::string name;
  std::string data;
  int flags = 0;
  int method = 0;
  uint32_t attributes = 0;
  std::string own_name = {};  // in its own header; empty: `name`
  std::string padding = {};   // an extra field of its own header
};

/// Of the format: PKWARE's APPNOTE.TXT, section 4.4.7.
inline uint32_t checksum(const std::string& data) {
  uint32_t sum = ~0u;
  for (unsigned char byte : data) {
    sum ^= byte;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
  }
  return ~sum;
}

inline std::string header_of(const Record& record) {
  const std::string name = record.own_name.empty() ? record.name : record.own_name;
  const bool sizes_follow = record.flags & 8;
  const std::string size = little_endian(sizes_follow ? 0 : record.data.size(), 4);
  return "PK\3\4" + little_endian(20, 2) + little_endian(record.flags, 2) +
         little_endian(record.method, 2) + little_endian(0, 4) +
         little_endian(sizes_follow ? 0 : checksum(record.data), 4) + size + size +
         little_endian(name.size(), 2) + little_endian(record.padding.size(), 2) + name +
         record.padding + record.data +
         (sizes_follow
              ? "PK\7\10" + little_endian(checksum(record.data), 4) +
                    little_endian(record.data.size(), 4) + little_endian(record.data.size(), 4)
              : "");
}

inline std::string entry_of(const Record& record, size_t offset) {
  const std::string size = little_endian(record.data.size(), 4);
  return "PK\1\2" + little_endian(20, 2) + little_endian(20, 2) + little_endian(record.flags, 2) +
         little_endian(record.method, 2) + little_endian(0, 4) +
         little_endian(checksum(record.data), 4) + size + size +
         little_endian(record.name.size(), 2) + little_endian(0, 2) + little_endian(0, 2) +
         little_endian(0, 2) + little_endian(0, 2) + little_endian(record.attributes, 4) +
         little_endian(offset, 4) + record.name;
}

inline std::string end_of(size_t num_records, size_t bytes, size_t offset) {
  return "PK\5\6" + little_endian(0, 4) + little_endian(num_records, 2) +
         little_endian(num_records, 2) + little_endian(bytes, 4) + little_endian(offset, 4) +
         little_endian(0, 2);
}

/// `hole` bytes stand between the records.
inline std::string archive(const std::vector<Record>& records, const std::string& hole = "") {
  std::string file, directory;
  for (const Record& record : records) {
    directory += entry_of(record, file.size());
    file += header_of(record) + hole;
  }
  const size_t begin = file.size();
  return file + directory + end_of(records.size(), directory.size(), begin);
}

}  // namespace tessera::zip
