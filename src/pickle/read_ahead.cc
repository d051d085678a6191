#include "pickle/read_ahead.h"

#include <utility>

#include "base/processors.h"

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
  const std::unique_lock<std::mutex> guard(reading_, std::try_to_lock);
  if (!guard.owns_lock()) return false;  // take() is at it, and wakes the thread again
  if (has_ended_ || filled_ - given_back_ == kBuffers || source_.would_wait()) return false;
  try {
    fill_next();
  } catch (...) {
    thrown_ = std::current_exception();
    has_ended_ = true;
  }
  return true;
}

// Less than a buffer where the source would wait for more: the consumer may need none, and none may ever come.
void ReadAhead::fill_next() {
  Buffer& buffer = buffers_[filled_ % kBuffers];
  buffer.size = 0;
  while (buffer.size < data_bytes_ && !buffer.is_last) {
    if (buffer.size > 0 && source_.would_wait()) break;
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
  ++filled_;
}

ReadAhead::Buffer& ReadAhead::take() {
  if (taken_ > 0) {
    given_back_ = taken_;
    side_.wake();
  }
  const size_t wanted = taken_++;
  std::unique_lock<std::mutex> guard(reading_, std::defer_lock);
  (void)spin_until([&] { return filled_ > wanted || guard.try_lock(); });
  if (filled_ <= wanted && !guard.owns_lock()) guard.lock();
  if (filled_ > wanted) {
    if (guard.owns_lock()) {  // which the thread may have wanted for the next
      guard.unlock();
      side_.wake();
    }
    return buffers_[wanted % kBuffers];
  }
  if (thrown_) std::rethrow_exception(thrown_);
  fill_next();  // nobody is at it
  guard.unlock();
  side_.wake();
  return buffers_[wanted % kBuffers];
}

}  // namespace oomscope
