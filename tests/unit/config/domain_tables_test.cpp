// Tables of a configuration file that describe the data of single domains.

#include <gtest/gtest.h>

#include "tessera/config/config_layer.h"
#include "tests/unit/refusal.h"

namespace tessera::domain_tables_test {
namespace {

TrainConfig from_file(const std::string& toml) {
  TrainConfig config;
  apply_layer(config, parse_config(toml, "run.toml"));
  return config;
}

void expect_refused(const std::string& toml, const std::string& message) {
  EXPECT_EQ(refusal([&] { from_file(toml); }), message) << toml;
}

const std::string kSource = "[data.source]\nsource = 'folder:mnist'\n";

TEST(DomainTables, SayWhatTheOptionsSay) {
  const TrainConfig config = from_file(kSource + R"(
    batch = 32
    [data]
    normalise = "scale"
    [data.target2]
    source = "list:street.csv"
    batch = 8
    shuffle = false
    classes = 10
    mpp = 0.5
    [data.target1]
    source = "files:a.npy,b.npy"
  )");
  EXPECT_EQ(config.data,
            "source=folder:mnist;target1=files:a.npy,b.npy;"
            "target2=list:street.csv,shuffle=no,classes=10,mpp=0.5");
  EXPECT_EQ(config.batch, 32);
  EXPECT_EQ(config.target_batch, "0/8");
  EXPECT_EQ(config.normalise, "scale");
}

TEST(DomainTables, CountEpochsOfEachDomain) {
  const TrainConfig config =
      from_file(kSource + "epochs = 5\n[data.target2]\nsource = 'folder:m'\nepochs = 3\n");
  EXPECT_EQ(config.data, "source=folder:mnist;target2=folder:m");
  EXPECT_EQ(config.epochs, 5);
  EXPECT_EQ(config.target_epochs, "0/3");
  expect_refused(kSource + "epochs = 1.5",
                 "run.toml:3:1: [data.source] epochs must be a whole number from 1 on");
}

/// What a file does not say of batches stays what it was.
TEST(DomainTables, MayLeaveBatchesToTheModel) {
  const TrainConfig config = from_file(kSource + "[data.target1]\nsource = 'folder:m'\n");
  EXPECT_EQ(config.data, "source=folder:mnist;target1=folder:m");
  EXPECT_EQ(config.batch, 0);
  EXPECT_EQ(config.target_batch, "");
}

TEST(DomainTables, AreOverriddenByTheCommandLine) {
  TrainConfig config = from_file(kSource + "[data.target1]\nsource = 'folder:m'\nbatch = 8\n");
  apply_layer(config, {config_option("--data", "source=folder:a;target1=folder:b"),
                       config_option("--target-batch", "4")});
  EXPECT_EQ(config.data, "source=folder:a;target1=folder:b");
  EXPECT_EQ(config.target_batch, "4");
}

TEST(DomainTables, RefuseWhatIsNoDataOfADomain) {
  expect_refused("[data.goal]\nsource = 'a'",
                 "run.toml:2:1: [data.goal] does not name a domain; write [data.source], "
                 "[data.target1], [data.target2], ...");
  expect_refused(kSource + "[data.target1]\nbatch = 8",
                 "run.toml:4:1: [data.target1] has no source; name its data set: source = "
                 "\"folder:PATH\"");
  expect_refused(kSource + "batch = 0",
                 "run.toml:3:1: [data.source] batch must be a whole number from 1 on");
  expect_refused(kSource + "batch = '8'",
                 "run.toml:3:1: [data.source] batch must be a whole number from 1 on");
  expect_refused(kSource + "classes = [1, 2]",
                 "run.toml:3:1: [data.source] classes is an array; give a single value");
  expect_refused("[data.source]\nsource = 'folder:a;b'",
                 "run.toml:2:1: [data.source] source holds a ';', which stands between domains; "
                 "rename the files");
  expect_refused("[data]\nsource = 'folder:a'\n" + kSource,
                 "run.toml:3:1: Error while parsing table header: cannot redefine existing string "
                 "'data.source' as table");
  expect_refused("[model.source]\nname = 'a'",
                 "run.toml:2:1: the table [model.source] is not known; known: [model], [data], "
                 "[train], [optimiser], [schedule], [placement], [run]");
}

}  // namespace
}  // namespace tessera::domain_tables_test
