#pragma once
// Boxes of a file against the whole file: what every format must give, by one thread and by many.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tessera/images/array_file.h"
#include "tessera/images/box_runs.h"

namespace tessera {

/// The bytes of a box of the file.
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

/// What a box of the whole is, without the file's help.
inline std::string cut_out(const std::string& whole, const Shape& shape, const Box& box,
                           int64_t bytes) {
  std::string part(static_cast<size_t>(box.volume() * bytes), '\0');
  for_each_run(shape, box, [&](int64_t index, int64_t offset, int64_t count) {
    std::memcpy(part.data() + offset * bytes, whole.data() + index * bytes,
                static_cast<size_t>(count * bytes));
  });
  return part;
}

inline Box random_box(const Shape& shape, std::mt19937& random) {
  Box box;
  for (const int64_t size : shape) {
    const auto begin = static_cast<int64_t>(random() % static_cast<uint64_t>(size));
    box.push_back(
        {begin, begin + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(size - begin))});
  }
  return box;
}

/// Random boxes by several threads at once; the first failure is named by its box.
inline void expect_boxes_of_whole(const ArrayFile& file, int num_boxes = 40) {
  const std::string whole = read_whole(file);
  std::vector<std::string> wrong(3);
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < wrong.size(); ++thread)
    threads.emplace_back([&, thread] {
      std::mt19937 random(static_cast<unsigned>(thread));
      for (int i = 0; i < num_boxes && wrong[thread].empty(); ++i) {
        const Box box = random_box(file.shape(), random);
        if (read_box(file, box) != cut_out(whole, file.shape(), box, bytes_of(file.type())))
          wrong[thread] = to_string(box);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& box : wrong) EXPECT_EQ(box, "") << file.path();
}

}  // namespace tessera
