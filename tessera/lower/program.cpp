#include "tessera/lower/program.h"

#include "tessera/base/error.h"

namespace tessera {
namespace {

void add_messages(const std::vector<Message>& messages, std::vector<BufferId>* buffers) {
  for (const Message& message : messages) {
    buffers->push_back(message.strip);
    for (const Segment& segment : message.segments) buffers->push_back(segment.view.buffer);
  }
}

}  // namespace

int64_t element_bytes(ElementType element, at::ScalarType real) {
  switch (element) {
    case ElementType::kReal:
      return static_cast<int64_t>(c10::elementSize(real));
    case ElementType::kIndex:
    case ElementType::kDouble:
      return 8;
    case ElementType::kInt:
      return 4;
    case ElementType::kByte:
      return 1;
  }
  TESSERA_CHECK(false, "unknown element type");
}

int64_t buffer_bytes(const Buffer& buffer, at::ScalarType real) {
  return buffer.box.volume() * element_bytes(buffer.element, real);
}

std::vector<BufferId> touched_buffers(const Instruction& instruction) {
  std::vector<BufferId> buffers;
  if (const auto* fill = std::get_if<Fill>(&instruction)) buffers.push_back(fill->buffer);
  if (const auto* copy = std::get_if<Copy>(&instruction))
    buffers.insert(buffers.end(), {copy->from.buffer, copy->to.buffer});
  if (const auto* load = std::get_if<Load>(&instruction)) buffers.push_back(load->to.buffer);
  if (const auto* run = std::get_if<Run>(&instruction))
    for (const Argument& argument : run->arguments)
      if (argument.view.buffer >= 0) buffers.push_back(argument.view.buffer);
  if (const auto* transfer = std::get_if<StartTransfer>(&instruction)) {
    add_messages(transfer->sends, &buffers);
    for (const Message& message : transfer->receives) buffers.push_back(message.strip);
  }
  if (const auto* transfer = std::get_if<FinishTransfer>(&instruction)) buffers = transfer->strips;
  if (const auto* unpack = std::get_if<Unpack>(&instruction))
    add_messages(unpack->messages, &buffers);
  if (const auto* reduce = std::get_if<StartReduce>(&instruction))
    buffers.push_back(reduce->buffer);
  if (const auto* reduce = std::get_if<FinishReduce>(&instruction))
    buffers.push_back(reduce->buffer);
  if (const auto* gather = std::get_if<StartGather>(&instruction))
    buffers.push_back(gather->buffer);
  if (const auto* gather = std::get_if<FinishGather>(&instruction))
    buffers.push_back(gather->buffer);
  return buffers;
}

}  // namespace tessera
