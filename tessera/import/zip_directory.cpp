#include "tessera/import/zip_directory.h"

#include <algorithm>
#include <set>

#include "tessera/base/error.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

// Sizes and signatures of the format: PKWARE's APPNOTE.TXT, sections 4.3.7 to 4.3.16.
constexpr size_t kHeaderBytes = 30, kEntryBytes = 46, kEndBytes = 22;
constexpr size_t kEnd64Bytes = 56, kLocatorBytes = 20;
constexpr uint32_t kHeader = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator = 0x07064b50, kDescriptor = 0x08074b50;
constexpr uint32_t kIn64Bits = 0xffffffff;  // the number is in the longer form
constexpr uint16_t kEncrypted = 1, kSizesFollow = 8;
constexpr size_t kMostRecords = 1'000'000;

[[noreturn]] void refuse_zip(const std::string& why) { throw InvalidInput(why); }

/// Little-endian numbers at any place of the file.
class Bytes {
 public:
  explicit Bytes(std::string_view file) : file_(file) {}

  size_t size() const { return file_.size(); }
  std::string_view text(size_t at, size_t bytes) const {
    if (at > file_.size() || bytes > file_.size() - at) refuse_zip("it ends too early");
    return file_.substr(at, bytes);
  }
  uint64_t number(size_t at, size_t bytes) const {
    const std::string_view raw = text(at, bytes);
    uint64_t value = 0;
    for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
    return value;
  }
  uint16_t u16(size_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  uint32_t u32(size_t at) const { return static_cast<uint32_t>(number(at, 4)); }
  uint64_t u64(size_t at) const { return number(at, 8); }

 private:
  std::string_view file_;
};

struct Directory {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t num_records = 0;
};

/// The end is the file's last bytes: no comment, and nothing after it.
Directory find_directory(const Bytes& file) {
  if (file.size() < kEndBytes) refuse_zip("it is too short for an archive");
  const size_t end = file.size() - kEndBytes;
  if (file.u32(end) != kEnd || file.u16(end + 20) != 0)
    refuse_zip("it does not end as an archive does");
  if (file.u16(end + 4) != 0 || file.u16(end + 6) != 0 || file.u16(end + 8) != file.u16(end + 10))
    refuse_zip("it is a part of an archive in several parts");
  Directory found{file.u32(end + 16), end, file.u16(end + 10)};
  uint64_t bytes = file.u32(end + 12);
  if (end >= kLocatorBytes && file.u32(end - kLocatorBytes) == kLocator) {
    const size_t locator = end - kLocatorBytes;
    const uint64_t end64 = file.u64(locator + 8);
    if (locator < kEnd64Bytes || end64 != locator - kEnd64Bytes || file.u32(end64) != kEnd64 ||
        file.u64(end64 + 4) != kEnd64Bytes - 12)
      refuse_zip("the end of its directory is not where it says");
    const Directory in_64{file.u64(end64 + 48), end64, file.u64(end64 + 32)};
    const auto differs = [](uint64_t narrow, uint64_t saturated, uint64_t wide) {
      return narrow != saturated && narrow != wide;
    };
    if (differs(found.begin, kIn64Bits, in_64.begin) ||
        differs(bytes, kIn64Bits, file.u64(end64 + 40)) ||
        differs(found.num_records, 0xffff, in_64.num_records))
      refuse_zip("the two ends of its directory differ");
    found = in_64;
    bytes = file.u64(end64 + 40);
  }
  if (found.begin > found.end || found.end - found.begin != bytes)
    refuse_zip("its directory is not right before its end");
  if (found.num_records > kMostRecords) refuse_zip("it has more than a million records");
  return found;
}

struct Entry {
  ZipRecord record;
  uint16_t flags = 0;
  uint16_t method = 0;
};

/// Numbers that do not fit 32 bits stand in the extra field, in this order.
void read_wide_numbers(const Bytes& file, size_t extra, size_t bytes, Entry* entry) {
  for (size_t at = extra; at + 4 <= extra + bytes;) {
    const size_t length = file.u16(at + 2);
    if (file.u16(at) == 1) {
      size_t next = at + 4;
      for (int64_t* number :
           {&entry->record.size, &entry->record.stored_size, &entry->record.offset}) {
        if (*number != kIn64Bits) continue;
        if (next + 8 > at + 4 + length) refuse_zip("a size of a record is missing");
        *number = static_cast<int64_t>(file.u64(next));
        next += 8;
      }
    }
    at += 4 + length;
  }
}

void check_name(const std::string& name) {
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char letter) {
    return static_cast<unsigned char>(letter) >= 32 && letter != 127 && letter != '\\';
  });
  if (name.empty() || !is_plain || name.starts_with('/') || name.ends_with('/') ||
      ("/" + name + "/").find("/../") != std::string::npos)
    refuse_zip("a record has a name that is not one of a plain file");
}

