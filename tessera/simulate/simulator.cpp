#include "tessera/simulate/simulator.h"

#include <algorithm>

#include "tessera/base/collective_traffic.h"

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
  void visit(const T&) {}
  void visit(const Alloc& alloc) {
    live_ += buffer_bytes(program_.buffers[alloc.buffer], real_);
    forecast_.peak_value_bytes = std::max(forecast_.peak_value_bytes, live_);
  }
  void visit(const Free& free) { live_ -= buffer_bytes(program_.buffers[free.buffer], real_); }
  void visit(const StartTransfer& transfer) {
    for (const Message& message : transfer.sends)
      count({1, buffer_bytes(program_.buffers[message.strip], real_)});
  }
  void visit(const StartReduce& reduce) {
    const Buffer& buffer = program_.buffers[reduce.buffer];
    count(all_reduce_traffic(static_cast<int>(reduce.members.size()), member(reduce.members),
                             buffer.box.volume(), element_bytes(buffer.element, real_)));
  }
  void visit(const StartGather& gather) {
    const Buffer& buffer = program_.buffers[gather.buffer];
    std::vector<int64_t> block_bytes;
    for (int64_t rows : gather.rows)
      block_bytes.push_back(rows * buffer.box[1].size() * element_bytes(buffer.element, real_));
    count(all_gather_traffic(member(gather.members), block_bytes));
  }
  int member(const Members& members) const {
    return static_cast<int>(std::find(members.begin(), members.end(), program_.rank) -
                            members.begin());
  }
  void count(const Traffic& traffic) {
    forecast_.messages += traffic.messages;
    forecast_.bytes_sent += traffic.bytes;
  }

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
