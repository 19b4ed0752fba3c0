#include "tessera/comm/together.h"

#include <algorithm>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/comm/collectives.h"

namespace tessera {

void do_together(Transport& transport, const std::function<void()>& work) {
  std::string complaint;
  try {
    work();
  } catch (const InvalidInput& error) {
    complaint = error.what();
  }
  fail_together(transport, complaint);
}

void fail_together(Transport& transport, const std::string& complaint) {
  const Members all = everyone(transport.size());
  std::vector<int64_t> sizes(all.size());
  sizes[transport.rank()] = static_cast<int64_t>(complaint.size());
  AllGather gather(transport, all, std::vector<int64_t>(all.size(), sizeof(int64_t)), sizes.data());
  gather.finish();
  const auto first = std::find_if(sizes.begin(), sizes.end(), [](int64_t n) { return n > 0; });
  if (first == sizes.end()) return;
  std::string text = complaint;
  text.resize(static_cast<size_t>(*first));
  broadcast(transport, all, static_cast<int>(first - sizes.begin()), text.data(), *first);
  try {
    barrier(transport, all);  // nobody leaves before all have the text
  } catch (const CommError&) {
    // Another has left the barrier and thrown already: we have the text too.
  }
  throw InvalidInput(text);
}

std::string broadcast_text(Transport& transport, const std::string& text) {
  const Members all = everyone(transport.size());
  int64_t size = static_cast<int64_t>(text.size());
  broadcast(transport, all, 0, &size, sizeof(size));
  std::string result = text;
  result.resize(static_cast<size_t>(size));
  if (size > 0) broadcast(transport, all, 0, result.data(), size);
  return result;
}

}  // namespace tessera
