#include "tessera/ops/shape/arrangement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "tessera/base/error.h"
#include "tessera/geometry/digits.h"

namespace tessera {
namespace {

constexpr int kMaxLetters = 26;
constexpr int kMaxSpatialAxes = 3;

using LetterRanges = std::vector<Range>;  // by letter

bool has_letter(const Lettering& lettering, int letter) {
  return std::any_of(lettering.begin(), lettering.end(), [&](const std::vector<int>& axis) {
    return std::find(axis.begin(), axis.end(), letter) != axis.end();
  });
}

std::string words_of(const Lettering& lettering) {
  std::string words;
  for (const std::vector<int>& axis : lettering)
    for (int letter : axis) words += static_cast<char>('a' + letter);
  return words;
}

class Arranged final : public Op {
 public:
  explicit Arranged(Arrangement arrangement) : arrangement_(std::move(arrangement)) {
    check_letters();
  }

  std::string kind() const override { return num_inputs() == 1 ? "rearrange" : "contraction"; }
  std::string settings() const override {
    std::string words;
    for (const Lettering& lettering : arrangement_.from)
      words += (words.empty() ? "" : ", ") + picture(lettering);
    return words + " to " + picture(arrangement_.to);
  }

  ValueType infer_type(std::span<const ValueType> inputs) const override {
    for (int input = 0; input < num_inputs(); ++input) check_input(input, inputs[input]);
    ValueType output;
    output.axes.push_back(inputs[0].axes[0]);
    for (size_t axis = 1; axis < arrangement_.to.size(); ++axis) {
      const std::vector<int>& letters = arrangement_.to[axis];
      if (axis == 1)
        output.axes.push_back({AxisKind::kChannel, size_of(letters), -1, {}});
      else
        output.axes.push_back(spatial_axis(letters, static_cast<int>(axis) - 2, inputs));
    }
    number_spatial_axes(output);
    return output;
  }

  Box needed(int input, const Box& out, const NodeTypes& types) const override {
    Box box;
    for (int axis = 0; axis < types.inputs[input].num_axes(); ++axis) box.push_back({0, 0});
    for (const LetterRanges& part : parts_of(out))
      box = hull(box, box_of(arrangement_.from[input], part));
    return box;
  }
  bool keeps_input(int) const override { return num_inputs() > 1; }
  bool cheap_to_recompute() const override { return num_inputs() == 1; }
  double flops(const Box& out, const NodeTypes&) const override {
    const int64_t summed = num_summed();
    if (num_inputs() == 1 && summed == 1) return 0;
    return static_cast<double>(num_inputs() * summed) * static_cast<double>(out.volume());
  }

  void forward(KernelArgs& args) const override {
    for (const LetterRanges& part : parts_of(args.out_box)) {
      std::vector<at::Tensor> operands;
      for (int input = 0; input < num_inputs(); ++input)
        operands.push_back(spread(args.inputs[input], arrangement_.from[input], part));
      spread(args.output, arrangement_.to, part)
          .copy_(product(arrangement_.from, operands, words_of(arrangement_.to)));
    }
  }

  void input_gradient(KernelArgs& args) const override {
    for (int input = 0; input < num_inputs(); ++input) {
      const Operand& gradient = args.grad_inputs[input];
      if (!gradient.tensor.defined() || args.out_box.empty()) continue;
      // Each element of the input is one of the output.
      const bool one_to_one =
          num_inputs() == 1 && num_summed() == 1 && gradient.box.volume() == args.out_box.volume();
      if (!one_to_one) gradient.tensor.zero_();
      for (const LetterRanges& part : parts_of(args.out_box)) {
        const at::Tensor target = spread(gradient, arrangement_.from[input], part);
        const at::Tensor own = gradient_of(input, args, part).expand(target.sizes());
        one_to_one ? target.copy_(own) : target.add_(own);
      }
    }
  }

  at::Tensor reference(const ReferenceArgs& args) const override {
    std::vector<at::Tensor> operands;
    for (int input = 0; input < num_inputs(); ++input)
      operands.push_back(args.inputs[input].reshape(sizes_of(arrangement_.from[input])));
    Shape shape;
    for (const std::vector<int>& letters : arrangement_.to) shape.push_back(size_of(letters));
    return product(arrangement_.from, operands, words_of(arrangement_.to)).reshape(shape);
  }

 private:
  int num_inputs() const { return static_cast<int>(arrangement_.from.size()); }

