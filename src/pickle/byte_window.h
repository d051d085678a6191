// ByteWindow: a sliding view of a ByteSource, small enough to stay in the processor's second-level cache.
//
// A snapshot can be larger than memory, and a mapped file counts as resident and kills the process with SIGBUS when
// somebody truncates it. Copying through a small buffer costs no more in the end, since the decoder then reads from the
// cache (docs/benchmarks.md), and has neither fault. Long inputs are read ahead by a second thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "pickle/byte_source.h"
#include "pickle/read_ahead.h"

namespace oomscope {

class ByteWindow {
 public:
  // The most that ensure() can be asked for.
  static constexpr size_t kMaxEnsure = size_t{64} << 10;
  // Zeros after end() that may be loaded: a hot loop need not check each of its loads.
  static constexpr size_t kSlack = 128;
  static constexpr size_t kDefaultCapacity = size_t{128} << 10;
  static constexpr uint64_t kReadAheadAfter = uint64_t{2} << 20;

  // `read_ahead_after`: how many bytes to read before a thread helps; small files are not worth one. It is `side`, or,
  // for nullptr, one of its own.
  explicit ByteWindow(ByteSource& source, size_t capacity = kDefaultCapacity,
                      uint64_t read_ahead_after = kReadAheadAfter, SideThread* side = nullptr);

  // Makes at least `count` bytes available; false: the input ends before.
  bool ensure(size_t count) { return available() >= count || refill(count); }
  [[nodiscard]] const uint8_t* cursor() const { return cursor_; }
  [[nodiscard]] const uint8_t* end() const { return end_; }
  [[nodiscard]] size_t available() const { return static_cast<size_t>(end_ - cursor_); }
  [[nodiscard]] uint64_t offset() const { return origin_offset_ + static_cast<uint64_t>(cursor_ - origin_); }
  // Counts refills: what was found at a pointer into the window holds while it does not change.
  [[nodiscard]] uint64_t generation() const { return generation_; }
  void advance_to(const uint8_t* cursor) { cursor_ = cursor; }
  void advance(size_t count) { cursor_ += count; }
  // Drops `count` bytes, however many; false: the input ends before.
  bool skip(uint64_t count);
  [[nodiscard]] int64_t size_hint_bytes() const { return size_hint_bytes_; }
  // Why the source stopped, if not at its end. The bytes before it have all been given.
  [[nodiscard]] const std::optional<Error>& source_error() const { return source_error_; }

 private:
  bool refill(size_t count);
  void refill_here();
  void refill_from_ahead();

  ByteSource& source_;
  size_t capacity_;
  uint64_t read_ahead_after_;
  SideThread* side_;
  int64_t size_hint_bytes_;
  std::unique_ptr<uint8_t[]> buffer_;  // kMaxEnsure bytes for what is left over, capacity_, kSlack
  std::unique_ptr<ReadAhead> ahead_;
  const uint8_t* cursor_;
  const uint8_t* end_;
  const uint8_t* origin_;  // where the byte at origin_offset_ lies, or would lie
  uint64_t origin_offset_ = 0;
  uint64_t generation_ = 0;
  bool at_end_ = false;
  std::optional<Error> source_error_;
};

}  // namespace oomscope
