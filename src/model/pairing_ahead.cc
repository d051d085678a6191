#include "model/pairing_ahead.h"

#include <algorithm>
#include <new>

namespace oomscope {
namespace {

constexpr size_t kLongTrace = 65536;  // shorter ones are paired before a thread has started
constexpr size_t kBatch = 8192;

}  // namespace

PairingAhead::~PairingAhead() { stop(); }

void PairingAhead::follow(const Trace& trace, bool is_moving) {
  const size_t events = trace.size_events();
  if (followed_ == nullptr) {
    if (is_moving || events < kLongTrace) return;
    followed_ = &trace;
    pairing_.emplace(trace.addr.capacity());
    has_thread_ = pthread_create(&thread_, nullptr, &PairingAhead::run, this) == 0;
  }
  if (followed_ != &trace || !has_thread_) return;
  if (!is_moving && events - wanted_ < kBatch) return;
  std::unique_lock<std::mutex> guard(lock_);
  if (is_moving) {
    changed_.wait(guard, [this] { return done_ == wanted_; });
    return;
  }
  columns_ = EventColumns::of(trace);
  wanted_ = events;
  changed_.notify_all();
}

std::optional<Pairs> PairingAhead::finish(const Trace& trace) {
  stop();
  const bool is_followed =
      pairing_ && !has_failed_ && trace.addr.data() == columns_.addr && trace.size_events() >= pairing_->done();
  if (!is_followed) return std::nullopt;
  // An event that was dropped after it had been read: see drop_impossible_events in the reader.
  if (std::find(trace.action.begin(), trace.action.end(), Action::unknown) != trace.action.end()) return std::nullopt;
  pairing_->add(EventColumns::of(trace), trace.size_events());
  return pairing_->finish(trace);
}

void* PairingAhead::run(void* self) {
  static_cast<PairingAhead*>(self)->pair_until_stopped();
  return nullptr;
}

void PairingAhead::pair_until_stopped() {
  std::unique_lock<std::mutex> guard(lock_);
  while (true) {
    changed_.wait(guard, [this] { return is_stopping_ || done_ < wanted_; });
    if (done_ == wanted_) return;
    const EventColumns columns = columns_;
    const size_t end = wanted_;
    guard.unlock();
    if (!has_failed_) add_pairs(columns, end);
    guard.lock();
    done_ = end;
    changed_.notify_all();
  }
}

void PairingAhead::add_pairs(const EventColumns& columns, size_t end) {
  try {
    pairing_->add(columns, end);
  } catch (const std::bad_alloc&) {
    has_failed_ = true;  // read by others after the thread has been joined
  }
}

// What was wanted is done first.
void PairingAhead::stop() {
  if (!has_thread_) return;
  {
    const std::lock_guard<std::mutex> guard(lock_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  (void)pthread_join(thread_, nullptr);
  has_thread_ = false;
}

}  // namespace oomscope