  int64_t size_of(const std::vector<int>& letters) const {
    int64_t size = 1;
    for (int letter : letters) size *= arrangement_.sizes[letter];
    return size;
  }
  Shape sizes_of(const Lettering& lettering) const {
    Shape sizes;
    for (const std::vector<int>& axis : lettering)
      for (int letter : axis) sizes.push_back(arrangement_.sizes[letter]);
    return sizes;
  }
  int64_t num_summed() const {
    int64_t summed = 1;
    for (int letter = 0; letter < std::ssize(arrangement_.sizes); ++letter)
      if (!has_letter(arrangement_.to, letter)) summed *= arrangement_.sizes[letter];
    return summed;
  }
  /// "a(bc)de", axis by axis; 1 is an axis without letters.
  static std::string picture(const Lettering& lettering) {
    std::string words;
    for (const std::vector<int>& axis : lettering) {
      const std::string letters = words_of({axis});
      words += letters.empty() ? "1" : letters.size() == 1 ? letters : "(" + letters + ")";
    }
    return words;
  }

  void check_letters() const {
    const int count = static_cast<int>(arrangement_.sizes.size());
    if (num_inputs() < 1 || num_inputs() > 2 || count < 1 || count > kMaxLetters)
      throw_error<InvalidInput>("{} inputs with {} letters; give 1 or 2 with 1 to {}", num_inputs(),
                                count, kMaxLetters);
    for (int64_t size : arrangement_.sizes)
      if (size < 1) throw_error<InvalidInput>("a letter of size {}", size);
    std::vector<int> uses(count, 0);
    const auto check = [&](const Lettering& lettering, const char* whose) {
      std::vector<bool> seen(count, false);
      for (const std::vector<int>& axis : lettering)
        for (int letter : axis) {
          if (letter < 0 || letter >= count || seen[letter])
            throw_error<InvalidInput>("letter {} of {} twice, or of {} letters", letter, whose,
                                      count);
          seen[letter] = true;
          ++uses[letter];
        }
      if (lettering.empty() || lettering[0] != arrangement_.from[0][0] || lettering[0].size() != 1)
        throw_error<InvalidInput>(
            "the batch of {} must be an axis with one letter, the same for all", whose);
    };
    if (arrangement_.from[0].empty()) throw_error<InvalidInput>("an input without axes");
    for (const Lettering& lettering : arrangement_.from) check(lettering, "an input");
    if (std::ssize(arrangement_.to) > kMaxSpatialAxes + 2)
      throw_error<InvalidInput>("an output with {} axes; give batch, channels and up to {} more",
                                arrangement_.to.size(), kMaxSpatialAxes);
    for (const std::vector<int>& axis : arrangement_.to)
      for (int letter : axis)
        if (letter >= 0 && letter < count && uses[letter] == 0)
          throw_error<InvalidInput>("letter {} of the output is in no input", letter);
    check(arrangement_.to, "the output");
    // What one input alone has and the output has not would be summed before it is multiplied.
    for (int letter = 0; letter < count; ++letter)
      if (num_inputs() == 2 && uses[letter] < 2)
        throw_error<InvalidInput>("letter {} is in one input only, and not in the output", letter);
  }

  void check_input(int input, const ValueType& type) const {
    const Lettering& lettering = arrangement_.from[input];
    bool fits = type.element == Element::kReal && std::ssize(lettering) == type.num_axes();
    for (int axis = 0; fits && axis < type.num_axes(); ++axis)
      fits = size_of(lettering[axis]) == type.axes[axis].size;
    if (!fits)
      throw_error<InvalidInput>("input {} does not have the axes {} of sizes {}", to_string(type),
                                picture(lettering), fmt::join(arrangement_.sizes, ", "));
  }

  /// An axis that counts in the same pixels as one of the inputs, or in parts or multiples of them,
  /// keeps its place in the image.
  Axis spatial_axis(const std::vector<int>& letters, int index,
                    std::span<const ValueType> inputs) const {
    const int64_t size = size_of(letters);
    for (int input = 0; input < num_inputs(); ++input)
      for (size_t axis = 2; axis < arrangement_.from[input].size(); ++axis) {
        const std::vector<int>& other = arrangement_.from[input][axis];
        Axis place = inputs[input].axes[axis];
        if (place.kind != AxisKind::kSpatial || letters.empty() || other.empty() ||
            letters.front() != other.front())
          continue;
        place.stride = place.stride * Ratio::of(place.size, size);
        place.size = size;
        return place;
      }
    return {AxisKind::kSpatial, size, index, {}};
  }

  /// Spatial axes that changed places are those of another image.
  static void number_spatial_axes(ValueType& type) {
    bool ascending = true;
    for (int axis = 3; axis < type.num_axes(); ++axis)
      ascending = ascending && type.axes[axis - 1].spatial_index < type.axes[axis].spatial_index;
    if (ascending) return;
    for (int axis = 2; axis < type.num_axes(); ++axis) {
      type.axes[axis].spatial_index = axis - 2;
      type.axes[axis].stride = {};
    }
  }

