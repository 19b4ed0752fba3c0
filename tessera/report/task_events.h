#pragma once
// How the tasks of a step are named where people see them, the same in a predicted and in a real
// trace, so that the two can be laid side by side.

#include <string>
#include <vector>

#include "tessera/lower/program.h"
#include "tessera/report/trace.h"

namespace tessera {

/// "forward 3", of category "forward", with its micro-batch, chunk and stage.
TraceEvent task_event(int rank, const Enter& enter, double begin_us, double end_us);

/// A part of a task: a kernel, or, of category kWaitCategory, time in which a rank can only wait.
inline constexpr const char* kWaitCategory = "wait";
TraceEvent inner_event(int rank, const char* category, const std::string& name, double begin_us,
                       double end_us);

/// "rank 3 (stage 1)", "rank 3 (stages 1, 2)" where it works for several; "rank 3" where there is
/// one stage only.
std::vector<std::string> rank_names(const Plan& plan);

}  // namespace tessera
