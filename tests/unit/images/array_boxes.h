#pragma once
// Boxes of an image file against its whole: what every format's reader must get right.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tessera/images/array_file.h"
#include "tessera/images/box_runs.h"

namespace tessera {

inline std::string read_box(const ArrayFile& file, const Box& box) {
  std::string bytes(static_cast<size_t>(box.volume() * bytes_of(file.type())), '\x5a');
  file.read(box, bytes.data());
  return bytes;
}

inline std::string read_whole(const ArrayFile& file) {
  return read_box(file, Box::whole(file.shape()));
}

/// The numbers of the whole file, which must have this type.
template <class T>
std::vector<T> numbers_of(const ArrayFile& file) {
  const std::string bytes = read_whole(file);
  EXPECT_EQ(bytes_of(file.type()), static_cast<int64_t>(sizeof(T)));
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

/// The box of a whole array in memory.
inline std::string cut(const std::string& whole, const Shape& shape, const Box& box,
                       int64_t element) {
  std::string part(static_cast<size_t>(box.volume() * element), '\0');
  copy_box(whole.data(), shape, box, element, part.data());
  return part;
}

inline Box random_box(std::mt19937_64& random, const Shape& shape) {
  Box box;
  for (const int64_t size : shape) {
    const auto draw = [&](int64_t most) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(most));
    };
    const int64_t begin = draw(size);
    box.push_back({begin, begin + 1 + draw(size - begin)});
  }
  return box;
}

/// Reads random boxes, some by several threads at once.
inline void expect_boxes_of(const ArrayFile& file, const std::string& whole, int num_boxes = 12,
                            int num_threads = 3) {
  const auto check = [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < num_boxes; ++i) {
      const Box box = random_box(random, file.shape());
      if (read_box(file, box) == cut(whole, file.shape(), box, bytes_of(file.type()))) continue;
      ADD_FAILURE() << "box " << to_string(box) << " of " << to_string(file.shape()) << ", seed "
                    << seed;
    }
  };
  check(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < num_threads; ++i) threads.emplace_back(check, 2 + i);
  for (std::thread& thread : threads) thread.join();
}

/// The same of what the file itself gives as its whole.
inline void expect_boxes_of_whole(const ArrayFile& file, int num_boxes = 40) {
  expect_boxes_of(file, read_whole(file), num_boxes);
}

}  // namespace tessera
