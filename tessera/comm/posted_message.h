#pragma once
// A message of a started batch, from its posting until it has moved: what all transports keep of
// it, what they ask of it, and how they speak of it.

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/comm/transport.h"

namespace tessera {

enum class PostedAs { kSend, kReceive };

struct PostedMessage {
  PostedAs as = PostedAs::kSend;
  int peer = 0;
  const char* source = nullptr;  // of a send
  char* target = nullptr;        // of a receive
  int64_t bytes = 0;
};

/// The sends of the batch, then its receives. Throws InternalError when a peer does not exist or a
/// size is negative.
std::vector<PostedMessage> posted_messages(const Batch& batch, const Transport& transport);

/// "to send 8 bytes to rank 1, to receive 4 bytes from rank 2 and 7 more".
std::string list_messages(const std::vector<PostedMessage>& messages);

/// Why the world ends where two sizes differ.
std::string size_mismatch(int from, int to, int64_t sent_bytes, int64_t expected_bytes);

}  // namespace tessera
