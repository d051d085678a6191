// SideThread: one thread beside the caller's, for whatever of several duties can go on.
//
// Reading ahead and pairing what is decoded both have to keep up with the decoder. As threads of their own they take
// turns on the second processor, for milliseconds each, and who waits for one of them waits for the other's turn too:
// 46 ms for a million events, where all their work is 56 on two processors (AMD EPYC). On one thread they alternate
// every few microseconds.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

namespace oomscope {

class SideThread {
 public:
  // A piece of work of some ten microseconds; false: nothing to do until the next wake(). Must not throw, must not wait
  // for anybody, and what it uses must outlive it: until remove(), or the end of the SideThread.
  using Duty = std::function<bool()>;

  SideThread() = default;
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;
  ~SideThread();

  // In front of the duties that are there, or behind them.
  enum class Turn { first, last };

  // `owner`, who may have several duties, is not nullptr. False: no thread could be made, and nothing will be done.
  bool add(const void* owner, Duty duty, Turn turn = Turn::first);
  // Afterwards no duty of the owner runs, now or later. Harmless if it has none.
  void remove(const void* owner);
  // Some duty has something to do again.
  void wake();

 private:
  struct Entry {
    const void* owner;
    Duty duty;
  };

  static void* run(void* self);
  void work_until_stopped();
  bool work_once(std::unique_lock<std::mutex>& guard);

  std::mutex lock_;
  std::condition_variable changed_;
  std::vector<Entry> entries_;
  const void* running_ = nullptr;       // whose duty runs just now
  std::atomic<bool> is_awake_ = false;  // wake() was called since the duties were last asked
  std::atomic<bool> is_stopping_ = false;
  bool has_thread_ = false;
  pthread_t thread_{};
};

}  // namespace oomscope
