// AddressMap: block address -> allocation, for pairing the events of a trace.
//
// Open addressing over a power-of-two table with linear probing. Keys are never removed: an address that was seen
// stays, with kNoAllocation when nothing lives there, since "was there ever anything?" is a question too. Block
// addresses are multiples of 512, so the low bits are mixed by a multiplication first. Addresses that were chosen to
// collide end in an ordered map: a search takes so many probes at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/golden.h"

namespace oomscope {

class AddressMap {
 public:
  explicit AddressMap(size_t expected = 1024) {
    size_t slots = 1024;
    while (slots < expected * 2) slots *= 2;
    slots_.resize(slots);
    shift_ = shift_of(slots);
  }

  // The value of `address`, or nullptr if the address was never set.
  [[nodiscard]] uint32_t* find(uint64_t address) {
    Slot* slot = probe(address);
    if (slot == nullptr) {
      const auto found = colliding_.find(address);
      return found == colliding_.end() ? nullptr : &found->second;
    }
    return slot->used ? &slot->value : nullptr;
  }

  void set(uint64_t address, uint32_t value) { at(address, value) = value; }

  // The value of `address`, set to `initial` if it never was. Good until the next address is new.
  [[nodiscard]] uint32_t& at(uint64_t address, uint32_t initial) {
    Slot* slot = probe(address);
    if (slot != nullptr && slot->used) return slot->value;
    if (slot != nullptr && (count_ + 1) * 2 > slots_.size()) {
      grow();
      slot = probe(address);
    }
    if (slot == nullptr) return colliding_.try_emplace(address, initial).first->second;
    ++count_;
    *slot = Slot{.address = address, .value = initial, .used = true};
    return slot->value;
  }

  // It will be asked for soon.
  void prefetch(uint64_t address) const { __builtin_prefetch(&slots_[index_of(address)]); }

  // `visit` every value that was set.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const Slot& slot : slots_) {
      if (slot.used) visit(slot.value);
    }
    for (const auto& [address, value] : colliding_) visit(value);
  }

 private:
  struct Slot {
    uint64_t address = 0;
    uint32_t value = 0;
    bool used = false;
  };

  static int shift_of(size_t slots) {
    int shift = 64;
    for (; slots > 1; slots /= 2) --shift;
    return shift;
  }

  [[nodiscard]] size_t index_of(uint64_t address) const { return static_cast<size_t>((address * kGolden) >> shift_); }

  // Its slot, or the free one for it; nullptr if both are too far away.
  [[nodiscard]] Slot* probe(uint64_t address) {
    constexpr int kMostProbes = 256;
    size_t index = index_of(address);
    for (int i = 0; i < kMostProbes; ++i) {
      Slot& slot = slots_[index];
      if (!slot.used || slot.address == address) return &slot;
      index = (index + 1) & (slots_.size() - 1);
    }
    return nullptr;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    shift_ = shift_of(slots_.size());
    std::map<uint64_t, uint32_t> again;
    again.swap(colliding_);
    count_ = 0;
    for (const Slot& slot : old) {
      if (slot.used) put_again(slot.address, slot.value);
    }
    for (const auto& [address, value] : again) put_again(address, value);
  }

  void put_again(uint64_t address, uint32_t value) {
    if (Slot* slot = probe(address)) {
      *slot = Slot{.address = address, .value = value, .used = true};
      ++count_;
    } else {
      colliding_[address] = value;
    }
  }

  std::vector<Slot> slots_;
  std::map<uint64_t, uint32_t> colliding_;
  size_t count_ = 0;
  int shift_ = 0;
};

}  // namespace oomscope
