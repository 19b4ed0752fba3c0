// Standard streams that are closed, full or broken: a result that is lost is an error with a word,
// words that are lost are not, and no stream gets into a file.

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/attack/writers/job.h"

namespace tessera::streams_test {
namespace {

using namespace attack;

bool says(const Ending& ending, const std::string& part) {
  return ending.err.find(part) != std::string::npos;
}

TEST(Streams, ThatAreClosedDoNotGetIntoFiles) {
  const Job train = job("train");
  const std::map<std::string, std::string> wanted = undisturbed(train);
  for (int closed = 0; closed < 8; ++closed) {
    SCOPED_TRACE(closed);
    const Folder folder;
    const auto state = [&](int bit) { return closed & bit ? Stream::kClosed : Stream::kOpen; };
    const Ending ending = run(train.words, folder.path(), {state(1), state(2), state(4)});
    EXPECT_EQ(ending.exit_code, 0) << ending.err;
    for (const Output& output : train.outputs)
      if (output.repeatable) {
        EXPECT_TRUE(read_file(folder / output.name) == wanted.at(output.name)) << output.name;
      }
    EXPECT_EQ(read_file(folder / "run/run.json").front(), '{');
  }
}

TEST(Streams, AResultThatCannotBeWrittenIsAnError) {
  const Folder folder;
  const Words plan = job("plan").words;
  Words json = plan;
  json.push_back("--json");
  for (const Words& words : {plan, json, Words{"--help"}, Words{"--version"}, Words{"models"},
                             Words{"inspect", "cnn2d"}}) {
    const Ending ending = run(words, folder.path(), {.out = Stream::kFull});
    EXPECT_EQ(ending.exit_code, 2) << words[0];
    EXPECT_TRUE(says(ending, "[stdout] cannot be written: No space left on device")) << ending.err;
  }
}

// The result is that of rank 0, which hands it to mpirun, and that to the launching process.
TEST(Streams, AResultOfProcessesThatCannotBeWrittenIsAnErrorToo) {
  if (!mpirun_is_installed()) GTEST_SKIP() << "mpirun is not installed";
  const Folder folder;
  Words words = job("verify").words;
  words.insert(words.end(), {"--launch", "mpi"});
  const Ending ending = run(words, folder.path(), {.out = Stream::kFull});
  EXPECT_EQ(ending.exit_code, 2);
  EXPECT_TRUE(says(ending, "[stdout] cannot be written: No space left on device")) << ending.err;
}

TEST(Streams, AResultBeyondTheLimitOfFilesIsAnError) {
  const Folder folder;
  for (const uint64_t limit : {0, 1000}) {
    // stdout and stderr are files, too, so there is no word to be read where the limit is 0.
    const Ending ending = run({"models"}, folder.path(), {.most_file_bytes = limit});
    EXPECT_EQ(ending.exit_code, 2) << limit;
    EXPECT_EQ(ending.out.size(), limit);
  }
}

TEST(Streams, AReaderThatHasGoneHasWhatItWanted) {
  const Folder folder;
  for (const Words& words : {Words{"models"}, job("plan").words}) {
    const Ending ending = run(words, folder.path(), {.out = Stream::kBrokenPipe});
    EXPECT_EQ(ending.exit_code, 0) << words[0];
    EXPECT_EQ(ending.err, "") << words[0];
  }
}

TEST(Streams, WordsThatNobodyReadsDoNotChangeTheExitCode) {
  const Folder folder;
  const Words refused{"plan", "unet2d", "--space", "999x1"};
  for (const Stream err : {Stream::kClosed, Stream::kFull, Stream::kBrokenPipe}) {
    EXPECT_EQ(run(refused, folder.path(), {.err = err}).exit_code, 2);
    EXPECT_EQ(run(job("plan").words, folder.path(), {.err = err}).exit_code, 0);
  }
  EXPECT_EQ(run({"no-such-command"}, folder.path(), {.err = Stream::kFull}).exit_code, 2);
  // Neither stream can be written: the result is lost all the same.
  const Ending neither =
      run({"models"}, folder.path(), {.out = Stream::kFull, .err = Stream::kFull});
  EXPECT_EQ(neither.exit_code, 2);
}

}  // namespace
}  // namespace tessera::streams_test
