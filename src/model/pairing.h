// Pairing: every alloc, free_requested and free_completed of a trace is tied to its allocation.
//
// A free of an address that was never seen is that of a block which was there before the recording; a free of one that
// was seen but is not live now is an orphan and stays without allocation. The events are taken in pieces, so that they
// can be paired while the rest of the file is being read: see pairing_ahead.h.
#pragma once

#include <array>
#include <cstdint>

#include "model/address_map.h"
#include "model/timeline.h"

namespace oomscope {

// Where the columns of a trace lie: good until the trace grows beyond its capacity.
struct EventColumns {
  const Action* action = nullptr;
  AddressColumn::View addr;
  [[nodiscard]] static EventColumns of(const Trace& trace) { return {trace.action.data(), trace.addr.view()}; }
};

class Pairing {
 public:
  // `events`: about how many there will be.
  explicit Pairing(size_t events);

  // Pairs events [done(), end).
  void add(const EventColumns& columns, size_t end);
  [[nodiscard]] size_t done() const { return pairs_.allocation_of.size(); }
  // All events have been added.
  [[nodiscard]] Pairs finish();

 private:
  uint32_t add_allocation(const AllocationEvents& events);
  uint32_t begin(uint32_t event);
  uint32_t free_requested(uint32_t event);
  uint32_t free_completed(uint32_t event);

  EventColumns columns_;
  Pairs pairs_;
  AddressMap live_;
  std::array<TouchAhead, 2> touched_;  // of the two tables
};

[[nodiscard]] Pairs pair_events(const Trace& trace);

}  // namespace oomscope
