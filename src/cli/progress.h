// One line on standard error while something takes more than a second; nothing where that is not a terminal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace oomscope {

class Progress {
 public:
  // `terminal` is where the line goes; null: never shown.
  explicit Progress(std::FILE* terminal) : terminal_(terminal), started_(std::chrono::steady_clock::now()) {}
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // From any thread, as often as one likes. `total` 0: no percentage. The second starts with the first Progress call
  // of the program, not of the step: people wait for the whole.
  void update(std::string_view what, int64_t done, int64_t total);

  // Takes the line away, before other text is written.
  void clear();

 private:
  std::FILE* terminal_;
  std::chrono::steady_clock::time_point started_;
  std::atomic<int64_t> next_ms_{1000};  // after `started_`: when the line may be drawn again
  std::mutex mutex_;
  bool is_shown_ = false;
};

}  // namespace oomscope
