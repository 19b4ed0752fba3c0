#pragma once
// Random messages and collectives in the memory of fake devices, over any transport. All contents
// are made and looked at by work in the queues: before it, and after it as soon as the contract
// allows, there is poison.

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <numeric>

#include "tessera/base/collective_rounds.h"
#include "tessera/comm/collectives.h"
#include "tests/ranks/comm/fake_queue.h"
#include "tests/ranks/comm/pattern.h"
#include "tests/ranks/comm/sums.h"

namespace tessera {

/// In place: the address stays.
template <class T>
void fill_with(const std::vector<T>& numbers, std::vector<T>* memory) {
  std::copy(numbers.begin(), numbers.end(), memory->begin());
}

/// The messages of one rank in one round, and the memory that they lie in.
class DeviceMessages {
 public:
  DeviceMessages(int round, DeviceQueue* queue) : round_(round) { batch_.queue = queue; }

  void send(int from, int to, int64_t bytes, int n) { add(&sends_, from, to, bytes, n); }
  void receive(int from, int to, int64_t bytes, int n) { add(&receives_, from, to, bytes, n); }

  const Batch& batch() {
    for (Message& each : sends_) batch_.sends.push_back({each.peer, each.data.data(), each.size()});
    for (Message& each : receives_)
      batch_.receives.push_back({each.peer, each.data.data(), each.size()});
    return batch_;
  }

  void fill() {
    for (Message& each : sends_) fill_with(pattern(each.id, each.size()), &each.data);
  }
  /// How many are not what was sent. Spoils all memory.
  int64_t num_wrong() {
    int64_t wrong = 0;
    for (const Message& each : receives_) wrong += each.data != pattern(each.id, each.size());
    for (auto* list : {&sends_, &receives_})
      for (Message& each : *list) std::fill(each.data.begin(), each.data.end(), kPoison);
    return wrong;
  }

 private:
  struct Message {
    int peer;
    uint64_t id;
    std::vector<char> data;
    int64_t size() const { return static_cast<int64_t>(data.size()); }
  };

  void add(std::list<Message>* list, int from, int to, int64_t bytes, int n) {
    const int peer = list == &sends_ ? to : from;
    list->push_back(
        {peer, message_id(from, to, round_ * 8 + n), std::vector<char>(bytes, kPoison)});
  }

  int round_;
  std::list<Message> sends_, receives_;
  Batch batch_;
};

/// One rank's part of rounds that are the same on all ranks: of messages in the memory of the
/// device or, now and then, of the host, of which several are outstanding.
class DeviceTraffic {
 public:
  DeviceTraffic(Transport& transport, uint64_t seed)
      : transport_(transport), common_(seed), own_(seed * 64 + transport.rank()) {
    for (FakeQueue*& queue : queues_) queue = &made_.emplace_back(own_());
  }

  ~DeviceTraffic() {
    for (FakeQueue* queue : queues_) queue->release();
    for (FakeQueue* queue : queues_) queue->drain();
  }

  FakeQueue& queue() { return *queues_[0]; }
  int64_t num_drains() const { return queues_[0]->num_drains() + queues_[1]->num_drains(); }
  int64_t num_blocks() const { return queues_[0]->num_blocks() + queues_[1]->num_blocks(); }

  void play(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      start(round);
      while (!started_.empty() && (own_() % 4 == 0 || started_.size() > 3 || round == rounds - 1))
        finish(own_() % started_.size());
      if (common_() % 4 == 0)
        while (!started_.empty()) finish(0);
    }
    for (FakeQueue* queue : queues_) queue->drain();
    EXPECT_EQ(num_wrong_, 0);
  }

 private:
  struct Started {
    Ticket ticket;
    DeviceMessages* messages;
    FakeQueue* queue;
  };

