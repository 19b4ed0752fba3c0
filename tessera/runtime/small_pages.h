#pragma once
// Memory to the byte instead of speed.

namespace tessera {

/// Blocks that are taken from the system while one of these lives have pages of
/// the usual size. Huge ones make kernels faster, but round every large block up: by a tenth of
/// what a network holds.
class SmallPages {
 public:
  SmallPages();
  ~SmallPages();
  SmallPages(const SmallPages&) = delete;
  SmallPages& operator=(const SmallPages&) = delete;
  static bool wanted();
};

}  // namespace tessera
