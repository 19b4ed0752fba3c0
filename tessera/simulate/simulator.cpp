#include "tessera/simulate/simulator.h"

#include <algorithm>

#include "tessera/lower/posts.h"

namespace tessera {
namespace {

/// Value bytes and traffic of one program, instruction by instruction.
class Walk {
 public:
  Walk(const Program& program, at::ScalarType real) : program_(program), real_(real) {}

  RankForecast run() {
    for (const Instruction& instruction : program_.instructions)
      std::visit([this](const auto& each) { visit(each); }, instruction);
    return forecast_;
  }

 private:
  template <class T>
  void visit(const T& instruction) {
    for (const Post& post : posts_of(instruction, program_, real_).sends) {
      ++forecast_.messages;
      forecast_.bytes_sent += post.bytes;
    }
  }
  void visit(const Alloc& alloc) {
    live_ += buffer_bytes(program_.buffers[alloc.buffer], real_);
    forecast_.peak_value_bytes = std::max(forecast_.peak_value_bytes, live_);
  }
  void visit(const Free& free) { live_ -= buffer_bytes(program_.buffers[free.buffer], real_); }

  const Program& program_;
  at::ScalarType real_;
  int64_t live_ = 0;
  RankForecast forecast_;
};

}  // namespace

RankForecast simulate(const Program& program, const Graph& graph, at::ScalarType real) {
  RankForecast forecast = Walk(program, real).run();
  int64_t elements = 0;
  for (ParameterId id : program.parameters) elements += graph.parameters()[id].numel();
  for (const Bucket& bucket : program.buckets)
    elements += program.buffers[bucket.buffer].box.volume();
  forecast.parameter_bytes = elements * element_bytes(ElementType::kReal, real);
  return forecast;
}

}  // namespace tessera