  void start(int round) {
    const int rank = transport_.rank(), size = transport_.size();
    FakeQueue* queue = common_() % 8 == 0 ? nullptr : queues_[own_() % 2];
    DeviceMessages& messages = messages_.emplace_back(round, queue);
    for (int from = 0; from < size; ++from)
      for (int to = 0; to < size; ++to)
        for (int n = static_cast<int>(common_() % 3); n > 0; --n) {
          const int64_t bytes = random_size(common_);
          if (from == rank) messages.send(from, to, bytes, n);
          if (to == rank) messages.receive(from, to, bytes, n);
        }
    const Batch& batch = messages.batch();
    if (queue)
      queue->then([&messages] { messages.fill(); });
    else
      messages.fill();
    started_.push_back({transport_.start(batch), &messages, queue});
  }

  void finish(size_t index) {
    const Started started = started_[index];
    started_.erase(started_.begin() + static_cast<std::ptrdiff_t>(index));
    transport_.finish(started.ticket);
    const auto look = [this, messages = started.messages] { num_wrong_ += messages->num_wrong(); };
    if (started.queue)
      started.queue->then(look);
    else
      look();
  }

  Transport& transport_;
  std::mt19937_64 common_, own_;  // the same choices on all ranks, and this rank's
  std::atomic<int64_t> num_wrong_ = 0;
  std::list<DeviceMessages> messages_;
  std::vector<Started> started_;
  std::list<FakeQueue> made_;
  FakeQueue* queues_[2];
};

/// Two sums at once, in steps, then a gather and a broadcast; the host is far ahead of the queue.
inline void play_device_collectives(Transport& transport, const Members& members, int64_t count) {
  if (!holds(members, transport.rank())) return;
  FakeQueue queue(count + transport.rank());
  const int size = static_cast<int>(members.size());
  const int own = static_cast<int>(std::find(members.begin(), members.end(), transport.rank()) -
                                   members.begin());
  const auto expect_bits = [&](const auto& data, const auto& expected) {
    queue.then([&data, &expected] { EXPECT_TRUE(same_bits(data, expected)); });
  };
  const auto expected_float = folded_sum<float>(members, count);
  const auto expected_double = folded_sum<double>(members, count);
  std::vector<float> floats(count, -7), float_scratch(reduce_scratch(size, own, count), -7);
  std::vector<double> doubles(count, -7), double_scratch(float_scratch.size(), -7);
  queue.then([&] { fill_with(terms_of<float>(transport.rank(), count), &floats); });
  queue.then([&] { fill_with(terms_of<double>(transport.rank(), count), &doubles); });
  AllReduce first(transport, members, floats.data(), count, SumType::kFloat32, float_scratch.data(),
                  &queue);
  AllReduce second(transport, members, doubles.data(), count, SumType::kFloat64,
                   double_scratch.data(), &queue);
  first.advance();
  second.advance();
  first.finish();
  expect_bits(floats, expected_float);
  second.finish();
  expect_bits(doubles, expected_double);

  std::vector<int64_t> block_bytes;
  std::vector<char> expected;
  for (int member : members) {
    block_bytes.push_back(member % 3 == 1 ? 0 : count + 5 * member);
    const auto block = pattern(member, block_bytes.back());
    expected.insert(expected.end(), block.begin(), block.end());
  }
  std::vector<char> gathered(expected.size(), kPoison);
  const int64_t begin = std::accumulate(block_bytes.begin(), block_bytes.begin() + own, int64_t{0});
  queue.then(
      [&] { std::copy_n(expected.begin() + begin, block_bytes[own], gathered.begin() + begin); });
  AllGather gather(transport, members, block_bytes, gathered.data(), &queue);
  gather.finish();
  expect_bits(gathered, expected);

  const auto sent = pattern(77, count);
  std::vector<char> heard(count, kPoison);
  queue.then([&] {
    if (own == size - 1) fill_with(sent, &heard);
  });
  broadcast(transport, members, size - 1, heard.data(), count, &queue);
  expect_bits(heard, sent);
  queue.drain();
}

}  // namespace tessera
