#include "tessera/proof/patience.h"

#include <future>

#include "tessera/comm/outstanding.h"

namespace tessera {
namespace {

enum class Sign : char { kBusy, kDone };

void wait_for_first(Transport& transport) {
  for (Sign sign = Sign::kBusy; sign != Sign::kDone;)
    Outstanding(transport, {.sends = {}, .receives = {{0, &sign, sizeof(sign)}}}, "a sign of life")
        .finish();
}

void tell_others(Transport& transport, Sign sign) {
  Batch batch;
  for (int rank = 1; rank < transport.size(); ++rank)
    batch.sends.push_back({rank, &sign, sizeof(sign)});
  Outstanding(transport, batch, "a sign of life").finish();
}

}  // namespace

void while_others_wait(Transport& transport, std::chrono::milliseconds sign_of_life,
                       const std::function<void()>& work) {
  if (transport.rank() != 0) return wait_for_first(transport);
  std::future<void> done = std::async(std::launch::async, work);
  while (done.wait_for(sign_of_life) != std::future_status::ready)
    tell_others(transport, Sign::kBusy);
  done.get();
  tell_others(transport, Sign::kDone);
}

}  // namespace tessera
