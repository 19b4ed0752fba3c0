#include "tessera/base/error.h"
#include "tessera/comm/decorators.h"
#include "tessera/comm/forwarding.h"

namespace tessera {
namespace {

class FailingTransport : public ForwardingTransport {
 public:
  FailingTransport(std::unique_ptr<Transport> inner, int64_t good_batches, Failure failure)
      : ForwardingTransport(std::move(inner)), good_batches_(good_batches), failure_(failure) {}

  Ticket start(const Batch& batch) override {
    if (num_started_ < good_batches_) {
      ++num_started_;
      return inner_->start(batch);
    }
    return failure_ == Failure::kThrow ? fail() : stall();
  }

 private:
  // Aborts first: earlier batches may be outstanding, and their memory goes with the exception.
  Ticket fail() {
    const std::string text = fmt::format("made to fail after {} batches", good_batches_);
    inner_->abort(text);
    throw_error<CommError>("[failing] rank {}/{}: {}", rank(), size(), text);
  }

  // A receive that nobody answers: its finish() ends with the transport, by abort or timeout.
  Ticket stall() {
    Batch never;
    never.receives.push_back({rank(), &unused_, 1});
    return inner_->start(never);
  }

  int64_t good_batches_;
  Failure failure_;
  int64_t num_started_ = 0;
  char unused_ = 0;
};

}  // namespace

std::unique_ptr<Transport> failing(std::unique_ptr<Transport> inner, int64_t good_batches,
                                   Failure failure) {
  return std::make_unique<FailingTransport>(std::move(inner), good_batches, failure);
}

}  // namespace tessera
