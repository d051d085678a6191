#include "model/pairing_ahead.h"

#include <algorithm>
#include <new>

namespace oomscope {
namespace {

constexpr size_t kLongTrace = 65536;  // shorter ones are paired before a thread has started
constexpr size_t kBatch = 4096;       // events in one piece: some 50 us

}  // namespace

void PairingAhead::follow(const Trace& trace, bool is_moving) {
  const size_t events = trace.size_events();
  if (followed_ == nullptr) {
    if (is_moving || events < kLongTrace) return;
    followed_ = &trace;
    pairing_.emplace(trace.addr.capacity());
    is_added_ = side_.add(this, [this] { return pair_some(); });
  }
  if (followed_ != &trace || !is_added_) return;
  const bool has_moved = columns_.addr == nullptr;
  if (!is_moving && !has_moved && events - wanted_ < kBatch) return;
  std::unique_lock<std::mutex> guard(lock_);
  if (is_moving) {
    caught_up_.wait(guard, [this] { return done_ == wanted_; });
    columns_ = {};  // another trace may come to lie there
    return;
  }
  columns_ = EventColumns::of(trace);
  wanted_ = events;
  guard.unlock();
  side_.wake();
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

bool PairingAhead::pair_some() {
  std::unique_lock<std::mutex> guard(lock_);
  if (done_ == wanted_) return false;
  const EventColumns columns = columns_;
  const size_t end = std::min(wanted_, done_ + kBatch);
  guard.unlock();
  if (!has_failed_) add_pairs(columns, end);
  guard.lock();
  done_ = end;
  caught_up_.notify_all();
  return true;
}

void PairingAhead::add_pairs(const EventColumns& columns, size_t end) {
  try {
    pairing_->add(columns, end);
  } catch (const std::bad_alloc&) {
    has_failed_ = true;  // read by others after stop()
  }
}

// What is not paired yet is paired by finish().
void PairingAhead::stop() {
  if (is_added_) side_.remove(this);
  is_added_ = false;
}

}  // namespace oomscope
