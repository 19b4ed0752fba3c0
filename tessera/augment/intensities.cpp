#include "tessera/augment/intensities.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tessera/augment/image_statistics.h"
#include "tessera/base/error.h"
#include "tessera/base/key_values.h"
#include "tessera/base/suggestion.h"
#include "tessera/base/text.h"
#include "tessera/files/json.h"

namespace tessera {
namespace {

constexpr double kMost = std::numeric_limits<float>::max();
constexpr const char* kPlace = "--normalise";

const std::vector<std::string>& normalisation_names() {
  static const std::vector<std::string> names{"none",   "scale",       "z-score",
                                              "window", "percentiles", "given"};
  return names;
}

void check_order(const std::string& name, double low, double high) {
  if (low >= high)
    throw_error<InvalidInput>("[{} {}] low={} is not below high={}", kPlace, name, low, high);
}

Normalisation read_given(const std::string& options) {
  const KeyValues keys("--normalise given", options, {{"mean"}, {"deviation"}});
  Normalisation given{Normalisation::Kind::kGiven};
  given.means = keys.reals("mean", -kMost, kMost);
  given.deviations = keys.reals("deviation", 1e-30, kMost);
  if (given.means.empty() || given.means.size() != given.deviations.size())
    throw_error<InvalidInput>(
        "[{} given] {} and {}; give one of each for every channel: "
        "given:mean=0.5/0.4/0.4,deviation=0.2/0.2/0.2",
        kPlace, counted(std::ssize(given.means), "mean"),
        counted(std::ssize(given.deviations), "deviation"));
  return given;
}

/// The largest number of a type of whole numbers.
double full_scale(PixelType type) {
  const int bits = static_cast<int>(bytes_of(type)) * 8;
  return is_real(type) ? 1 : std::ldexp(1, bits - is_signed(type)) - 1;
}

/// What becomes 1 by --normalise scale. Images that are made up have no type, and stay.
double full_scale(const Dataset& images) {
  const std::set<PixelType> types = images.pixel_types();
  if (types.empty()) return 1;
  if (types.size() == 1) return full_scale(*types.begin());
  std::vector<std::string> names;
  for (PixelType type : types) names.emplace_back(name_of(type));
  throw_error<InvalidInput>(
      "[{} scale] the files hold {}, and each type has a scale of its own; store all images in one "
      "type, or use z-score or percentiles",
      kPlace, joined(names, " and "));
}

Intensities fixed(std::vector<double> means, std::vector<double> deviations) {
  Intensities made;
  made.kind = Intensities::Kind::kFixed;
  made.means = std::move(means);
  made.deviations = std::move(deviations);
  return made;
}

Intensities of_training_set(const Dataset& training_set) {
  std::vector<double> means, deviations;
  for (const ImageMoments& channel : all_moments(training_set)) {
    means.push_back(channel.mean);
    // A channel of one value has nothing to be divided by.
    deviations.push_back(channel.deviation() > 0 ? channel.deviation() : 1);
  }
  return fixed(means, deviations);
}

const std::vector<std::pair<Intensities::Kind, std::string>>& kind_names() {
  using Kind = Intensities::Kind;
  static const std::vector<std::pair<Kind, std::string>> names{{Kind::kNone, "none"},
                                                               {Kind::kFixed, "fixed"},
                                                               {Kind::kZScoreImage, "z-score"},
                                                               {Kind::kPercentiles, "percentiles"},
                                                               {Kind::kWindow, "window"}};
  return names;
}

}  // namespace

Normalisation parse_normalisation(const std::string& text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const std::string name = text.substr(0, colon);
  const std::string options = colon < text.size() ? text.substr(colon + 1) : "";
  const std::string place = fmt::format("{} {}", kPlace, name);
  Normalisation made;
  if (name.empty() || name == "none" || name == "scale") {
    KeyValues(place, options, {});
    made.kind = name == "scale" ? Normalisation::Kind::kScale : Normalisation::Kind::kNone;
  } else if (name == "z-score") {
    const KeyValues keys(place, options, {{"over", "image", "image or set"}});
    made.kind = keys.choice("over", {"image", "set"}) == "set" ? Normalisation::Kind::kZScoreSet
                                                               : Normalisation::Kind::kZScoreImage;
  } else if (name == "window" || name == "percentiles") {
    const bool window = name == "window";
    const KeyValues keys(place, options,
                         {{"low", window ? "-160" : "1"}, {"high", window ? "240" : "99"}});
    const double least = window ? -kMost : 0, most = window ? kMost : 100;
    made.kind = window ? Normalisation::Kind::kWindow : Normalisation::Kind::kPercentiles;
    made.low = keys.real("low", least, most);
    made.high = keys.real("high", least, most);
    check_order(name, made.low, made.high);
  } else if (name == "given") {
    made = read_given(options);
  } else {
    throw_error<InvalidInput>("[{}] '{}' is not known{}; write one of {}", kPlace, name,
                              did_you_mean(name, normalisation_names()),
                              joined(normalisation_names()));
  }
  return made;
}

Intensities fitted(const Normalisation& normalisation, const Dataset& training_set) {
  using Kind = Normalisation::Kind;
  const int64_t channels = training_set.image_shape_of(0).at(0);
  Intensities made;
  made.low = normalisation.low;
  made.high = normalisation.high;
  switch (normalisation.kind) {
    case Kind::kNone:
      break;
    case Kind::kScale:
      return fixed(std::vector<double>(channels, 0),
                   std::vector<double>(channels, full_scale(training_set)));
    case Kind::kGiven:
      if (std::ssize(normalisation.means) != channels)
        throw_error<InvalidInput>("[{} given] {} for images of {}; give one for each", kPlace,
                                  counted(std::ssize(normalisation.means), "mean"),
                                  counted(channels, "channel"));
      return fixed(normalisation.means, normalisation.deviations);
    case Kind::kZScoreSet:
      return of_training_set(training_set);
    case Kind::kZScoreImage:
      made.kind = Intensities::Kind::kZScoreImage;
      break;
    case Kind::kPercentiles:
      made.kind = Intensities::Kind::kPercentiles;
      break;
    case Kind::kWindow:
      made.kind = Intensities::Kind::kWindow;
      break;
  }
  return made;
}

std::string to_json(const Intensities& intensities) {
  nlohmann::ordered_json json;
  for (const auto& [kind, name] : kind_names())
    if (kind == intensities.kind) json["kind"] = name;
  if (intensities.kind == Intensities::Kind::kFixed) {
    json["means"] = intensities.means;
    json["deviations"] = intensities.deviations;
  }
  if (intensities.low != intensities.high) {
    json["low"] = intensities.low;
    json["high"] = intensities.high;
  }
  return json_text(json);
}

Intensities intensities_from_json(const std::string& text) {
  const auto refuse = [&](const std::string& why) {
    throw_error<InvalidInput>("[intensities] {}: {}", excerpt(text), why);
  };
  const nlohmann::json json = parse_json(text);
  if (!json.is_object() || !json.contains("kind")) refuse("is not an object with a kind");
  Intensities made;
  bool known = false;
  for (const auto& [kind, name] : kind_names())
    if (json["kind"] == name) made.kind = kind, known = true;
  if (!known) refuse("its kind is not known");
  const auto number = [&](const char* name) {
    if (!json.contains(name)) return 0.0;
    if (!json[name].is_number()) refuse(fmt::format("its {} is not a number", name));
    return json[name].get<double>();
  };
  const auto numbers = [&](const char* name) {
    std::vector<double> list;
    if (!json.contains(name) || !json[name].is_array())
      refuse(fmt::format("its {} are not a list", name));
    for (const nlohmann::json& each : json[name]) {
      if (!each.is_number()) refuse(fmt::format("its {} are not numbers", name));
      list.push_back(each.get<double>());
    }
    return list;
  };
  made.low = number("low");
  made.high = number("high");
  if (made.kind == Intensities::Kind::kFixed) {
    made.means = numbers("means");
    made.deviations = numbers("deviations");
    if (made.means.empty() || made.means.size() != made.deviations.size())
      refuse("it needs a mean and a deviation for every channel");
  }
  const bool has_ends =
      made.kind == Intensities::Kind::kPercentiles || made.kind == Intensities::Kind::kWindow;
  if (has_ends && !(made.low < made.high)) refuse("its low is not below its high");
  return made;
}

}  // namespace tessera
