#pragma once
// Files that were valid once: every driver of this folder feeds such bytes to a reader. A case is a
// function of its seed alone, so a failing one can be repeated by itself:
//
//   TESSERA_ATTACK_SEED=4711 TESSERA_ATTACK_CASES=1 build/attack_readers_test
//
// Example:
//   for (uint64_t seed : attack_seeds(2000)) {
//     SCOPED_TRACE(repeat_with(seed));
//     read(Mutation(seed).of(valid_bytes));
//   }

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace attack {

/// A number from the environment, such as TESSERA_ATTACK_CASES.
inline uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// One seed a case, as many as the environment asks for.
inline std::vector<uint64_t> attack_seeds(uint64_t num_cases) {
  std::vector<uint64_t> seeds(number_from("TESSERA_ATTACK_CASES", num_cases));
  uint64_t next = number_from("TESSERA_ATTACK_SEED", 1);
  for (uint64_t& seed : seeds) seed = next++;
  return seeds;
}

inline std::string repeat_with(uint64_t seed) {
  return "repeat with TESSERA_ATTACK_SEED=" + std::to_string(seed) + " TESSERA_ATTACK_CASES=1";
}

class Mutation {
 public:
  explicit Mutation(uint64_t seed) : random_(seed) {}

  /// The bytes after one to four changes.
  std::string of(std::string bytes) {
    for (uint64_t left = 1 + below(4); left > 0; --left) change(bytes);
    return bytes;
  }

  /// The bytes after one to eight of them were replaced. Formats that find their parts by offsets
  /// are refused early after of(), which moves most of a file; here the parts are found.
  std::string in_place(std::string bytes) {
    for (uint64_t left = bytes.empty() ? 0 : 1 + below(8); left > 0; --left)
      bytes[below(bytes.size())] = static_cast<char>(below(256));
    return bytes;
  }

  /// Uniform in [0, limit); 0 for 0.
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }

  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  void change(std::string& bytes) {
    switch (below(10)) {
      case 0:
        return flip_bit(bytes);
      case 1:
        return bytes.resize(below(bytes.size() + 1));
      case 2:
        return insert_noise(bytes);
      case 3:
        return swap_chunks(bytes);
      case 4:
        return repeat_chunk(bytes);
      case 5:
        return remove_chunk(bytes);
      case 6:
        return edit_number(bytes);
      case 7:
        return insert_brackets(bytes);
      case 8:
        return edit_length_field(bytes);
      default:
        return insert_words(bytes);
    }
  }

  struct Chunk {
    size_t begin, size;
  };
  Chunk chunk_of(const std::string& bytes, size_t longest) {
    const size_t begin = below(bytes.size() + 1);
    return {begin, below(std::min(longest, bytes.size() - begin) + 1)};
  }

  void flip_bit(std::string& bytes) {
    if (bytes.empty()) return;
    char& byte = bytes[below(bytes.size())];
    byte = static_cast<char>(byte ^ (1 << below(8)));
  }

  void insert_noise(std::string& bytes) {
    std::string noise(1 + below(16), '\0');
    for (char& byte : noise) byte = static_cast<char>(below(256));
    bytes.insert(below(bytes.size() + 1), noise);
  }

  void swap_chunks(std::string& bytes) {
    const Chunk first = chunk_of(bytes, 32);
    const std::string moved = bytes.substr(first.begin, first.size);
    bytes.erase(first.begin, first.size);
    bytes.insert(below(bytes.size() + 1), moved);
  }

  void repeat_chunk(std::string& bytes) {
    const Chunk chunk = chunk_of(bytes, 64);
    const std::string again = bytes.substr(chunk.begin, chunk.size);
    for (uint64_t left = 1 + below(4); left > 0; --left) bytes.insert(chunk.begin, again);
  }

  void remove_chunk(std::string& bytes) {
    const Chunk chunk = chunk_of(bytes, 64);
    bytes.erase(chunk.begin, chunk.size);
  }

  /// A run of digits becomes a number that is rarely thought of.
  void edit_number(std::string& bytes) {
    static const std::vector<std::string> numbers{"0",
                                                  "-1",
                                                  "-0",
                                                  "1.5",
                                                  "1e999",
                                                  "-1e-999",
                                                  "NaN",
                                                  "Infinity",
                                                  "2147483648",
                                                  "4294967296",
                                                  "9223372036854775807",
                                                  "9223372036854775808",
                                                  "-9223372036854775808",
                                                  "18446744073709551615",
                                                  "18446744073709551616",
                                                  "00007",
                                                  "\"7\"",
                                                  "null",
                                                  "true",
                                                  "[]",
                                                  "{}",
                                                  "1" + std::string(400, '0')};
    std::vector<Chunk> runs;
    for (size_t at = 0; at < bytes.size(); ++at) {
      if (bytes[at] < '0' || bytes[at] > '9') continue;
      const size_t begin = at;
      while (at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9') ++at;
      runs.push_back({begin, at - begin});
    }
    if (runs.empty()) return;
    const Chunk run = one_of(runs);
    bytes.replace(run.begin, run.size, one_of(numbers));
  }

  void insert_brackets(std::string& bytes) {
    static const std::vector<std::string> openings{"[", "{", "(", "{\"a\":", "[[", "a={b=", "a."};
    const std::string& opening = one_of(openings);
    const uint64_t depth = one_of(std::vector<uint64_t>{3, 70, 300, 20'000});
    std::string bomb;
    for (uint64_t i = 0; i < depth; ++i) bomb += opening;
    bytes.insert(below(bytes.size() + 1), bomb);
  }

  /// Lengths of binary formats stand at the beginning.
  void edit_length_field(std::string& bytes) {
    const size_t width = one_of(std::vector<size_t>{2, 4, 8});
    const size_t begin = below(16);
    if (begin + width > bytes.size()) return;
    const uint64_t value =
        one_of(std::vector<uint64_t>{0, 1, 7, 8, 127, 1 << 20, bytes.size(), bytes.size() - 8,
                                     100'000'000, 100'000'001, 0xffffffff, UINT64_MAX});
    for (size_t i = 0; i < width; ++i)
      bytes[begin + i] = static_cast<char>(value >> (8 * i) & 0xff);
  }

  void insert_words(std::string& bytes) {
    static const std::vector<std::string> words{
        "\"", "\\",   "\\u0000",  "\\ud800",      ",", ":", "\n", "null", "true", "-", "'''", "#",
        "\0", "\xff", "\xe2\x82", "\xef\xbb\xbf", "=", "]", "}",  "..",   "%s"};
    bytes.insert(below(bytes.size() + 1), one_of(words));
  }

  std::mt19937_64 random_;
};

}  // namespace attack
