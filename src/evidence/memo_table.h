// MemoTable: pickle's memo.
//
// A trace of a million events memoises 2.6 million objects and looks up few of them, nearly all soon after. An entry is
// a tag of 3 bits and an index of 29. The last few thousand are in a window, which stays in the cache. For the others,
// those of the general path are written down; those of a run of events that a template decoded follow from the template
// and the events' stacks, so that one bit an event is kept of them: 10 MiB less to touch.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/large_vector.h"
#include "types/ids.h"

namespace oomscope {

enum class MemoTag : uint32_t {
  opaque,
  text,      // StringId
  frame,     // index into StackTable::frames
  stack,     // StackId
  pair,      // index of a tuple of two integers
  boxed,     // index of a slot kept elsewhere
  building,  // index of a builder: a container that may still grow
};

struct MemoEntry {
  uint32_t bits = 0;  // 0: opaque
  static constexpr uint32_t kIndexBits = 29;
  static constexpr uint32_t kMaxIndex = (uint32_t{1} << kIndexBits) - 1;

  static MemoEntry of(MemoTag tag, uint32_t index) {
    if (index > kMaxIndex) return MemoEntry{};
    return MemoEntry{(static_cast<uint32_t>(tag) << kIndexBits) | index};
  }
  [[nodiscard]] MemoTag tag() const { return static_cast<MemoTag>(bits >> kIndexBits); }
  [[nodiscard]] uint32_t index() const { return bits & kMaxIndex; }
  bool operator==(const MemoEntry&) const = default;
};

// Entries that each event of a template makes, in their order. Its list of frames comes behind them and may be another.
struct EventMemos {
  static constexpr size_t kMost = 8;
  std::array<MemoEntry, kMost> entries{};
  uint32_t count = 0;
  bool operator==(const EventMemos&) const = default;
};

// Events of one template, one behind the other in the file and in their trace, and the entries that they made.
struct MemoRun {
  static constexpr size_t kMostEvents = 256;
  uint32_t first_index = 0;
  uint32_t end_index = 0;
  uint32_t first_event = 0;                        // index into stacks
  uint32_t kind = 0;                               // what each makes: the table's business
  std::array<uint64_t, kMostEvents / 64> lists{};  // a bit an event: it made a list of frames
  const LargeVector<StackId>* stacks = nullptr;    // of the trace
};

class MemoTable {
 public:
  // What the loop over events keeps in registers: its entries go into the window alone, until add_run() says whose they
  // are.
  class Tail {
   public:
    // `index` is below next().
    [[nodiscard]] MemoEntry get(uint32_t index) const {
      if (index >= window_begin_) return window_[index - window_begin_];
      return index < first_count_ ? written_[index] : memo_->get_far(index);
    }
    void add(const EventMemos& memos) {
      std::memcpy(window_ + (next_ - window_begin_), memos.entries.data(), sizeof(memos.entries));
      next_ += memos.count;
    }
    void add(MemoEntry entry) { window_[next_++ - window_begin_] = entry; }
    [[nodiscard]] uint32_t next() const { return next_; }

   private:
    friend class MemoTable;
    MemoEntry* window_ = nullptr;
    uint32_t window_begin_ = 0;
    uint32_t next_ = 0;
    const MemoEntry* written_ = nullptr;
    uint32_t first_count_ = 0;
    const MemoTable* memo_ = nullptr;
  };

  [[nodiscard]] uint32_t next_index() const { return next_; }
  // For as many events as a run may have; good until anything else is called that is not const.
  [[nodiscard]] Tail tail();
  // Takes over what was added to tail(): entries [run.first_index, run.end_index), of events that make `each`.
  void add_run(const EventMemos& each, MemoRun run);

  void put(uint32_t index, MemoEntry entry);
  // A container's entry, once the container is complete: `building` until now.
  void complete(uint32_t index, MemoEntry entry);
  // How often an index was put that had been put before, or skipped.
  [[nodiscard]] uint64_t overwrites() const { return overwrites_; }
  [[nodiscard]] bool has(uint64_t index) const { return index < next_; }
  // Of an index that it has; also while a tail has entries that were not taken over yet.
  [[nodiscard]] MemoEntry get(uint32_t index) const {
    if (index >= window_begin_) return window_[index - window_begin_];
    return index < first_count_ ? written_[index] : get_far(index);
  }
  [[nodiscard]] int64_t memory_bytes() const {
    return static_cast<int64_t>(written_.capacity() * sizeof(MemoEntry) + pieces_.capacity() * sizeof(Piece) +
                                runs_.capacity() * sizeof(MemoRun) + kinds_.capacity() * sizeof(EventMemos));
  }

 private:
  static constexpr uint32_t kWindow = 1 << 14;
  static constexpr uint32_t kKept = 1 << 12;  // at least, when the window moves on
  static constexpr uint32_t kMostInRun = (MemoRun::kMostEvents + 1) * (EventMemos::kMost + 1);
  static_assert(kKept + kMostInRun < kWindow);

  // Entries written down one behind the other, up to where the next piece begins in written_.
  struct Piece {
    uint32_t first_index = 0;
    uint32_t first_written = 0;
  };

  [[nodiscard]] uint32_t kind_of(const EventMemos& each);
  template <class Use>
  void for_entries(const MemoRun& run, const Use& use) const;
  void make_room(uint32_t end);
  void write_down(uint32_t index, MemoEntry entry);
  void write_down_all();
  [[nodiscard]] const MemoRun* run_of(uint32_t index) const;
  [[nodiscard]] const MemoEntry* written_at(uint32_t index) const;
  [[nodiscard]] MemoEntry get_far(uint32_t index) const;

  std::vector<MemoEntry> window_ = std::vector<MemoEntry>(kWindow);  // of entries [window_begin_, next_)
  uint32_t window_begin_ = 0;
  uint32_t next_ = 0;
  uint32_t first_count_ = 0;  // entries [0, first_count_) are the first written
  LargeVector<MemoEntry> written_;
  std::vector<Piece> pieces_;  // ascending, as runs_ are; what is in neither was skipped
  std::vector<MemoRun> runs_;
  std::vector<EventMemos> kinds_;
  uint64_t overwrites_ = 0;
};

}  // namespace oomscope
