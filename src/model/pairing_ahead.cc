#include "model/pairing_ahead.h"

#include <algorithm>
#include <new>

namespace oomscope {
namespace {

constexpr size_t kLongTrace = 65536;   // shorter ones are paired before a thread has started
constexpr size_t kBatch = 4096;        // events in one piece: some 50 us
constexpr size_t kFarBehind = 131072;  // events

}  // namespace

void PairingAhead::follow(const Trace& trace, bool is_moving) {
  const size_t events = trace.size_events();
  if (followed_ == nullptr) {
    if (is_moving || events < kLongTrace) return;
    followed_ = &trace;
    pairing_.emplace(trace.action.capacity());
    // Nobody else pairs, but who decodes can read too: so pairing must not fall far behind, and reading goes first.
    const auto pair_when_far_behind = [this] { return pair_some(kFarBehind); };
    const auto pair = [this] { return pair_some(1); };
    is_added_ = side_.add(this, pair_when_far_behind, SideThread::Turn::first) &&
                side_.add(
                    this, [this] { return touch_some(); }, SideThread::Turn::first) &&
                side_.add(this, pair, SideThread::Turn::last);
  }
  if (followed_ != &trace || !is_added_) return;
  const bool has_moved = columns_.action == nullptr;
  if (!is_moving && !has_moved && events - wanted_ < kBatch) return;
  std::unique_lock<std::mutex> guard(lock_);
  if (is_moving) {
    caught_up_.wait(guard, [this] { return done_ == wanted_; });
    columns_ = {};  // another trace may come to lie there
    rooms_ = {};
    return;
  }
  columns_ = EventColumns::of(trace);
  rooms_ = rooms_of(trace);
  wanted_ = events;
  guard.unlock();
  side_.wake();
}

std::optional<Pairs> PairingAhead::finish(const Trace& trace) {
  stop();
  const bool is_followed =
      pairing_ && !has_failed_ && trace.action.data() == columns_.action && trace.size_events() >= pairing_->done();
  if (!is_followed) return std::nullopt;
  // An event that was dropped after it had been read: see drop_impossible_events in the reader.
  if (std::find(trace.action.begin(), trace.action.end(), Action::unknown) != trace.action.end()) return std::nullopt;
  pairing_->add(EventColumns::of(trace), trace.size_events());
  return pairing_->finish();
}

PairingAhead::Rooms PairingAhead::rooms_of(const Trace& trace) {
  return {trace.addr.spare(), trace.size.spare(), spare_room(trace.stack), spare_room(trace.action)};
}

// Harmless where a column has moved meanwhile: pages that others have in its place are only touched.
bool PairingAhead::touch_some() {
  std::unique_lock<std::mutex> guard(lock_);
  const Rooms rooms = rooms_;
  guard.unlock();
  for (size_t i = 0; i < rooms.size(); ++i) {
    if (touched_[i].touch(rooms[i])) return true;
  }
  return false;
}

bool PairingAhead::pair_some(size_t least_waiting) {
  std::unique_lock<std::mutex> guard(lock_);
  if (wanted_ - done_ < least_waiting) return false;
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
  side_.remove(this);  // also where memory ran out between the duties
  is_added_ = false;
}

}  // namespace oomscope
