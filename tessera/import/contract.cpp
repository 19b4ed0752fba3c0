#include "tessera/import/contract.h"

#include <algorithm>
#include <map>

#include "tessera/geometry/digits.h"
#include "tessera/import/arrange.h"
#include "tessera/ops/pointwise/arithmetic.h"
#include "tessera/ops/pool/spatial_reduction.h"
#include "tessera/ops/shape/arrangement.h"

namespace tessera {
namespace {

/// One tensor of the product: its axes as the code sees them, as finely cut as the other needs.
struct Factor {
  TensorPointer tensor;
  std::string letters;
  std::vector<ViewDigits> axes;

  int axis_of(char letter) const {
    const size_t found = letters.find(letter);
    return found == std::string::npos ? -1 : static_cast<int>(found);
  }
};

/// A digit of the product: where each factor has it.
struct Letter {
  int64_t size = 1;
  std::optional<ViewDigit> in[2];
  bool stays = false;  // in the result

  bool is_of(int factor, const ViewDigit& digit) const {
    return in[factor] && *in[factor] == digit;
  }
};

class Product {
 public:
  Product(Call& call, Factor a, Factor b, std::string out)
      : call_(call), factors_{std::move(a), std::move(b)}, out_(std::move(out)) {
    for (const Factor& factor : factors_)
      for (char letter : factor.letters)
        if (code_.find(letter) == std::string::npos) code_ += letter;
    for (char letter : code_) add_letters(letter);
    find_batch();
  }

  TensorPointer result() {
    if (const int image = weighted_image(); image >= 0) return weighted_sum(image);
    const std::vector<std::vector<int>> axes = output_axes();
    Arrangement arrangement{{}, {}, {}};
    for (const Letter& letter : letters_) arrangement.sizes.push_back(letter.size);
    for (int factor = 0; factor < 2; ++factor) arrangement.from.push_back(lettering(factor));
    arrangement.to = axes;
    const ValueId value = contract(call_.graph(), factors_[0].tensor->value,
                                   factors_[1].tensor->value, call_.name("product"), arrangement);
    return make_tensor(value, view_of(axes));
  }

 private:
  static constexpr int kBatchLetter = 0;

  int64_t batch(int factor) const { return call_.type(factors_[factor].tensor->value).batch(); }

  void add_letters(char code) {
    ViewDigits digits[2];
    bool has[2];
    for (int factor = 0; factor < 2; ++factor) {
      const int axis = factors_[factor].axis_of(code);
      has[factor] = axis >= 0 && !factors_[factor].axes[axis].empty();
      if (has[factor]) digits[factor] = factors_[factor].axes[axis];
    }
    if (has[0] && has[1] && !refine_together(digits[0], digits[1]))
      call_.refuse("multiplies along axes that are made of different parts");
    const bool stays = out_.find(code) != std::string::npos;
    if (!stays && has[0] != has[1]) call_.refuse("sums an axis that only one of the tensors has");
    std::vector<int>& list = of_code_[code];
    for (size_t i = 0; i < std::max(digits[0].size(), digits[1].size()); ++i) {
      Letter letter;
      letter.stays = stays;
      for (int factor = 0; factor < 2; ++factor)
        if (has[factor]) letter.in[factor] = digits[factor][i];
      letter.size = digits[has[0] ? 0 : 1][i].size;
      list.push_back(static_cast<int>(letters_.size()));
      letters_.push_back(letter);
    }
  }

  /// The batch is the first letter; for one sample it has none so far.
  void find_batch() {
    if (batch(0) != batch(1)) call_.refuse("multiplies tensors of different batches");
    if (batch(0) == 1) {
      const Letter one{1, {ViewDigit{0, 1, 1}, ViewDigit{0, 1, 1}}, true};
      letters_.insert(letters_.begin(), one);
      for (auto& [code, list] : of_code_)
        for (int& letter : list) ++letter;
      return;
    }
    const ViewDigit samples{0, 1, batch(0)};
    for (size_t i = 0; i < letters_.size(); ++i) {
      if (!letters_[i].is_of(0, samples) && !letters_[i].is_of(1, samples)) continue;
      if (!letters_[i].is_of(0, samples) || !letters_[i].is_of(1, samples) || !letters_[i].stays)
        call_.refuse("multiplies samples of the batch with each other");
      std::swap(letters_[0], letters_[i]);
      for (auto& [code, list] : of_code_)
        for (int& letter : list)
          letter = letter == 0 ? static_cast<int>(i) : letter == static_cast<int>(i) ? 0 : letter;
      return;
    }
    call_.refuse("has no batch");
  }

