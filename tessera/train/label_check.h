#pragma once
// The labels of a data set, looked at before the first step: a label that is not a class would else
// end a run after hours, when its batch comes.

#include "tessera/comm/transport.h"
#include "tessera/train/training_job.h"

namespace tessera {

/// Collective over all ranks: each reads its share of the labels once, on its threads. Throws
/// InvalidInput, on all, with the first one that is neither a class nor to be ignored.
/// config.label_check says whether all samples are read, some of them at equal distances, or none.
void check_all_labels(const TrainingJob& job, Transport& transport);

}  // namespace tessera
