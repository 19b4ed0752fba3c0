#include "tessera/lower/memory.h"

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
  for (BufferId buffer : kept_buffers(*program)) last[buffer] = count;

  std::vector<std::vector<BufferId>> allocs(count), frees(count);
  for (BufferId buffer = 0; buffer < static_cast<BufferId>(program->buffers.size()); ++buffer) {
    if (first[buffer] == kNever || is_permanent(program->buffers[buffer].kind)) continue;
    allocs[first[buffer]].push_back(buffer);
    if (last[buffer] < count) frees[last[buffer]].push_back(buffer);
  }
  std::vector<Instruction> result;
  result.reserve(count + 2 * program->buffers.size());
  for (int index = 0; index < count; ++index) {
    for (BufferId buffer : allocs[index]) result.emplace_back(Alloc{buffer});
    result.push_back(std::move(program->instructions[index]));
    for (BufferId buffer : frees[index]) result.emplace_back(Free{buffer});
  }
  program->instructions = std::move(result);
}

}  // namespace tessera
