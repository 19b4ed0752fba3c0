// NCCL on one GPU, which is one rank: messages to oneself and a sum of one term go through it all.
// That two ranks on it are refused shows with threads.

#include "tessera/comm/nccl/nccl.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "tessera/base/error.h"
#include "tessera/comm/borrowed.h"
#include "tessera/comm/collectives.h"
#include "tessera/comm/threads/threads.h"
#include "tessera/runtime/device.h"
#include "tests/ranks/comm/watched.h"

namespace tessera::nccl_test {
namespace {

class Nccl : public WatchedTest {
 protected:
  void SetUp() override {
    if (!nccl::available()) GTEST_SKIP() << "built without NCCL";
    if (const std::string reason = why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
    device_ = open_device({.type = at::kCUDA}, 0);
  }

  std::unique_ptr<Transport> transport() {
    return nccl::create(std::move(threads::create(1)[0]), 0);
  }
  at::Tensor numbers(int64_t count, double first) {
    return at::arange(count, at::TensorOptions().dtype(at::kDouble).device(device_->place())) +
           first;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(Nccl, MessagesToOneselfArriveInOrder) {
  const auto transport = this->transport();
  DeviceQueue* const queue = device_->queue(Stream::kCompute);
  for (int round = 0; round < 50; ++round) {
    const at::Tensor first = numbers(100'000, round), second = numbers(10, -round);
    const at::Tensor got_first = at::zeros_like(first), got_second = at::zeros_like(second);
    Batch batch;
    batch.queue = queue;
    batch.sends = {{0, first.data_ptr(), static_cast<int64_t>(first.nbytes())},
                   {0, second.data_ptr(), static_cast<int64_t>(second.nbytes())},
                   {0, nullptr, 0}};
    batch.receives = {{0, got_first.data_ptr(), static_cast<int64_t>(first.nbytes())},
                      {0, got_second.data_ptr(), static_cast<int64_t>(second.nbytes())},
                      {0, nullptr, 0}};
    transport->finish(transport->start(batch));
    first.zero_();  // in the queue, after the message
    EXPECT_TRUE(at::equal(got_first, numbers(100'000, round)));
    EXPECT_TRUE(at::equal(got_second, second));
  }
}

TEST_F(Nccl, ASumOverAllRanks) {
  const auto transport = this->transport();
  const at::Tensor terms = numbers(1000, 1), expected = terms.clone();
  AllReduceCall call{{0}, 0, terms.data_ptr(), 1000, SumType::kFloat64};
  call.queue = device_->queue(Stream::kCompute);
  transport->start_all_reduce(call, *transport)->finish();
  EXPECT_TRUE(at::equal(terms, expected));
}

TEST_F(Nccl, MemoryOfTheHostGoesByTheTransportBeneath) {
  const auto transport = this->transport();
  char sent[3] = "ab", received[3] = {};
  Batch batch;
  batch.sends = {{0, sent, 3}};
  batch.receives = {{0, received, 3}};
  transport->finish(transport->start(batch));
  EXPECT_STREQ(received, "ab");
}

TEST_F(Nccl, AnAbortLetsGoOfTheMemory) {
  const auto transport = this->transport();
  const at::Tensor data = numbers(1000, 0), target = at::zeros_like(data);
  Batch batch;
  batch.queue = device_->queue(Stream::kCompute);
  batch.sends = {{0, data.data_ptr(), 8000}};
  batch.receives = {{0, target.data_ptr(), 8000}};
  const Ticket ticket = transport->start(batch);
  transport->abort("enough");
  EXPECT_THROW(transport->finish(ticket), CommError);
  EXPECT_THROW(transport->start(batch), CommError);
}

TEST_F(Nccl, TwoRanksOnOneGpuAreRefused) {
  try {
    threads::run_ranks(2, [](Transport& transport) {
      nccl::create(std::make_unique<BorrowedTransport>(transport), 0);
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("ranks 0 and 1 have the same GPU"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tessera::nccl_test
