#pragma once
// Max pooling in registers, as many outputs at a time as they have lanes; and the way back where
// windows of two columns do not overlap.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "tessera/kernels/cpu/partial_vector.h"

namespace tessera {

/// Integers as wide as the values, so that both are blended in the same lanes.
template <class T>
using Choices = decltype(Vector<T>{} < Vector<T>{});
template <class T>
using ChoiceNumber = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

/// A window's tap: its index, where it lies for output 0, and the outputs for which it lies inside
/// the image.
template <class T>
struct MaxTap {
  ChoiceNumber<T> index;
  const T* at;
  int64_t begin, end;
};

/// at[i * step] for the lanes begin <= i < end.
template <class T>
inline Vector<T> load_lanes(const T* at, int64_t step, int64_t begin, int64_t end) {
  constexpr int kAll = kLanes<T>, kHalf = kAll / 2;
  constexpr auto kEven = [](int i) { return i < kHalf ? 2 * i : kAll + 2 * (i - kHalf); };
  if (step == 1) return load_range(at, begin, end);
  if (step == 2)
    return pick(load_range(at, 2 * begin, 2 * end - 1),
                load_range(at + kAll, 2 * begin - kAll, 2 * end - 1 - kAll),
                sequence_of<kAll, kEven>());
  Vector<T> value{};
  for (int64_t i = begin; i < end; ++i) value[i] = at[i * step];
  return value;
}

template <class T>
inline Choices<T> lane_numbers() {
  Choices<T> numbers;
  for (int i = 0; i < kLanes<T>; ++i) numbers[i] = i;
  return numbers;
}

/// The outputs from `j` on, `count` of them, which a register has room for. The first of equal
/// values wins, and a NaN always does.
template <class T, class Code>
inline void choose_maxima(std::span<const MaxTap<T>> taps, int64_t step, int64_t j, int64_t count,
                          T* best_to, Code* codes) {
  constexpr int kAll = kLanes<T>;
  Vector<T> best = Vector<T>{} - std::numeric_limits<Number<T>>::infinity();
  Choices<T> choice = Choices<T>{} - 1;  // none yet
  for (const MaxTap<T>& tap : taps) {
    const int64_t begin = std::max<int64_t>(tap.begin - j, 0), end = std::min(tap.end - j, count);
    const T* const at = tap.at + j * step;
    if (begin == 0 && end == kAll) {
      const Vector<T> value = step == 2 ? load_every_second(at) : load_lanes(at, step, 0, kAll);
      const Choices<T> take = (value > best) | (value != value) | (choice < 0);
      best = take ? value : best;
      choice = take ? Choices<T>{} + tap.index : choice;
    } else if (begin < end) {
      const Vector<T> value = load_lanes(at, step, begin, end);
      const Choices<T> lane = lane_numbers<T>();
      const Choices<T> inside = (lane >= static_cast<ChoiceNumber<T>>(begin)) &
                                (lane < static_cast<ChoiceNumber<T>>(end));
      const Choices<T> take = inside & ((value > best) | (value != value) | (choice < 0));
      best = take ? value : best;
      choice = take ? Choices<T>{} + tap.index : choice;
    }
  }
  store_some(best_to + j, best, count);
  typedef Code Narrow __attribute__((vector_size(sizeof(Code) * kAll)));
  const Narrow narrow = __builtin_convertvector(choice, Narrow);
  if (count == kAll)
    std::memcpy(codes + j, &narrow, sizeof(narrow));
  else
    for (int64_t i = 0; i < count; ++i) codes[j + i] = narrow[i];
}

/// Two inputs for each output: dy where the output has chosen that tap, else 0. `first` is the tap
/// of the left one.
template <class T, class Code>
void spread_to_pairs(const T* dy, const Code* codes, ChoiceNumber<T> first, int64_t count, T* dx) {
  constexpr int kAll = kLanes<T>;
  typedef Code Narrow __attribute__((vector_size(sizeof(Code) * kAll)));
  constexpr auto kLow = [](int i) { return i / 2 + i % 2 * kAll; };
  constexpr auto kHigh = [](int i) { return kAll / 2 + i / 2 + i % 2 * kAll; };
  for (int64_t j = 0; j < count; j += kAll) {
    const int64_t some = std::min<int64_t>(kAll, count - j);
    Narrow narrow{};
    std::memcpy(&narrow, codes + j, static_cast<size_t>(some) * sizeof(Code));
    const Choices<T> choice = __builtin_convertvector(narrow, Choices<T>);
    const Vector<T> grad = load_some(dy + j, some);
    const Vector<T> left = choice == first ? grad : Vector<T>{};
    const Vector<T> right = choice == first + 1 ? grad : Vector<T>{};
    store_some(dx + 2 * j, pick(left, right, sequence_of<kAll, kLow>()), 2 * some);
    store_some(dx + 2 * j + kAll, pick(left, right, sequence_of<kAll, kHigh>()), 2 * some - kAll);
  }
}

}  // namespace tessera
