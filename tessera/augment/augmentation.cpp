#include "tessera/augment/augmentation.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "tessera/base/error.h"
#include "tessera/base/key_values.h"
#include "tessera/base/suggestion.h"
#include "tessera/base/text.h"

namespace tessera {
namespace {

constexpr double kMostPixels = 1e4, kMostNumber = 1e6;

struct ChangeInfo {
  std::string name;
  std::string help;
  std::vector<KeyInfo> keys;
  std::function<void(const KeyValues&, Augmentation*)> read;
};

KeyInfo how_often(const char* value) { return {"p", value, "part of the patches"}; }
double probability(const KeyValues& keys) { return keys.real("p", 0, 1); }

/// Some of the letters z y x, in any order; empty: all.
std::string flipped_axes(const KeyValues& keys) {
  const std::string axes = keys.text("axes");
  if (axes == "all") return "";
  for (const char letter : axes)
    if (axis_letters(3).find(letter) == std::string::npos || std::ranges::count(axes, letter) > 1)
      throw_error<InvalidInput>(
          "[--augment flip] axes={} are not axes; write all, or some of the letters z, y and x, "
          "each once",
          axes);
  return axes;
}

std::vector<ChangeInfo> position_changes() {
  return {
      {"flip",
       "mirror images",
       {{"axes", "all", "letters of z y x, or all"}, {"p", "0.5", "of each axis for itself"}},
       [](const KeyValues& keys, Augmentation* to) {
         to->flip = {flipped_axes(keys), probability(keys)};
       }},
      {"rotate90",
       "turns by right angles",
       {{"axes", "yx", "the plane yx, or all planes of a volume"}, how_often("1")},
       [](const KeyValues& keys, Augmentation* to) {
         to->rotate90 = {keys.choice("axes", {"yx", "all"}) == "all", probability(keys)};
       }},
      {"affine",
       "turns, sizes, slants and shifts",
       {{"rotate", "15", "degrees, to both sides"},
        {"scale", "0.1", "0.1: each axis by 1/1.1 to 1.1"},
        {"shear", "0", "pixels per pixel, to both sides"},
        {"translate", "0", "part of the patch, to both sides"},
        how_often("1")},
       [](const KeyValues& keys, Augmentation* to) {
         to->affine = {keys.real("rotate", 0, 180), keys.real("scale", 0, 10),
                       keys.real("shear", 0, 2), keys.real("translate", 0, 1), probability(keys)};
       }},
      {"zoom",
       "one size for all axes",
       {{"low", "0.8", "the least factor"}, {"high", "1.25", "the most"}, how_often("1")},
       [](const KeyValues& keys, Augmentation* to) {
         to->zoom = {keys.real("low", 0.01, 100), keys.real("high", 0.01, 100), probability(keys)};
         if (to->zoom->low > to->zoom->high)
           throw_error<InvalidInput>("[--augment zoom] low={} is above high={}; swap them",
                                     to->zoom->low, to->zoom->high);
       }},
      {"elastic",
       "smooth random displacements",
       {{"size", "4", "their standard deviation at the points of a grid, in pixels"},
        {"spacing", "32", "of the grid, in pixels"},
        how_often("1")},
       [](const KeyValues& keys, Augmentation* to) {
         to->elastic = {keys.real("size", 0, kMostPixels),
                        keys.integer("spacing", 2, int64_t{1} << 20), probability(keys)};
       }}};
}

std::vector<ChangeInfo> number_changes() {
  return {{"blur",
           "by a Gaussian",
           {{"sigma", "1", "the most, in pixels"}, how_often("0.5")},
           [](const KeyValues& keys, Augmentation* to) {
             to->blur = {keys.real("sigma", 0.01, 100), probability(keys)};
           }},
          {"gamma",
           "x becomes x^g, with the sign that it has",
           {{"range", "0.3", "0.3: g from 1/1.3 to 1.3"}, how_often("1")},
           [](const KeyValues& keys, Augmentation* to) {
             to->gamma = {keys.real("range", 0, 10), probability(keys)};
           }},
          {"contrast",
           "x becomes centre + factor * (x - centre)",
           {{"range", "0.2", "0.2: factors from 1/1.2 to 1.2"},
            {"centre", "0", "what stays as it is"},
            how_often("1")},
           [](const KeyValues& keys, Augmentation* to) {
             to->contrast = {keys.real("range", 0, 10),
                             keys.real("centre", -kMostNumber, kMostNumber), probability(keys)};
           }},
          {"brightness",
           "a number that is added",
           {{"range", "0.1", "the most, to both sides"}, how_often("1")},
           [](const KeyValues& keys, Augmentation* to) {
             to->brightness = {keys.real("range", 0, kMostNumber), probability(keys)};
           }},
          {"noise",
           "normal noise, of its own for each pixel",
           {{"std", "0.05", "standard deviation"}, how_often("1")},
           [](const KeyValues& keys, Augmentation* to) {
             to->noise = {keys.real("std", 0, kMostNumber), probability(keys)};
           }},
          {"dropout",
           "boxes without an image",
           {{"boxes", "4", "how many"},
            {"size", "0.15", "part of the patch's sides"},
            {"fill", "0", "what they hold"},
            how_often("1")},
           [](const KeyValues& keys, Augmentation* to) {
             to->dropout = {keys.integer("boxes", 1, 10'000), keys.real("size", 0, 1),
                            keys.real("fill", -kMostNumber, kMostNumber), probability(keys)};
           }}};
}

const std::vector<ChangeInfo>& all_changes() {
  static const std::vector<ChangeInfo> changes = [] {
    std::vector<ChangeInfo> all = position_changes();
    for (ChangeInfo& each : number_changes()) all.push_back(std::move(each));
    return all;
  }();
  return changes;
}

std::vector<std::string> change_names() {
  std::vector<std::string> names;
  for (const ChangeInfo& change : all_changes()) names.push_back(change.name);
  return names;
}

const ChangeInfo& change_called(const std::string& name) {
  for (const ChangeInfo& change : all_changes())
    if (change.name == name) return change;
  throw_error<InvalidInput>(
      "[--augment] '{}' is not a known change{}; write some of {}, joined by +, each with options: "
      "flip+affine:rotate=15,scale=0.1",
      name, did_you_mean(name, change_names()), joined(change_names()));
}

}  // namespace

std::string axis_letters(int num_axes) {
  return std::string("zyx").substr(static_cast<size_t>(3 - num_axes));
}

void check_axes(const Augmentation& augmentation, int num_axes) {
  if (!augmentation.flip) return;
  const std::string& axes = augmentation.flip->axes;
  const std::string letters = axis_letters(num_axes);
  if (axes.find_first_not_of(letters) != std::string::npos)
    throw_error<InvalidInput>(
        "[--augment flip] axes={}, and the images have the axes {}; write all, or some of them",
        axes, letters);
}

Augmentation parse_augmentation(const std::string& text) {
  Augmentation augmentation;
  if (text.empty()) return augmentation;
  std::vector<std::string> seen;
  for (const std::string& part : split_text(text, '+')) {
    const size_t colon = std::min(part.find(':'), part.size());
    const std::string name = part.substr(0, colon);
    const ChangeInfo& change = change_called(name);
    if (std::ranges::count(seen, name) > 0)
      throw_error<InvalidInput>("[--augment] {} is given twice; give it once", name);
    seen.push_back(name);
    change.read(KeyValues("--augment " + name, colon < part.size() ? part.substr(colon + 1) : "",
                          change.keys),
                &augmentation);
  }
  return augmentation;
}

std::string augmentation_help() {
  std::string text;
  for (const ChangeInfo& change : all_changes()) {
    text += fmt::format("{:<12}{}\n", change.name, change.help);
    for (const KeyInfo& key : change.keys)
      text += fmt::format("  {:<20}{}\n", key.name + "=" + key.default_value, key.help);
  }
  return text;
}

}  // namespace tessera
