#include "pickle/read_ahead.h"

#include <utility>

namespace oomscope {

ReadAhead::ReadAhead(ByteSource& source, SideThread* side, size_t headroom_bytes, size_t data_bytes, size_t slack_bytes)
    : source_(source),
      own_side_(side == nullptr ? std::make_unique<SideThread>() : nullptr),
      side_(side == nullptr ? *own_side_ : *side),
      data_bytes_(data_bytes) {
  for (Buffer& buffer : buffers_) {
    buffer.bytes.reset(new uint8_t[headroom_bytes + data_bytes + slack_bytes]);
    buffer.data = buffer.bytes.get() + headroom_bytes;
  }
}

ReadAhead::~ReadAhead() { side_.remove(this); }

bool ReadAhead::start() {
  return side_.add(this, [this] { return fill_ahead(); });
}

bool ReadAhead::fill_ahead() {
  if (!free_.try_acquire()) return false;
  const std::lock_guard<std::mutex> guard(reading_);
  if (has_ended_) return false;
  fill_next();
  full_.release();
  return true;
}

ReadAhead::Buffer& ReadAhead::fill_next() {
  Buffer& buffer = buffers_[next_to_fill_];
  next_to_fill_ = (next_to_fill_ + 1) % kBuffers;
  buffer.size = 0;
  while (buffer.size < data_bytes_ && !buffer.is_last) {
    Result<size_t> got = source_.read({buffer.data + buffer.size, data_bytes_ - buffer.size});
    if (!got.has_value()) {
      buffer.error = std::move(got.error());
      buffer.is_last = true;
    } else if (*got == 0) {
      buffer.is_last = true;
    } else {
      buffer.size += *got;
    }
  }
  has_ended_ = buffer.is_last;
  return buffer;
}

ReadAhead::Buffer& ReadAhead::take() {
  if (has_taken_) {
    free_.release();
    side_.wake();
  }
  has_taken_ = true;
  Buffer& buffer = buffers_[next_];
  next_ = (next_ + 1) % kBuffers;
  if (full_.try_acquire()) return buffer;
  const std::lock_guard<std::mutex> guard(reading_);
  if (full_.try_acquire()) return buffer;  // it was being filled meanwhile
  free_.acquire();
  return fill_next();
}

}  // namespace oomscope
