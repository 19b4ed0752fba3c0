#include "tessera/loss/loss_spec.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tessera/base/error.h"
#include "tessera/base/suggestion.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

constexpr double kLarge = 1e6;  // options beyond it are slips of the pen

struct TermInfo : LossInfo {
  std::function<LossTerm(const KeyValues&)> read;
};

TargetKind read_target(const KeyValues& given) {
  const std::string target = given.choice("target", {"any", "labels", "real"});
  if (target == "any") return TargetKind::kEither;
  return target == "labels" ? TargetKind::kLabels : TargetKind::kReal;
}

bool read_flag(const KeyValues& given, const std::string& key) {
  return given.choice(key, {"yes", "no"}) == "yes";
}

int64_t read_ignore_index(const KeyValues& given) {
  using Limits = std::numeric_limits<int64_t>;
  return given.integer("ignore_index", Limits::min(), Limits::max());
}

bool weights_by_labels(const KeyValues& given) { return given.says("class_weights", "auto"); }

std::vector<double> read_class_weights(const KeyValues& given) {
  if (weights_by_labels(given)) return {};
  return given.reals("class_weights", 0, kLarge);
}

LossTerm read_cross_entropy(const KeyValues& given) {
  CrossEntropyOptions options;
  options.class_weights = read_class_weights(given);
  options.ignore_index = read_ignore_index(given);
  options.label_smoothing = given.real("label_smoothing", 0, 1);
  return {.target = TargetKind::kLabels,
          .options = options,
          .weights_by_labels = weights_by_labels(given)};
}

LossTerm read_bce(const KeyValues& given) {
  BinaryCrossEntropyOptions options;
  options.pos_weight = given.reals("pos_weight", 0, kLarge);
  options.ignore_index = read_ignore_index(given);
  return {.target = read_target(given), .options = options};
}

LossTerm read_dice(const KeyValues& given) {
  const std::string activation = given.choice("activation", {"auto", "sigmoid", "softmax", "none"});
  DiceOptions options;
  if (activation == "softmax") options.activation = DiceOptions::Activation::kSoftmax;
  if (activation == "none") options.activation = DiceOptions::Activation::kNone;
  options.smooth = given.real("smooth", 0, kLarge);
  options.squared_denominator = read_flag(given, "squared_denominator");
  if (given.choice("average", {"sample", "batch"}) == "batch")
    options.average = DiceOptions::Average::kBatch;
  options.include_background = read_flag(given, "include_background");
  options.ignore_index = read_ignore_index(given);
  return {.target = read_target(given),
          .options = options,
          .activation_by_target = activation == "auto"};
}

LossTerm read_focal(const KeyValues& given) {
  FocalOptions options;
  options.gamma = given.real("gamma", 0, kLarge);
  options.alpha = given.real("alpha", -1, 1);
  options.class_weights = read_class_weights(given);
  options.ignore_index = read_ignore_index(given);
  TargetKind target = read_target(given);
  if (given.choice("form", {"sigmoid", "softmax"}) == "softmax") {
    options.form = FocalOptions::Form::kSoftmax;
    if (target == TargetKind::kReal)
      throw_error<InvalidInput>(
          "[loss focal] form=softmax is for labels, and target=real was given; use form=sigmoid");
    target = TargetKind::kLabels;
  } else if (weights_by_labels(given)) {
    throw_error<InvalidInput>(
        "[loss focal] class_weights=auto is for labels; use it with form=softmax");
  }
  return {.target = target, .options = options, .weights_by_labels = weights_by_labels(given)};
}

std::vector<TermInfo> classification_terms() {
  const KeyInfo ignore_index{"ignore_index", "-100", "label of pixels that do not count"};
  const KeyInfo target{"target", "any",
                       "labels, real, or any: labels unless another term wants real"};
  return {
      {"cross_entropy",
       "softmax cross entropy against labels",
       {{"class_weights", "",
         "one factor per class, such as 1/2/1; auto: by the labels of the training samples"},
        ignore_index,
        {"label_smoothing", "0", "from 0 to 1"}},
       read_cross_entropy},
      {"bce",
       "binary cross entropy of each channel",
       {{"pos_weight", "", "factor on yes: one, or one per channel, such as 2/3"},
        ignore_index,
        target},
       read_bce},
      {"dice",
       "one minus the overlap of each class",
       {{"activation", "auto",
         "sigmoid, softmax, none, or auto: softmax for several classes of "
         "labels, else sigmoid"},
        {"smooth", "1e-5", "added to numerator and denominator"},
        {"squared_denominator", "no", "yes or no"},
        {"average", "sample", "sample: mean over samples and classes; batch: sums over the batch"},
        {"include_background", "yes", "no leaves channel 0 out"},
        ignore_index,
        target},
       read_dice},
      {"focal",
       "cross entropy that counts easy pixels less",
       {{"gamma", "2", "how much less; 0: not"},
        {"alpha", "-1", "share of yes, 0 to 1 (sigmoid form); below 0: none"},
        {"class_weights", "", "one factor per class, such as 1/2/1, or auto (softmax form)"},
        {"form", "sigmoid", "sigmoid: each channel for itself; softmax: labels"},
        ignore_index,
        target},
       read_focal}};
}

