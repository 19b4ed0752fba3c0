#pragma once
// Numbers, texts and lists as bytes, to be read by a process that does not trust the writer: every
// length is checked before memory is taken for it, and every number against what it may be.
//
// A struct is described once, for both directions:
//
//   template <class Data> void fields(Data& data, SliceOptions& options) {
//     data(options.axis, options.begin, options.end, options.step);
//   }
//
//   PlainWriter write(send);         SliceOptions options = ...;  fields(write, options);
//   PlainReader read(fill);          SliceOptions options;        fields(read, options);

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {

class PlainWriter {
 public:
  using Sink = std::function<void(const void* data, size_t bytes)>;
  explicit PlainWriter(Sink sink) : sink_(std::move(sink)) {}

  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  /// One of an enumeration whose last is `last`.
  template <class Enum>
  void choice(const Enum& value, Enum /*last*/) {
    put(static_cast<int64_t>(value));
  }
  void raw(const void* data, size_t bytes) { sink_(data, bytes); }

 private:
  void put(int64_t value) { raw(&value, sizeof(value)); }
  void put(int value) { put(static_cast<int64_t>(value)); }
  void put(bool value) { put(static_cast<int64_t>(value)); }
  void put(double value) { raw(&value, sizeof(value)); }
  void put(const std::string& text) {
    put(static_cast<int64_t>(text.size()));
    raw(text.data(), text.size());
  }
  template <class Item>
  void put(const std::vector<Item>& items) {
    put(static_cast<int64_t>(items.size()));
    for (const Item& item : items) put(item);
  }
  template <size_t count>
  void put(const std::array<double, count>& numbers) {
    raw(numbers.data(), sizeof(numbers));
  }
  template <class Item>
  void put(const std::optional<Item>& item) {
    put(item.has_value());
    if (item) put(*item);
  }

  Sink sink_;
};

class PlainReader {
 public:
  /// Fills all of `bytes` or throws.
  using Source = std::function<void(void* data, size_t bytes)>;
  explicit PlainReader(Source source) : source_(std::move(source)) {}

  static constexpr int64_t kMostWhole = int64_t{1} << 31;  // products of two fit 64 bits
  static constexpr int64_t kMostItems = 1 << 16;

  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  template <class Enum>
  void choice(Enum& value, Enum last) {
    value = static_cast<Enum>(within(0, static_cast<int64_t>(last)));
  }
  /// A whole number from `low` to `high`.
  int64_t within(int64_t low, int64_t high) {
    int64_t value = 0;
    raw(&value, sizeof(value));
    if (value < low || value > high)
      throw_error<InvalidInput>("{} where a number from {} to {} is due", value, low, high);
    return value;
  }
  void raw(void* data, size_t bytes) { source_(data, bytes); }

 private:
  void get(int64_t& value) { value = within(-kMostWhole, kMostWhole); }
  void get(int& value) { value = static_cast<int>(within(-kMostItems, kMostItems)); }
  void get(bool& value) { value = within(0, 1) != 0; }
  void get(double& value) { raw(&value, sizeof(value)); }
  void get(std::string& text) {
    text.resize(static_cast<size_t>(within(0, kMostItems)));
    raw(text.data(), text.size());
  }
  template <class Item>
  void get(std::vector<Item>& items) {
    items.resize(static_cast<size_t>(within(0, kMostItems)));
    for (Item& item : items) get(item);
  }
  template <size_t count>
  void get(std::array<double, count>& numbers) {
    raw(numbers.data(), sizeof(numbers));
  }
  template <class Item>
  void get(std::optional<Item>& item) {
    bool is_there = false;
    get(is_there);
    item.reset();
    if (is_there) get(item.emplace());
  }

  Source source_;
};

/// Appends to `bytes`.
inline PlainWriter writer_to(std::string& bytes) {
  return PlainWriter([&bytes](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  });
}

/// Reads `bytes` from `done` on, which goes along. Where they end too early, `fault` says so.
inline PlainReader reader_of(const std::string& bytes, size_t& done,
                             const char* fault = "it ends too early") {
  return PlainReader([&bytes, &done, fault](void* data, size_t size) {
    if (size > bytes.size() - done) throw InvalidInput(fault);
    bytes.copy(static_cast<char*>(data), size, done);
    done += size;
  });
}

}  // namespace tessera