  /// The letters of each axis of a factor's value.
  Lettering lettering(int factor) const {
    const ValueType& type = call_.type(factors_[factor].tensor->value);
    Lettering axes(type.num_axes());
    for (int axis = 0; axis < type.num_axes(); ++axis) {
      std::vector<std::pair<int64_t, int>> by_weight;
      for (size_t i = 0; i < letters_.size(); ++i)
        if (letters_[i].in[factor] && letters_[i].in[factor]->axis == axis)
          by_weight.emplace_back(-letters_[i].in[factor]->weight, static_cast<int>(i));
      std::sort(by_weight.begin(), by_weight.end());
      for (const auto& [weight, letter] : by_weight) axes[axis].push_back(letter);
    }
    return axes;
  }

  /// Pixels of one of the factors stay pixels; all else that stays are channels, in the code's
  /// order.
  std::vector<std::vector<int>> output_axes() const {
    std::vector<std::vector<int>> space;
    for (int factor = 0; factor < 2 && space.empty(); ++factor) {
      const Lettering axes = lettering(factor);
      for (size_t axis = 2; axis < axes.size(); ++axis) {
        const bool stay =
            !axes[axis].empty() && std::all_of(axes[axis].begin(), axes[axis].end(),
                                               [&](int letter) { return letters_[letter].stays; });
        if (stay) space.push_back(axes[axis]);
      }
    }
    std::vector<bool> done(letters_.size(), false);
    done[kBatchLetter] = true;
    for (const std::vector<int>& axis : space)
      for (int letter : axis) done[letter] = true;
    std::vector<std::vector<int>> axes{{kBatchLetter}, {}};
    for (char code : out_)
      for (int letter : of_code_.at(code))
        if (!done[letter]) axes[1].push_back(letter);
    axes.insert(axes.end(), space.begin(), space.end());
    return axes;
  }

  CodeView view_of(const std::vector<std::vector<int>>& axes) const {
    std::vector<ViewDigit> place(letters_.size());
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      std::vector<int64_t> sizes;
      for (int letter : axes[axis]) sizes.push_back(letters_[letter].size);
      const std::vector<int64_t> weights = digit_weights(sizes);
      for (size_t i = 0; i < sizes.size(); ++i)
        place[axes[axis][i]] = {static_cast<int>(axis), weights[i], sizes[i]};
    }
    std::vector<ViewDigits> seen;
    for (char code : out_) {
      ViewDigits& digits = seen.emplace_back();
      for (int letter : of_code_.at(code)) digits.push_back(place[letter]);
    }
    return CodeView(std::move(seen));
  }

  /// Where the product weighs all pixels of an image by one number each and adds them up: which
  /// factor is the image. Every rank then adds its own pixels.
  int weighted_image() const {
    for (int image = 0; image < 2; ++image) {
      const ValueType& type = call_.type(factors_[image].tensor->value);
      if (type.num_spatial() == 0 || factors_[image].tensor->view.is_stretched()) continue;
      const bool fits = std::all_of(letters_.begin() + 1, letters_.end(), [&](const Letter& l) {
        if (!l.in[image]) return false;
        const bool is_pixel = l.in[image]->axis >= 2;
        return is_pixel ? !l.stays && l.in[1 - image] : l.stays && !l.in[1 - image];
      });
      if (fits) return image;
    }
    return -1;
  }

  TensorPointer weighted_sum(int image) {
    const Factor& x = factors_[image];
    TensorSymbol weights = *factors_[1 - image].tensor;
    const Lettering own = lettering(image);
    std::vector<ViewDigits> axes(own.size());
    for (size_t axis = 2; axis < own.size(); ++axis)
      for (int letter : own[axis]) axes[axis].push_back(*letters_[letter].in[1 - image]);
    arrange(call_.graph(), weights, axes, call_.name("rearrange"));
    const ValueId product = arithmetic(call_.graph(), x.tensor->value, weights.value,
                                       call_.name("weigh"), Arithmetic::kMultiply);
    SpatialReductionOptions options{SpatialReductionOptions::How::kSum, {}, false};
    for (int axis = 0; axis < call_.type(product).num_spatial(); ++axis)
      options.axes.push_back(axis);
    const ValueId sum = spatial_reduction(call_.graph(), product, call_.name("sum"), options);
    return make_tensor(sum, view_of({own[0], own[1]}));
  }

  Call& call_;
  Factor factors_[2];
  std::string out_;
  std::string code_;  // letters of the code
  std::vector<Letter> letters_;
  std::map<char, std::vector<int>> of_code_;
};

}  // namespace

TensorPointer contracted(Call& call, const TensorPointer& a, const std::string& letters_a,
                         const TensorPointer& b, const std::string& letters_b,
                         const std::string& letters_out) {
  if (a->view.is_stretched() || b->view.is_stretched())
    call.refuse("multiplies an expanded tensor; leave the expand() out");
  return Product(call, {a, letters_a, a->view.axes()}, {b, letters_b, b->view.axes()}, letters_out)
      .result();
}

}  // namespace tessera