std::vector<TermInfo> regression_terms() {
  return {{"mse",
           "mean squared error against real targets",
           {},
           [](const KeyValues&) {
             return LossTerm{.target = TargetKind::kReal, .options = MeanSquaredErrorOptions{}};
           }},
          {"l1",
           "mean absolute error against real targets",
           {},
           [](const KeyValues&) {
             return LossTerm{.target = TargetKind::kReal, .options = MeanAbsoluteErrorOptions{}};
           }},
          {"smooth_l1",
           "absolute error, quadratic for small ones",
           {{"beta", "1", "where it becomes linear; at least 0"}},
           [](const KeyValues& given) {
             return LossTerm{.target = TargetKind::kReal,
                             .options = SmoothL1Options{.beta = given.real("beta", 0, kLarge)}};
           }},
          {"huber",
           "squared error, linear for large ones",
           {{"delta", "1", "where it becomes linear; above 0"}},
           [](const KeyValues& given) {
             return LossTerm{.target = TargetKind::kReal,
                             .options = HuberOptions{.delta = given.real("delta", 1e-12, kLarge)}};
           }}};
}

const std::vector<TermInfo>& known_terms() {
  static const std::vector<TermInfo> all = [] {
    std::vector<TermInfo> terms = classification_terms();
    for (TermInfo& term : regression_terms()) terms.push_back(std::move(term));
    return terms;
  }();
  return all;
}

const TermInfo& find_term(const std::string& name) {
  std::vector<std::string> names;
  for (const TermInfo& info : known_terms()) {
    if (info.name == name) return info;
    names.push_back(info.name);
  }
  throw_error<InvalidInput>("[loss] '{}' is not a known loss{}; known: {}", name,
                            did_you_mean(name, names), joined(names));
}

LossTerm parse_term(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const size_t star = text.find('*');
  const bool has_factor = star < colon;
  const size_t begin = has_factor ? star + 1 : 0;
  const std::string name = text.substr(begin, colon - begin);
  const TermInfo& info = find_term(name);
  if (colon + 1 == text.size())
    throw_error<InvalidInput>("[loss {}] nothing follows the ':'; write key=value; {}", info.name,
                              legal_keys(info.keys));
  const std::string options = colon < text.size() ? text.substr(colon + 1) : "";
  LossTerm term = info.read(KeyValues(fmt::format("loss {}", info.name), options, info.keys));
  term.name = info.name;
  const std::optional<double> factor = has_factor ? read_number<double>(text.substr(0, star)) : 1.0;
  if (!factor || !std::isfinite(*factor))
    throw_error<InvalidInput>("[loss {}] the factor '{}' must be a number, such as 0.5*{}",
                              info.name, text.substr(0, star), info.name);
  std::visit([&](auto& any) { any.weight = *factor; }, term.options);
  return term;
}

}  // namespace

LossSpec parse_loss(const std::string& text) {
  std::string compact = text;
  std::erase(compact, ' ');
  LossSpec spec;
  for (const std::string& term : split_text(compact, '+')) spec.terms.push_back(parse_term(term));
  return spec;
}

std::vector<LossInfo> known_losses() { return {known_terms().begin(), known_terms().end()}; }

std::string loss_help() {
  std::string help = "Terms joined by '+', each [factor*]name[:key=value,...]:\n";
  for (const TermInfo& info : known_terms()) {
    help += fmt::format("  {:<34} {}\n", info.name, info.summary);
    for (const KeyInfo& key : info.keys)
      help += fmt::format(
          "    {:<32} {}\n",
          fmt::format("{}={}", key.name, key.default_value.empty() ? "..." : key.default_value),
          key.help);
  }
  return help;
}

}  // namespace tessera
