// PairingAhead: pairs the events of a trace on a side thread while the file is still being decoded.
//
// Decoding takes 27 ms for a million events and pairing 12 (AMD EPYC); with two processors the second is free. It also
// touches the pages that the decoder writes to next, so that this has few page faults (see Note [First touch]). Only
// the first long trace of a file is followed: nearly always it is the only one. Whoever reads calls follow() as the
// trace grows (SnapshotReadOptions::follow), stop() once it is decoded (SnapshotReadOptions::decoded), then finish()
// with the trace as it came out.
#pragma once

#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>

#include "base/large_vector.h"
#include "base/side_thread.h"
#include "model/pairing.h"

namespace oomscope {

class PairingAhead {
 public:
  explicit PairingAhead(SideThread& side) : side_(side) {}
  PairingAhead(const PairingAhead&) = delete;
  PairingAhead& operator=(const PairingAhead&) = delete;
  ~PairingAhead() { stop(); }

  // `trace` has grown, or `is_moving`: its columns are about to move, and are no longer looked at when this returns.
  void follow(const Trace& trace, bool is_moving);
  // Decoding has ended, well or badly: the trace is not looked at any more, and may change or go.
  void stop();
  // The pairs of `trace`; empty if it is not the one that was followed, or has changed since.
  [[nodiscard]] std::optional<Pairs> finish(const Trace& trace);

 private:
  // Of the columns that grow: nobody has written there yet.
  using Rooms = std::array<std::span<const std::byte>, 4>;
  static Rooms rooms_of(const Trace& trace);

  bool touch_some();
  bool pair_some(size_t least_waiting);
  void add_pairs(const EventColumns& columns, size_t end);

  SideThread& side_;
  const Trace* followed_ = nullptr;  // while it is read; it moves afterwards
  std::optional<Pairing> pairing_;   // the side thread's until stop()
  bool is_added_ = false;            // to the side thread's duties

  std::mutex lock_;
  std::condition_variable caught_up_;
  EventColumns columns_;
  Rooms rooms_;
  size_t wanted_ = 0;  // events [0, wanted_) may be paired
  size_t done_ = 0;
  bool has_failed_ = false;                                   // out of memory: the pairs are found afresh
  std::array<TouchAhead, std::tuple_size_v<Rooms>> touched_;  // the side thread's
};

}  // namespace oomscope
