#include "pickle/read_ahead.h"

#include <utility>

namespace oomscope {

ReadAhead::ReadAhead(ByteSource& source, size_t headroom_bytes, size_t data_bytes, size_t slack_bytes)
    : source_(source), data_bytes_(data_bytes) {
  for (Buffer& buffer : buffers_) {
    buffer.bytes.reset(new uint8_t[headroom_bytes + data_bytes + slack_bytes]);
    buffer.data = buffer.bytes.get() + headroom_bytes;
  }
}

ReadAhead::~ReadAhead() {
  if (!has_thread_) return;
  is_stopping_ = true;
  free_.release();
  (void)pthread_join(thread_, nullptr);
}

bool ReadAhead::start() {
  has_thread_ = pthread_create(&thread_, nullptr, &ReadAhead::run, this) == 0;
  return has_thread_;
}

void* ReadAhead::run(void* self) {
  static_cast<ReadAhead*>(self)->fill_all();
  return nullptr;
}

void ReadAhead::fill_all() {
  for (size_t turn = 0;; turn = (turn + 1) % kBuffers) {
    free_.acquire();
    if (is_stopping_) return;
    Buffer& buffer = buffers_[turn];
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
    bool is_last = buffer.is_last;
    full_.release();
    if (is_last) return;
  }
}

ReadAhead::Buffer& ReadAhead::take() {
  if (has_taken_) free_.release();
  has_taken_ = true;
  full_.acquire();
  Buffer& buffer = buffers_[next_];
  next_ = (next_ + 1) % kBuffers;
  return buffer;
}

}  // namespace oomscope
