#include "tessera/images/reader_service.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <new>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/free_memory.h"
#include "tessera/base/plain_data.h"
#include "tessera/images/flat_array.h"

namespace tessera {
namespace {

constexpr size_t kMostOpenFiles = 8;
constexpr int64_t kFolderMemory = int64_t{2} << 30;
constexpr uint64_t kLongestWords = 64 << 20;

// The address sanitizer keeps what is freed for a while, 256 MiB of it, and surrounds each
// allocation by others.
#ifdef __SANITIZE_ADDRESS__
constexpr int64_t kSanitizerBytes = 512 << 20;
#else
constexpr int64_t kSanitizerBytes = 0;
#endif

bool send_fully(int socket, const void* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t sent =
        ::send(socket, static_cast<const char*>(data) + done, bytes - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    done += static_cast<size_t>(sent);
  }
  return true;
}

bool receive_fully(int socket, void* data, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t got = ::recv(socket, static_cast<char*>(data) + done, bytes - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

bool send_words(int socket, const std::string& words) {
  const uint64_t size = words.size();
  return send_fully(socket, &size, sizeof(size)) && send_fully(socket, words.data(), size);
}

std::optional<std::string> receive_words(int socket) {
  uint64_t size = 0;
  if (!receive_fully(socket, &size, sizeof(size)) || size > kLongestWords) return std::nullopt;
  std::string words(size, '\0');
  if (!receive_fully(socket, words.data(), size)) return std::nullopt;
  return words;
}

/// Numbers of any size; at most `most` of them.
template <class Data, class Number>
void list(Data& data, std::vector<Number>& numbers, int64_t most) {
  auto count = static_cast<int64_t>(numbers.size());
  data(count);
  if (count < 0 || count > most) throw_error<InvalidInput>("a list of {} numbers", count);
  numbers.resize(static_cast<size_t>(count));
  data.raw(numbers.data(), numbers.size() * sizeof(Number));
}

template <class Data>
void fields(Data& data, ArrayInfo& info) {
  list(data, info.shape, Box::kMaxAxes);
  list(data, info.block, Box::kMaxAxes);
  data(info.axes);
  data.choice(info.type, PixelType::kFloat64);
  ImageFrame& frame = info.frame;
  data(frame.spacing, frame.affine, frame.geotransform, frame.projection, frame.no_data);
}

/// What only this process and its own child say is taken as it is.
template <class Data>
void fields(Data& data, ReaderRequest& request) {
  list(data, request.closed, PlainReader::kMostWhole);
  data.raw(&request.number, sizeof(request.number));
  data.raw(&request.opener, sizeof(request.opener));
  data.raw(&request.memory_bytes, sizeof(request.memory_bytes));
  data(request.folder, request.path);
  ArrayOptions& options = request.options;
  data(options.level, options.microns_per_pixel, options.dataset);
  data.choice(request.wanted, ReaderRequest::Wanted::kBox);
  data.raw(&request.box, sizeof(request.box));
  list(data, request.shape, Box::kMaxAxes);
  data.choice(request.type, PixelType::kFloat64);
}

template <class Message>
std::string words_of(Message message) {
  std::string words;
  PlainWriter write = writer_to(words);
  fields(write, message);
  return words;
}

template <class Message>
Message message_in(const std::string& words) {
  size_t done = 0;
  PlainReader read = reader_of(words, done);
  Message message;
  fields(read, message);
  return message;
}

[[noreturn]] void refuse_answer(const std::string& path) {
  throw_error<InvalidInput>("[data] {}: its reader gave an answer that does not hold together",
                            path);
}

/// Axes and blocks are of the array, or nothing is said of them.
bool holds_together(const ArrayInfo& info) {
  return (info.axes.empty() || info.axes.size() == info.shape.size()) &&
         (info.block.empty() || info.block.size() == info.shape.size()) &&
         info.axes.find_first_not_of("PCZYX") == std::string::npos &&
         std::ranges::all_of(info.block, [](int64_t size) { return size > 0; });
}

/// The files that a reader has open, the last used one first.
class OpenFiles {
 public:
  const ArrayFile& file_of(const ReaderRequest& request) {
    for (const uint64_t number : request.closed)
      files_.remove_if([&](const Entry& entry) { return entry.number == number; });
    const auto known = std::ranges::find(files_, request.number, &Entry::number);
    if (known != files_.end()) {
      files_.splice(files_.begin(), files_, known);
      return *files_.front().file;
    }
    // A library may have few files open at a time; leave before the next one enters.
    if (files_.size() >= kMostOpenFiles) files_.pop_back();
    files_.push_front({request.number, request.opener(request.path, request.options)});
    return *files_.front().file;
  }

 private:
  struct Entry {
    uint64_t number;
    std::unique_ptr<ArrayFile> file;
  };
  std::list<Entry> files_;
};

/// A damaged length makes a library ask for gigabytes, which it then fills. What a file can need
/// grows with its size and with what is wanted of it.
void limit_memory_for(const ReaderRequest& request) {
  struct stat status {};
  const bool is_file = ::stat(request.path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  rlimit limit{};
  ::getrlimit(RLIMIT_AS, &limit);
  const int64_t needed = request.memory_bytes + kSanitizerBytes +
                         (is_file ? 8 * int64_t{status.st_size} : kFolderMemory) +
                         4 * request.box.volume() * bytes_of(request.type);
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(address_space() + needed));
  ::setrlimit(RLIMIT_AS, &limit);
}

/// The words of the answer; the box's bytes go into `bytes`.
std::string answer_to(const ReaderRequest& request, OpenFiles* files, std::vector<char>* bytes) {
  bytes->clear();
  if (::chdir(request.folder.c_str()) != 0)
    throw_error<InvalidInput>("[data] {}: the working folder {} cannot be entered", request.path,
                              request.folder);
  limit_memory_for(request);
  const ArrayFile& file = files->file_of(request);
  if (request.wanted == ReaderRequest::Wanted::kInfo) return words_of(file.info());
  if (file.shape() != request.shape || file.type() != request.type)
    throw_error<InvalidInput>(
        "[data] {}: has changed since it was opened; leave files alone while they are read",
        request.path);
  bytes->resize(static_cast<size_t>(request.box.volume() * bytes_of(file.type())));
  file.read(request.box, bytes->data());
  return "";
}

ReaderAnswer answer_or_error(const ReaderRequest& request, OpenFiles* files,
                             std::vector<char>* bytes) {
  using Kind = ReaderAnswer::Kind;
  try {
    return {Kind::kFine, answer_to(request, files, bytes)};
  } catch (const InvalidInput& error) {
    return {Kind::kInvalidInput, error.what()};
  } catch (const Unsupported& error) {
    return {Kind::kUnsupported, error.what()};
  } catch (const InternalError& error) {
    return {Kind::kInternal, error.what()};
  } catch (const std::bad_alloc&) {
    return {
        Kind::kInvalidInput,
        fmt::format("[data] {}: reading it takes more memory than a file of its size should; it "
                    "is damaged or hostile",
                    request.path)};
  } catch (const std::exception& error) {  // of a library
    return {Kind::kInvalidInput,
            fmt::format("[data] {}: cannot be read ({})", request.path, error.what())};
  }
}

}  // namespace

std::optional<ReaderAnswer> exchange_with_reader(int socket, const ReaderRequest& request, void* to,
                                                 size_t bytes) {
  ReaderAnswer answer;
  if (!send_words(socket, words_of(request)) ||
      !receive_fully(socket, &answer.kind, sizeof(answer.kind)))
    return std::nullopt;
  std::optional<std::string> words = receive_words(socket);
  if (!words) return std::nullopt;
  answer.words = std::move(*words);
  if (answer.kind == ReaderAnswer::Kind::kFine && !receive_fully(socket, to, bytes))
    return std::nullopt;
  return answer;
}

ArrayInfo parse_info(const std::string& bytes, const std::string& path) {
  ArrayInfo info;
  try {
    info = message_in<ArrayInfo>(bytes);
  } catch (const InvalidInput&) {
    refuse_answer(path);
  }
  if (!holds_together(info)) refuse_answer(path);
  checked_array_bytes(info.shape, info.type, "data", path);
  return info;
}

void throw_what_reader_threw(const ReaderAnswer& answer, const std::string& path) {
  switch (answer.kind) {
    case ReaderAnswer::Kind::kFine:
      return;
    case ReaderAnswer::Kind::kInvalidInput:
      throw InvalidInput(answer.words);
    case ReaderAnswer::Kind::kUnsupported:
      throw Unsupported(answer.words);
    case ReaderAnswer::Kind::kInternal:
      throw InternalError(answer.words);
  }
  refuse_answer(path);  // a byte that is none of them
}

void serve_reader_requests(int socket) {
  OpenFiles files;
  std::vector<char> bytes;
  while (const std::optional<std::string> words = receive_words(socket)) {
    const auto request = message_in<ReaderRequest>(*words);
    ::alarm(kReaderSeconds);  // ends the process
    const ReaderAnswer answer = answer_or_error(request, &files, &bytes);
    ::alarm(0);
    if (!send_fully(socket, &answer.kind, sizeof(answer.kind)) || !send_words(socket, answer.words))
      return;
    if (answer.kind == ReaderAnswer::Kind::kFine && !send_fully(socket, bytes.data(), bytes.size()))
      return;
  }
}

}  // namespace tessera
