#include "base/side_thread.h"

#include <utility>

#include "base/processors.h"

namespace oomscope {

SideThread::~SideThread() {
  if (!has_thread_) return;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  (void)pthread_join(thread_, nullptr);
}

bool SideThread::add(const void* owner, Duty duty, Turn turn) {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (!has_thread_) {
      has_thread_ = pthread_create(&thread_, nullptr, &SideThread::run, this) == 0;
      if (has_thread_) keep_off(thread_, this_processor());
    }
    if (!has_thread_) return false;
    entries_.insert(turn == Turn::first ? entries_.begin() : entries_.end(), {owner, std::move(duty)});
  }
  wake();
  return true;
}

void SideThread::remove(const void* owner) {
  std::unique_lock<std::mutex> guard(lock_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.owner == owner; });
  is_awake_ = true;  // the turn that is under way may miss a duty, now that they have moved up
  changed_.notify_all();
  changed_.wait(guard, [&] { return running_ != owner; });
}

void SideThread::wake() {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    if (is_awake_) return;
    is_awake_ = true;
  }
  changed_.notify_all();
}

void* SideThread::run(void* self) {
  static_cast<SideThread*>(self)->work_until_stopped();
  return nullptr;
}

void SideThread::work_until_stopped() {
  std::unique_lock<std::mutex> guard(lock_);
  while (!is_stopping_) {
    is_awake_ = false;
    if (work_once(guard)) continue;
    guard.unlock();
    (void)spin_until([this] { return is_awake_ || is_stopping_; });
    guard.lock();
    changed_.wait(guard, [this] { return is_awake_ || is_stopping_; });
  }
}

// The first duty that has something to do does a piece of it.
bool SideThread::work_once(std::unique_lock<std::mutex>& guard) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    running_ = entries_[i].owner;
    const Duty duty = entries_[i].duty;  // adding another may move the entries
    guard.unlock();
    const bool has_worked = duty();
    guard.lock();
    running_ = nullptr;
    changed_.notify_all();
    if (has_worked) return true;
  }
  return false;
}

}  // namespace oomscope
