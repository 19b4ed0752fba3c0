// state.json with a right checksum and wrong values: somebody has edited it with care.

#include "tessera/checkpoint/state_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tessera/graph/checksum.h"
#include "tests/unit/checkpoint/example_state.h"
#include "tests/unit/refusal.h"

namespace tessera::state_file_test {
namespace {

using nlohmann::json;

json valid_state() {
  StateFile file{example_state(7), false, 100, {{"model.w", 5}}};
  return json::parse(format_state(file));
}

std::string signed_text(json state) {
  state.erase("checksum");
  const std::string sum = checksum_text(checksum(state.dump()));
  state["checksum"] = sum;
  return state.dump();
}

void expect_refused(const std::string& key, const json& value, const std::string& part) {
  SCOPED_TRACE(key + " " + value.dump());
  json state = valid_state();
  state[key] = value;
  expect_refusal([&] { parse_state(signed_text(state)); }, part);
}

TEST(StateFile, ComesBack) {
  EXPECT_EQ(parse_state(signed_text(valid_state())).state.step, 7);
  EXPECT_EQ(parse_state(signed_text(valid_state())).checksums.at("model.w"), 5u);
}

TEST(StateFile, EveryValueIsChecked) {
  for (const char* key : {"step", "epoch", "position_in_epoch"})
    for (const json& bad :
         {json(-1), json("7"), json(1.5), json(), json(true), json(UINT64_MAX), json::array({7})})
      expect_refused(key, bad, fmt::format("\"{}\" holds ", key));
  expect_refused("step", INT64_MAX, "give a whole number from 0 to 1099511627776");
  for (const char* key : {"seed", "tensor_file_bytes"})
    for (const json& bad : {json(-1), json("7"), json(1.5)})
      expect_refused(key, bad, fmt::format("\"{}\" holds ", key));
  for (const json& bad : {json(1), json("much"), json("")})
    expect_refused("best_metric", bad, "\"best_metric\" holds ");
  expect_refused("is_best", 1, "\"is_best\" holds 1, which is not true or false");
  expect_refused("metadata", json::array(), "\"metadata\" holds [], which is not an object");
  expect_refused("metadata", {{"model", 3}}, "\"model\" holds 3, which is not a text");
  expect_refused("tensor_checksums", {{"w", 3}}, "\"w\" holds 3, which is not a text");
  expect_refused("tensor_checksums", {{"w", "xyz"}}, "\"xyz\" is not a checksum");
  expect_refused("tensor_checksums", 3, "which is not an object");
}

TEST(StateFile, EveryValueMustBeThere) {
  const json state = valid_state();
  for (const auto& [key, value] : state.items()) {
    if (key == "format" || key == "version" || key == "checksum") continue;
    json without = state;
    without.erase(key);
    expect_refusal([&] { parse_state(signed_text(without)); },
                   fmt::format("\"{}\" is missing", key));
  }
}

}  // namespace
}  // namespace tessera::state_file_test