Entry read_entry(const Bytes& file, size_t* at) {
  const size_t begin = *at;
  if (file.u32(begin) != kEntry) refuse_zip("its directory is damaged");
  const size_t name = file.u16(begin + 28), extra = file.u16(begin + 30),
               comment = file.u16(begin + 32);
  Entry entry;
  entry.flags = file.u16(begin + 8);
  entry.method = file.u16(begin + 10);
  entry.record.stored_size = file.u32(begin + 20);
  entry.record.size = file.u32(begin + 24);
  entry.record.offset = file.u32(begin + 42);
  entry.record.name = std::string(file.text(begin + kEntryBytes, name));
  check_name(entry.record.name);
  read_wide_numbers(file, begin + kEntryBytes + name, extra, &entry);
  const uint32_t kind = file.u32(begin + 38) >> 28;  // S_IFMT of a Unix archiver
  if (kind != 0 && kind != 8)
    refuse_zip(fmt::format("{} is a link, a folder or a device", entry.record.name));
  if (entry.flags & kEncrypted) refuse_zip(fmt::format("{} is encrypted", entry.record.name));
  if (entry.method != 0 && entry.method != 8)
    refuse_zip(fmt::format("{} is packed in an unknown way", entry.record.name));
  if (entry.method == 0 && entry.record.size != entry.record.stored_size)
    refuse_zip(fmt::format("{} has two sizes", entry.record.name));
  *at = begin + kEntryBytes + name + extra + comment;
  return entry;
}

/// Where the record ends in the file; what follows must be at `next`.
void check_record(const Bytes& file, const Entry& entry, uint64_t next) {
  const ZipRecord& record = entry.record;
  const auto damaged = [&] {
    refuse_zip(fmt::format("{} is not what the directory says", record.name));
  };
  const size_t begin = static_cast<size_t>(record.offset);
  if (file.u32(begin) != kHeader || file.u16(begin + 6) != entry.flags ||
      file.u16(begin + 8) != entry.method ||
      file.text(begin + kHeaderBytes, file.u16(begin + 26)) != record.name)
    damaged();
  const uint64_t data = begin + kHeaderBytes + record.name.size() + file.u16(begin + 28);
  if (data > next || static_cast<uint64_t>(record.stored_size) > next - data) damaged();
  const uint64_t end = data + record.stored_size;
  if (!(entry.flags & kSizesFollow)) {
    if (end != next) damaged();
  } else if ((next - end != 16 && next - end != 24) || file.u32(end) != kDescriptor) {
    damaged();
  }
}

}  // namespace

std::vector<ZipRecord> read_zip_directory(std::string_view text) {
  const Bytes file(text);
  const Directory directory = find_directory(file);
  std::vector<Entry> entries;
  std::set<std::string> names;
  size_t at = directory.begin;
  for (uint64_t i = 0; i < directory.num_records; ++i) {
    entries.push_back(read_entry(file, &at));
    if (!names.insert(lower_case(entries.back().record.name)).second)
      refuse_zip(fmt::format("it holds {} twice", entries.back().record.name));
  }
  if (at != directory.end) refuse_zip("its directory has room that no record takes");
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.record.offset < b.record.offset; });
  if (!entries.empty() && entries[0].record.offset != 0)
    refuse_zip("it does not begin with a record");
  std::vector<ZipRecord> records;
  for (size_t i = 0; i < entries.size(); ++i) {
    check_record(file, entries[i],
                 i + 1 < entries.size() ? static_cast<uint64_t>(entries[i + 1].record.offset)
                                        : directory.begin);
    records.push_back(std::move(entries[i].record));
  }
  if (records.empty()) refuse_zip("it is an archive without records");
  return records;
}

}  // namespace tessera
