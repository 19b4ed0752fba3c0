#include "tessera/comm/posted_message.h"

#include "tessera/base/error.h"

namespace tessera {

std::vector<PostedMessage> posted_messages(const Batch& batch, const Transport& transport) {
  const int rank = transport.rank(), size = transport.size();
  std::vector<PostedMessage> messages;
  messages.reserve(batch.sends.size() + batch.receives.size());
  for (const Send& send : batch.sends) {
    TESSERA_CHECK(send.to >= 0 && send.to < size && send.bytes >= 0,
                  "rank {}/{} sends {} bytes to rank {}", rank, size, send.bytes, send.to);
    messages.push_back({.as = PostedAs::kSend,
                        .peer = send.to,
                        .source = static_cast<const char*>(send.data),
                        .bytes = send.bytes});
  }
  for (const Receive& receive : batch.receives) {
    TESSERA_CHECK(receive.from >= 0 && receive.from < size && receive.bytes >= 0,
                  "rank {}/{} receives {} bytes from rank {}", rank, size, receive.bytes,
                  receive.from);
    messages.push_back({.as = PostedAs::kReceive,
                        .peer = receive.from,
                        .target = static_cast<char*>(receive.data),
                        .bytes = receive.bytes});
  }
  return messages;
}

std::string list_messages(const std::vector<PostedMessage>& messages) {
  constexpr size_t kMostListed = 8;
  std::string list;
  for (size_t i = 0; i < messages.size() && i < kMostListed; ++i) {
    const bool send = messages[i].as == PostedAs::kSend;
    list += fmt::format("{}to {} {} bytes {} rank {}", i > 0 ? ", " : "", send ? "send" : "receive",
                        messages[i].bytes, send ? "to" : "from", messages[i].peer);
  }
  if (messages.size() > kMostListed)
    list += fmt::format(" and {} more", messages.size() - kMostListed);
  return list;
}

std::string size_mismatch(int from, int to, int64_t sent_bytes, int64_t expected_bytes) {
  return fmt::format(
      "the message from rank {} to rank {} has {} bytes at the sender and {} bytes at the "
      "receiver; both must post the same messages in the same order",
      from, to, sent_bytes, expected_bytes);
}

}  // namespace tessera
