#include "tessera/images/reader_process.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <set>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/images/reader_keeper.h"
#include "tessera/images/reader_service.h"

namespace tessera {
namespace {

constexpr size_t kMostReaders = 4;

/// This process's end of a reader.
struct Reader {
  explicit Reader(int socket) : descriptor(socket) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() { ::close(descriptor); }

  const int descriptor;
  bool lent = false;
  /// Numbers of files that it may have open, and of those that it need not any more.
  std::set<uint64_t> opened = {};
  std::vector<uint64_t> closed = {};
};

/// All readers of this process, lent to one thread at a time.
class ReaderPool {
 public:
  /// Never destroyed, since files may be until the very end: readers end with the process.
  static ReaderPool& instance() {
    static auto* const pool = new ReaderPool;
    return *pool;
  }

  /// For a request about the file of this number; takes over what the reader should close.
  std::shared_ptr<Reader> borrow(uint64_t number, std::vector<uint64_t>* closed) {
    std::unique_lock lock(mutex_);
    leave_to_parent();
    std::shared_ptr<Reader> reader;
    returned_.wait(
        lock, [&] { return (reader = free_reader(number)) || readers_.size() < kMostReaders; });
    if (!reader) {
      if (!keeper_) keeper_ = std::make_unique<ReaderKeeper>();
      reader = readers_.emplace_back(std::make_shared<Reader>(keeper_->new_reader()));
    }
    reader->lent = true;
    reader->opened.insert(number);
    closed->swap(reader->closed);
    return reader;
  }
  void give_back(const std::shared_ptr<Reader>& reader) {
    const std::lock_guard lock(mutex_);
    reader->lent = false;
    returned_.notify_one();
  }
  /// Of a reader that is gone.
  void forget(const std::shared_ptr<Reader>& reader) {
    const std::lock_guard lock(mutex_);
    std::erase(readers_, reader);
    returned_.notify_one();
  }
  /// A library may take a file that it has open for one of the same name that came later.
  void close(uint64_t number) {
    const std::lock_guard lock(mutex_);
    for (const auto& reader : readers_)
      if (reader->opened.erase(number) > 0) reader->closed.push_back(number);
  }

 private:
  /// One that has the file open where there is such a one; null where none is free.
  std::shared_ptr<Reader> free_reader(uint64_t number) const {
    std::shared_ptr<Reader> free;
    for (const auto& reader : readers_) {
      if (reader->lent) continue;
      if (reader->opened.contains(number)) return reader;
      if (!free) free = reader;
    }
    return free;
  }
  /// A process that was forked meanwhile has readers of its own.
  void leave_to_parent() {
    if (!keeper_ || keeper_->is_of_this_process()) return;
    readers_.clear();
    keeper_.reset();
  }

  std::mutex mutex_;
  std::condition_variable returned_;
  std::unique_ptr<ReaderKeeper> keeper_;
  std::vector<std::shared_ptr<Reader>> readers_;
};

/// Nothing where the reader is gone.
std::optional<ReaderAnswer> ask_once(ReaderRequest request, void* to, size_t bytes) {
  ReaderPool& pool = ReaderPool::instance();
  const std::shared_ptr<Reader> reader = pool.borrow(request.number, &request.closed);
  try {
    auto answer = exchange_with_reader(reader->descriptor, request, to, bytes);
    answer ? pool.give_back(reader) : pool.forget(reader);
    return answer;
  } catch (...) {
    pool.forget(reader);
    throw;
  }
}

/// The words of the answer; a box's bytes go into `to`. Throws what the reader has thrown.
std::string ask(const ReaderRequest& request, void* to, size_t bytes) {
  const auto begin = std::chrono::steady_clock::now();
  auto answer = ask_once(request, to, bytes);
  // The memory of a reader may have been spoilt by an earlier file; a new one tells. It is not
  // asked what has taken long.
  const bool was_quick =
      std::chrono::steady_clock::now() - begin < std::chrono::seconds(kReaderSeconds / 4);
  if (!answer && was_quick) answer = ask_once(request, to, bytes);
  if (!answer)
    throw_error<InvalidInput>(
        "[data] {}: its reader crashed, or was stopped after {} seconds; the file is damaged or "
        "hostile",
        request.path, kReaderSeconds);
  throw_what_reader_threw(*answer, request.path);
  return std::move(answer->words);
}

class ArrayInReader final : public ArrayFile {
 public:
  ArrayInReader(const std::string& path, const ArrayOptions& options, ArrayOpener open,
                int64_t memory_bytes)
      : ArrayFile(path) {
    static std::atomic<uint64_t> num_opened = 0;
    request_.number = ++num_opened;
    request_.opener = open;
    request_.memory_bytes = memory_bytes;
    request_.folder = std::filesystem::current_path().string();
    request_.path = path;
    request_.options = options;
    request_.wanted = ReaderRequest::Wanted::kInfo;
    info_ = parse_info(ask(request_, nullptr, 0), path);
    request_.shape = info_.shape;
    request_.type = info_.type;
  }

  ~ArrayInReader() override { ReaderPool::instance().close(request_.number); }

  void read(const Box& box, void* to) const override {
    TESSERA_CHECK(
        box.num_axes() == std::ssize(info_.shape) && Box::whole(info_.shape).contains(box),
        "[array] box {} of {}", to_string(box), to_string(info_.shape));
    if (box.empty()) return;
    ReaderRequest request = request_;
    request.wanted = ReaderRequest::Wanted::kBox;
    request.box = box;
    ask(request, to, static_cast<size_t>(box.volume() * bytes_of(info_.type)));
  }

 private:
  ReaderRequest request_;
};

}  // namespace

std::unique_ptr<ArrayFile> open_in_reader(const std::string& path, const ArrayOptions& options,
                                          ArrayOpener open, int64_t memory_bytes) {
  return std::make_unique<ArrayInReader>(path, options, open, memory_bytes);
}

}  // namespace tessera
