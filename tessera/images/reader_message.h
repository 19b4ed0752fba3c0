#pragma once
// What a process and its readers say to each other: plain numbers and texts, one after the other.
// A reader may have gone wrong, so what it says is checked like a file.

#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "tessera/base/error.h"

namespace tessera {

class MessageWriter {
 public:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void add(const T& value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T)); }
  void add(const std::string& text) {
    add(text.size());
    bytes_ += text;
  }
  template <class T>
  void add(const std::vector<T>& values) {
    add(values.size());
    for (const T& value : values) add(value);
  }
  template <class T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class MessageReader {
 public:
  explicit MessageReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void take(T& value) { std::memcpy(&value, next(sizeof(T)), sizeof(T)); }
  void take(std::string& text) {
    size_t size = 0;
    take(size);
    text.assign(next(size), size);
  }
  template <class T>
  void take(std::vector<T>& values) {
    size_t size = 0;
    take(size);
    if (size > rest_.size()) fail();
    values.resize(size);
    for (T& value : values) take(value);
  }
  template <class T>
  void take(std::optional<T>& value) {
    char there = 0;
    take(there);
    value.reset();
    if (there != 0) take(value.emplace());
  }
  template <class T>
  T take_a() {
    T value{};
    take(value);
    return value;
  }

 private:
  const char* next(size_t bytes) {
    if (bytes > rest_.size()) fail();
    const char* const at = rest_.data();
    rest_.remove_prefix(bytes);
    return at;
  }
  [[noreturn]] static void fail() {
    throw_error<InvalidInput>("[data] a reader's answer breaks off");
  }

  std::string_view rest_;
};

}  // namespace tessera
