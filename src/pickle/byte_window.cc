#include "pickle/byte_window.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace oomscope {

ByteWindow::ByteWindow(ByteSource& source, size_t capacity, uint64_t read_ahead_after, SideThread* side)
    : source_(source),
      capacity_(capacity),
      read_ahead_after_(read_ahead_after),
      side_(side),
      size_hint_bytes_(source.size_hint_bytes()),
      buffer_(new uint8_t[kMaxEnsure + capacity + kSlack]),
      cursor_(buffer_.get() + kMaxEnsure),
      end_(cursor_),
      origin_(cursor_) {
  std::memset(buffer_.get() + kMaxEnsure, 0, kSlack);
}

// Each round moves what is left in front of the new bytes, so both lie together.
bool ByteWindow::refill(size_t count) {
  if (count > kMaxEnsure) return false;
  while (available() < count && !at_end_) {
    if (ahead_ == nullptr && offset() >= read_ahead_after_) {
      ahead_ = std::make_unique<ReadAhead>(source_, side_, kMaxEnsure, capacity_, kSlack);
      if (!ahead_->start()) {
        ahead_.reset();
        read_ahead_after_ = UINT64_MAX;
      }
    }
    ++generation_;
    if (ahead_ != nullptr) {
      refill_from_ahead();
    } else {
      refill_here();
    }
  }
  return available() >= count;
}

void ByteWindow::refill_here() {
  size_t kept = available();
  uint64_t kept_offset = offset();
  uint8_t* data = buffer_.get() + kMaxEnsure;
  std::memmove(data - kept, cursor_, kept);
  size_t filled = 0;
  Result<size_t> got = source_.read({data, capacity_});
  if (!got.has_value()) {
    source_error_ = std::move(got.error());
    at_end_ = true;
  } else {
    filled = std::min(*got, capacity_);
    at_end_ = filled == 0;
  }
  cursor_ = origin_ = data - kept;
  origin_offset_ = kept_offset;
  end_ = data + filled;
  std::memset(data + filled, 0, kSlack);
}

void ByteWindow::refill_from_ahead() {
  size_t kept = available();
  uint64_t kept_offset = offset();
  uint8_t leftover[kMaxEnsure];
  std::memcpy(leftover, cursor_, kept);  // taking the next buffer gives this one back
  ReadAhead::Buffer& buffer = ahead_->take();
  std::memcpy(buffer.data - kept, leftover, kept);
  if (buffer.error.has_value()) source_error_ = buffer.error;
  at_end_ = buffer.is_last;
  cursor_ = origin_ = buffer.data - kept;
  origin_offset_ = kept_offset;
  end_ = buffer.data + buffer.size;
  std::memset(buffer.data + buffer.size, 0, kSlack);
}

bool ByteWindow::skip(uint64_t count) {
  while (count > 0) {
    if (available() == 0 && !refill(1)) return false;
    size_t step = static_cast<size_t>(std::min<uint64_t>(count, available()));
    advance(step);
    count -= step;
  }
  return true;
}

}  // namespace oomscope
