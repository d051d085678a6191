#include "cli/progress.h"

#include <algorithm>

namespace oomscope {
namespace {

constexpr int64_t kRedrawMs = 100;

}  // namespace

void Progress::update(std::string_view what, int64_t done, int64_t total) {
  if (terminal_ == nullptr) return;
  const int64_t now_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started_).count();
  int64_t next_ms = next_ms_.load(std::memory_order_relaxed);
  // One thread wins the redraw; the others go on working.
  if (now_ms < next_ms || !next_ms_.compare_exchange_strong(next_ms, now_ms + kRedrawMs)) return;
  std::string line = "\r\x1b[K" + std::string(what);
  if (total > 0) line += " " + std::to_string(std::clamp<int64_t>(done * 100 / total, 0, 100)) + " %";
  const std::lock_guard<std::mutex> lock(mutex_);
  std::fwrite(line.data(), 1, line.size(), terminal_);
  std::fflush(terminal_);
  is_shown_ = true;
}

void Progress::clear() {
  if (terminal_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_shown_) return;
  std::fputs("\r\x1b[K", terminal_);
  std::fflush(terminal_);
  is_shown_ = false;
}

}  // namespace oomscope