  /// Parts of a box of the output in which every letter has a range; others are whole.
  std::vector<LetterRanges> parts_of(const Box& out) const {
    LetterRanges all;
    for (int64_t size : arrangement_.sizes) all.push_back({0, size});
    std::vector<LetterRanges> parts;
    if (!out.empty()) parts.push_back(std::move(all));
    for (int axis = 0; axis < out.num_axes() && !parts.empty(); ++axis) {
      const std::vector<int>& letters = arrangement_.to[axis];
      std::vector<LetterRanges> finer;
      for (const LetterRanges& part : parts)
        for (const std::vector<Range>& digits : digit_parts(out[axis], sizes_of({letters}))) {
          LetterRanges& next = finer.emplace_back(part);
          for (size_t i = 0; i < letters.size(); ++i) next[letters[i]] = digits[i];
        }
      parts = std::move(finer);
    }
    return parts;
  }

  /// The positions that the letters reach.
  Box box_of(const Lettering& lettering, const LetterRanges& ranges) const {
    Box box;
    for (const std::vector<int>& letters : lettering) {
      const std::vector<int64_t> weights = digit_weights(sizes_of({letters}));
      Range reach{0, 1};
      for (size_t i = 0; i < letters.size(); ++i) {
        reach.begin += weights[i] * ranges[letters[i]].begin;
        reach.end += weights[i] * (ranges[letters[i]].end - 1);
      }
      box.push_back(reach);
    }
    return box;
  }

  /// The operand with an axis for each letter.
  at::Tensor spread(const Operand& operand, const Lettering& lettering,
                    const LetterRanges& ranges) const {
    const at::Tensor& tensor = operand.tensor;
    std::vector<int64_t> sizes, strides;
    int64_t offset = tensor.storage_offset();
    for (size_t axis = 0; axis < lettering.size(); ++axis) {
      const std::vector<int>& letters = lettering[axis];
      const std::vector<int64_t> weights = digit_weights(sizes_of({letters}));
      const int64_t stride = tensor.stride(static_cast<int64_t>(axis));
      int64_t position = -operand.box[static_cast<int>(axis)].begin;
      for (size_t i = 0; i < letters.size(); ++i) {
        const Range& range = ranges[letters[i]];
        position += weights[i] * range.begin;
        sizes.push_back(range.size());
        strides.push_back(weights[i] * stride);
      }
      offset += position * stride;
    }
    return tensor.as_strided(sizes, strides, offset);
  }

  /// Operands with an axis for each letter, multiplied; letters that are not in `wanted` summed.
  static at::Tensor product(const std::vector<Lettering>& letterings,
                            const std::vector<at::Tensor>& operands, const std::string& wanted) {
    std::vector<std::string> words;
    for (const Lettering& lettering : letterings) words.push_back(words_of(lettering));
    return at::einsum(fmt::format("{}->{}", fmt::join(words, ","), wanted), operands);
  }

  /// Of an input's part; 1 along letters that were summed away.
  at::Tensor gradient_of(int input, const KernelArgs& args, const LetterRanges& part) const {
    std::vector<Lettering> letterings{arrangement_.to};
    std::vector<at::Tensor> operands{spread(args.grad_output, arrangement_.to, part)};
    if (num_inputs() == 2) {
      letterings.push_back(arrangement_.from[1 - input]);
      operands.push_back(spread(args.inputs[1 - input], arrangement_.from[1 - input], part));
    }
    std::string there;
    std::vector<int64_t> missing;  // axes of the result, in ascending order
    int64_t place = 0;
    for (const std::vector<int>& axis : arrangement_.from[input])
      for (int letter : axis) {
        const bool known = std::any_of(letterings.begin(), letterings.end(),
                                       [&](const Lettering& l) { return has_letter(l, letter); });
        if (known)
          there += static_cast<char>('a' + letter);
        else
          missing.push_back(place);
        ++place;
      }
    at::Tensor gradient = product(letterings, operands, there);
    for (int64_t axis : missing) gradient = gradient.unsqueeze(axis);
    return gradient;
  }

  Arrangement arrangement_;
};

}  // namespace

ValueId rearrange(Graph& graph, ValueId x, const std::string& name,
                  const Arrangement& arrangement) {
  if (arrangement.from.size() != 1)
    throw_error<InvalidInput>("[rearrange {}] letters for {} inputs", name,
                              arrangement.from.size());
  return graph.add_node(name, std::make_shared<Arranged>(arrangement), {x});
}

ValueId contract(Graph& graph, ValueId a, ValueId b, const std::string& name,
                 const Arrangement& arrangement) {
  if (arrangement.from.size() != 2)
    throw_error<InvalidInput>("[contraction {}] letters for {} inputs", name,
                              arrangement.from.size());
  return graph.add_node(name, std::make_shared<Arranged>(arrangement), {a, b});
}

}  // namespace tessera
