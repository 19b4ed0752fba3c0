#include "tessera/lower/memory.h"

#include <algorithm>

#include "tessera/base/error.h"

namespace tessera {

void insert_allocations(Program* program) {
  constexpr int kNever = -1;
  const int count = static_cast<int>(program->instructions.size());
  std::vector<int> first(program->buffers.size(), kNever);
  std::vector<int> last(program->buffers.size(), kNever);
  for (int index = 0; index < count; ++index)
    for (BufferId buffer : touched_buffers(program->instructions[index])) {
      TESSERA_CHECK(buffer >= 0, "rank {} instruction {} names no buffer", program->rank, index);
      if (first[buffer] == kNever) first[buffer] = index;
      last[buffer] = index;
    }
  for (const auto* results : {&program->outputs, &program->input_gradients})
    for (const Result& result : *results) last[result.view.buffer] = count;
  if (program->loss >= 0) last[program->loss] = count;

  std::vector<std::vector<BufferId>> allocs(count), frees(count);
  for (BufferId buffer = 0; buffer < static_cast<BufferId>(program->buffers.size()); ++buffer) {
    if (first[buffer] == kNever || program->buffers[buffer].kind == BufferKind::kBucket) continue;
    allocs[first[buffer]].push_back(buffer);
    if (last[buffer] < count) frees[last[buffer]].push_back(buffer);
  }
  std::vector<Instruction> result;
  for (int index = 0; index < count; ++index) {
    for (BufferId buffer : allocs[index]) result.emplace_back(Alloc{buffer});
    result.push_back(std::move(program->instructions[index]));
    for (BufferId buffer : frees[index]) result.emplace_back(Free{buffer});
  }
  program->instructions = std::move(result);
}

}  // namespace tessera
