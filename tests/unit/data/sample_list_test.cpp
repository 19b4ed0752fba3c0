// Folders, tables and JSON files as lists of samples. Files are empty: nobody opens them here.

#include "tessera/data/sample_list.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tessera/data/folder_list.h"
#include "tessera/data/json_list.h"
#include "tessera/data/mask_values.h"
#include "tessera/data/table_list.h"
#include "tests/unit/refusal.h"
#include "tests/unit/scratch_folder.h"

namespace tessera::sample_list_test {
namespace {

using Names = std::vector<std::string>;

class SampleListTest : public testing::Test {
 protected:
  void touch(const Names& names) {
    for (const std::string& name : names) {
      std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
      write_bytes(folder_ / name, "");
    }
  }
  std::string list(const std::string& name, const std::string& text) {
    write_bytes(folder_ / name, text);
    return folder_ / name;
  }
  /// Of all samples: "images > target", as seen from the folder.
  Names pairs(const SampleList& list) const {
    Names all;
    for (const ListedSample& sample : list.samples) {
      std::string text;
      for (const std::string& image : sample.images) text += short_of(image) + " ";
      all.push_back(text + "> " + short_of(sample.target));
    }
    return all;
  }
  std::string short_of(const std::string& path) const {
    return path.starts_with(folder_.path()) ? path.substr(folder_.path().size() + 1) : path;
  }
  ScratchFolder folder_;
};

Names names_of(const SampleList& list) {
  Names names;
  for (const ListedSample& sample : list.samples) names.push_back(sample.name);
  return names;
}

std::vector<int64_t> labels_of(const SampleList& list) {
  std::vector<int64_t> labels;
  for (const ListedSample& sample : list.samples) labels.push_back(sample.label.value_or(-1));
  return labels;
}

std::vector<SamplePart> parts_of(const SampleList& list) {
  std::vector<SamplePart> parts;
  for (const ListedSample& sample : list.samples) parts.push_back(sample.part);
  return parts;
}

TEST_F(SampleListTest, ImagesAndMasksByStem) {
  touch({"images/b.tif", "images/a.nii.gz", "images/notes.txt", "images/.hidden.png", "masks/a.png",
         "masks/b_mask.png"});
  const SampleList list = list_folder(folder_.path());
  EXPECT_EQ(pairs(list),
            (Names{"images/a.nii.gz > masks/a.png", "images/b.tif > masks/b_mask.png"}));
  EXPECT_EQ(names_of(list), (Names{"a", "b"}));
  touch({"images/c.tif"});
  expect_refusal([&] { list_folder(folder_.path()); }, "images/c.tif has no mask");
  touch({"masks/c.png", "masks/d.png"});
  expect_refusal([&] { list_folder(folder_.path()); }, "masks/d.png has no image of that name");
  touch({"masks/c.tif"});
  expect_refusal([&] { list_folder(folder_.path()); }, "are masks of one name");
}

TEST_F(SampleListTest, ChannelsOfOneImage) {
  touch({"imagesTr/x_0000.nii", "imagesTr/x_0001.nii", "imagesTr/y_0000.nii", "imagesTr/y_0001.nii",
         "labelsTr/x.nii", "labelsTr/y.nii", "imagesTs/z_0000.nii", "imagesTs/z_0001.nii"});
  const SampleList list = list_folder(folder_.path());
  EXPECT_EQ(pairs(list), (Names{"imagesTr/x_0000.nii imagesTr/x_0001.nii > labelsTr/x.nii",
                                "imagesTr/y_0000.nii imagesTr/y_0001.nii > labelsTr/y.nii",
                                "imagesTs/z_0000.nii imagesTs/z_0001.nii > "}));
  EXPECT_EQ(names_of(list), (Names{"x", "y", "z"}));
  EXPECT_EQ(list.samples[2].part, SamplePart::kTest);
}

/// Numbers at the end count images where the masks have them, too.
TEST_F(SampleListTest, NumbersAreNotAlwaysChannels) {
  touch({"images/x_0000.npy", "images/x_0001.npy", "masks/x_0000.npy", "masks/x_0001.npy"});
  EXPECT_EQ(list_folder(folder_.path()).samples.size(), 2u);
  std::filesystem::remove_all(folder_ / "masks");
  EXPECT_EQ(list_folder(folder_.path()).samples.size(), 2u);
}

TEST_F(SampleListTest, AFolderForEachClass) {
  touch({"dog/1.png", "cat/1.png", "cat/2.png"});
  const SampleList list = list_folder(folder_.path());
  EXPECT_EQ(list.class_names, (Names{"cat", "dog"}));
  EXPECT_EQ(labels_of(list), (std::vector<int64_t>{0, 0, 1}));
  EXPECT_EQ(names_of(list), (Names{"cat_1", "2", "dog_1"}));
  std::filesystem::create_directories(folder_ / "emu");
  expect_refusal([&] { list_folder(folder_.path()); }, "emu has no images");
}

/// A class that only the test set has counts, too.
TEST_F(SampleListTest, PartsOfASet) {
  touch({"train/b/1.png", "val/b/2.png", "test/a/3.png"});
  const SampleList list = list_folder(folder_.path());
  EXPECT_EQ(list.class_names, (Names{"a", "b"}));
  EXPECT_EQ(labels_of(list), (std::vector<int64_t>{0, 1, 1}));
  EXPECT_EQ(parts_of(list), (std::vector<SamplePart>{SamplePart::kTest, SamplePart::kTrain,
                                                     SamplePart::kValidation}));
}

/// A folder of slices is one image, but train/ and val/ say what is in them.
TEST_F(SampleListTest, PartsMayHoldDicomFiles) {
  touch({"train/1.dcm", "train/2.dcm", "val/3.dcm"});
  const SampleList list = list_folder(folder_.path());
  EXPECT_EQ(pairs(list), (Names{"train/1.dcm > ", "train/2.dcm > ", "val/3.dcm > "}));
  EXPECT_EQ(parts_of(list), (std::vector<SamplePart>{SamplePart::kTrain, SamplePart::kTrain,
                                                     SamplePart::kValidation}));
}

TEST_F(SampleListTest, ClassesOfDicomHaveAFolderForEachImage) {
  touch({"cat/a/1.dcm", "cat/a/2.dcm", "dog/b/1.dcm"});
  const SampleList list = list_folder(folder_.path());
  EXPECT_EQ(pairs(list), (Names{"cat/a > ", "dog/b > "}));
  EXPECT_EQ(labels_of(list), (std::vector<int64_t>{0, 1}));
}

TEST_F(SampleListTest, AClassMayBeCalledTrain) {
  touch({"train/1.png", "plane/2.png"});
  EXPECT_EQ(list_folder(folder_.path()).class_names, (Names{"plane", "train"}));
}

TEST_F(SampleListTest, FoldersThatAreNoSets) {
  expect_refusal([&] { list_folder(folder_ / "none"); }, "none is not a folder");
  expect_refusal([&] { list_folder(folder_.path()); }, "has no images; their names end in");
  touch({"a.png"});
  EXPECT_EQ(pairs(list_folder(folder_.path())), (Names{"a.png > "}));
  touch({"cats/b.png"});
  expect_refusal([&] { list_folder(folder_.path()); }, "has images and folders, a.png and cats");
}

TEST_F(SampleListTest, Tables) {
  const SampleList found = list_table(list("l.csv",
                                           "\xef\xbb\xbfimage, image2,mask,split,weight,patient\r\n"
                                           "a.png,b.png,m.png,train,2,\"Doe, \"\"J\"\"\"\r\n"
                                           "\r\n"
                                           "sub/c.png,,/abs/n.png,,,x\r\n"));
  EXPECT_EQ(pairs(found), (Names{"a.png b.png > m.png", "sub/c.png > /abs/n.png"}));
  EXPECT_EQ(parts_of(found), (std::vector<SamplePart>{SamplePart::kTrain, SamplePart::kAny}));
  EXPECT_EQ(found.samples[0].weight, 2);
  EXPECT_EQ(found.samples[1].weight, 1);
  const SampleList numbers = list_table(list("n.csv", "image;label\nx.png;3\ny.png;0\n"));
  EXPECT_EQ(labels_of(numbers), (std::vector<int64_t>{3, 0}));
  EXPECT_TRUE(numbers.class_names.empty());
  const SampleList names = list_table(list("t.tsv", "image\tlabel\nx.png\tdog\ny.png\tcat\n"));
  EXPECT_EQ(labels_of(names), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(names.class_names, (Names{"cat", "dog"}));
  EXPECT_EQ(pairs(list_table(list("m.csv", "image,label\nx.png,y.png"))), (Names{"x.png > y.png"}));
}

TEST_F(SampleListTest, TablesThatAreRefused) {
  const auto refused = [&](const std::string& text, const std::string& words) {
    const std::string path = list("l.csv", text);
    expect_refusal([&] { list_table(path); }, words);
  };
  refused("", "is empty");
  refused("image\n", "has no samples");
  refused("imgae,mask\na,b\n", "has no column image (did you mean imgae?)");
  refused("image,image\na,b\n", "has two columns");
  refused("image,mask\na.png\n", "l.csv:2: 1 cell where the first line names 2");
  refused("image,mask\n\n,m.png\n", "l.csv:3: no image is given");
  refused("image,weight\na.png,-1\n", "weight -1 must be a number from 0 on");
  refused("image,split\na.png,trian\n", "split trian is not known; use train, validation, test");
  refused("image,mask,label\na.png,b.png,3\n", "mask b.png and label 3; give one of them");
  refused("image,mask\n\"a.png,b\n", "l.csv:2: a quote is not closed");
}

TEST_F(SampleListTest, ListsOfObjects) {
  const SampleList found = list_json(list(
      "l.json",
      R"([{"image": "a.npy", "label": 2, "weight": 0.5}, {"image": ["b.npy", "c.npy"], "label": 0,
          "split": "test", "patient": {"age": 3}}])"));
  EXPECT_EQ(pairs(found), (Names{"a.npy > ", "b.npy c.npy > "}));
  EXPECT_EQ(labels_of(found), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(found.samples[0].weight, 0.5);
  EXPECT_EQ(found.samples[1].part, SamplePart::kTest);
  const SampleList further =
      list_json(list("f.json", R"([{"image": "a.npy", "image2": null, "image3": "c.npy"},
                    {"image": "a.npy", "image2": "b.npy", "image3": ""}])"));
  EXPECT_EQ(pairs(further), (Names{"a.npy > ", "a.npy b.npy > "}));
}

TEST_F(SampleListTest, MonaiAndTheFirstNnUnet) {
  touch({"imagesTr/a_0000.nii.gz", "imagesTr/a_0001.nii.gz", "imagesTr/b.nii.gz"});
  const SampleList found = list_json(
      list("dataset.json",
           R"({"modality": {"0": "T1", "1": "T2"}, "labels": {"0": "background", "2": "tumour"},
          "training": [{"image": "./imagesTr/a.nii.gz", "label": "./labelsTr/a.nii.gz"}],
          "validation": [{"image": "./imagesTr/b.nii.gz", "label": "./labelsTr/b.nii.gz"}],
          "test": ["./imagesTs/c.nii.gz"]})"));
  EXPECT_EQ(pairs(found),
            (Names{"imagesTr/a_0000.nii.gz imagesTr/a_0001.nii.gz > labelsTr/a.nii.gz",
                   "imagesTr/b.nii.gz > labelsTr/b.nii.gz", "imagesTs/c.nii.gz > "}));
  EXPECT_EQ(parts_of(found), (std::vector<SamplePart>{SamplePart::kTrain, SamplePart::kValidation,
                                                      SamplePart::kTest}));
  EXPECT_EQ(found.class_names, (Names{"background", "1", "tumour"}));
  EXPECT_TRUE(found.targets_are_labels);
}

TEST_F(SampleListTest, TheSecondNnUnet) {
  touch({"imagesTr/a_0000.nii.gz", "imagesTr/a_0001.nii.gz", "labelsTr/a.nii.gz"});
  const std::string text =
      R"({"channel_names": {"0": "T1", "1": "T2"}, "file_ending": ".nii.gz", "numTraining": 1,
          "labels": {"background": 0, "tumour": 1, "ignore": 2}})";
  const std::string path = list("dataset.json", text);
  for (const SampleList& found : {list_json(path), list_folder(folder_.path())}) {
    EXPECT_EQ(pairs(found),
              (Names{"imagesTr/a_0000.nii.gz imagesTr/a_0001.nii.gz > labelsTr/a.nii.gz"}));
    EXPECT_EQ(found.class_names, (Names{"background", "tumour"}));
    EXPECT_EQ(found.ignored, 2);
  }
  std::string other = text;
  other.replace(other.find("ing\": 1"), 7, "ing\": 4");
  list("dataset.json", other);
  expect_refusal([&] { list_json(path); }, "numTraining is 4, and imagesTr has 1 image");
  list("dataset.json", R"({"file_ending": ".nii.gz", "labels": {"all": [1, 2]}})");
  expect_refusal([&] { list_json(path); }, "regions of several labels are not supported");
}

TEST_F(SampleListTest, JsonThatIsRefused) {
  const auto refused = [&](const std::string& text, const std::string& words) {
    const std::string path = list("l.json", text);
    expect_refusal([&] { list_json(path); }, words);
  };
  refused("[", "l.json: ");
  refused("3", "neither a list of samples nor a description");
  refused("{}", "neither \"training\"");
  refused("[]", "has no samples");
  refused("[3]", "row[0] is 3; give an object");
  refused(R"([{"mask": "a.png"}])", "row[0]: no image is given");
  refused(R"([{"image": {"a": 1}}])", "image is {\"a\":1}; give a text or a number");
  refused(R"([{"image": [3]}])", "image has 3; give names of files");
  refused(R"({"training": 3})", "training is 3; give a list");
  refused(R"({"training": ["a.png"], "labels": {"x": -1}})", "labels has -1 for \"x\"");
}

TEST(MaskValuesTest, AreRead) {
  const MaskValues values = parse_mask_values("0:0/128:1/255:1", "data");
  EXPECT_EQ(values.label_of(255), 1);
  EXPECT_EQ(values.label_of(128), 1);
  EXPECT_EQ(values.label_of(1), std::nullopt);
  EXPECT_EQ(values.legal(), "0, 128, 255");
  EXPECT_EQ(MaskValues::in_order({-3, 7}).label_of(7), 1);
  EXPECT_EQ(MaskValues().label_of(7), 7);
  for (const char* text : {"", "1", "1:", ":1", "0:0/", "a:1", "0:-1"})
    expect_refusal([&] { parse_mask_values(text, "data"); }, "must be value:label pairs");
  expect_refusal([&] { parse_mask_values("0:0/0:1", "data"); }, "has the value 0 twice");
}

}  // namespace
}  // namespace tessera::sample_list_test
