#pragma once
// A JSON file as a list of samples, in one of these forms:
//
//   [{"image": "a.tif", "mask": "a.png", "split": "train", "weight": 2}, ...]
//        the columns of a table (table_list.h); "image" may be a list of files, one after the other
//   {"training": [{"image": ..., "label": ...}, ...], "validation": [...], "test": [...]}
//        dataset.json of MONAI, of the Medical Segmentation Decathlon and of nnU-Net's first
//        version; "labels" names the classes
//   {"channel_names": {...}, "labels": {...}, "numTraining": 32, "file_ending": ".nii.gz"}
//        dataset.json of nnU-Net's second version, beside imagesTr/ and labelsTr/

#include "tessera/data/sample_list.h"

namespace tessera {

/// Throws InvalidInput with [list] and the file.
SampleList list_json(const std::string& path);

}  // namespace tessera
