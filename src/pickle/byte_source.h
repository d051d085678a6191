// ByteSource: where a reader's bytes come from. The one virtual interface of the readers, so that tests and fuzz
// targets replace files; src/evidence/byte_source.h makes the real ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace oomscope {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills the front of `out` (never empty) and says how much; 0 only at the end.
  virtual Result<size_t> read(std::span<uint8_t> out) = 0;
  // All bytes that read() will give, or -1 where that is not known beforehand (compressed).
  [[nodiscard]] virtual int64_t size_hint_bytes() const { return -1; }
  // Whether read() would wait now for somebody to write: at a pipe, where nothing may ever come. May say no too often.
  [[nodiscard]] virtual bool would_wait() { return false; }
  // Whether another document follows the one that was read: a page may hold several. Reads on to the end.
  [[nodiscard]] virtual bool has_another() { return false; }
};

}  // namespace oomscope
