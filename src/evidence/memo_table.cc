#include "evidence/memo_table.h"

#include <bit>
#include <iterator>
#include <utility>

namespace oomscope {
namespace {

bool makes_list(const MemoRun& run, size_t event) { return (run.lists[event / 64] >> (event % 64) & 1) != 0; }

MemoEntry list_of(const MemoRun& run, size_t event) {
  return MemoEntry::of(MemoTag::stack, static_cast<uint32_t>((*run.stacks)[run.first_event + event]));
}

// The last of `ascending` that begins at `index` or before; nullptr if none does.
template <class T>
const T* last_before(const std::vector<T>& ascending, uint32_t index) {
  const auto above = std::upper_bound(ascending.begin(), ascending.end(), index,
                                      [](uint32_t at, const T& entry) { return at < entry.first_index; });
  return above == ascending.begin() ? nullptr : &*std::prev(above);
}

}  // namespace

// Calls `use(index, entry)` for the entries of a run, in order.
template <class Use>
void MemoTable::for_entries(const MemoRun& run, const Use& use) const {
  const EventMemos& each = kinds_[run.kind];
  uint32_t index = run.first_index;
  for (size_t event = 0; index < run.end_index; ++event) {
    for (uint32_t i = 0; i < each.count; ++i) use(index++, each.entries[i]);
    if (makes_list(run, event)) use(index++, list_of(run, event));
  }
}

MemoTable::Tail MemoTable::tail() {
  make_room(next_ + kMostInRun);
  Tail tail;
  tail.window_ = window_.data();
  tail.window_begin_ = window_begin_;
  tail.next_ = next_;
  tail.written_ = written_.data();
  tail.first_count_ = first_count_;
  tail.memo_ = this;
  return tail;
}

void MemoTable::add_run(const EventMemos& each, MemoRun run) {
  run.kind = kind_of(each);
  constexpr uint32_t kFewEvents = 8;  // as entries they take hardly more than as a run
  const bool are_few = run.end_index - run.first_index <= kFewEvents * (each.count + 1);
  if (are_few || overwrites_ > 0) {
    for_entries(run, [this](uint32_t index, MemoEntry entry) { write_down(index, entry); });
  } else {
    runs_.push_back(run);
  }
  next_ = run.end_index;
}

uint32_t MemoTable::kind_of(const EventMemos& each) {
  const size_t recent = kinds_.size() - std::min<size_t>(kinds_.size(), 8);  // older ones may be there twice
  const auto known = std::find(kinds_.begin() + static_cast<std::ptrdiff_t>(recent), kinds_.end(), each);
  if (known != kinds_.end()) return static_cast<uint32_t>(known - kinds_.begin());
  kinds_.push_back(each);
  return static_cast<uint32_t>(kinds_.size() - 1);
}

void MemoTable::put(uint32_t index, MemoEntry entry) {
  if (index < next_) {
    ++overwrites_;
    if (written_at(index) == nullptr) write_down_all();
    return complete(index, entry);
  }
  // What was written down as a whole stays whole, so that it need not be written again.
  for (uint32_t i = next_; overwrites_ > 0 && i < index; ++i) write_down(i, {});
  make_room(index + 1);
  for (uint32_t i = std::max(next_, window_begin_); i < index; ++i) window_[i - window_begin_] = MemoEntry{};
  window_[index - window_begin_] = entry;
  write_down(index, entry);
  next_ = index + 1;
}

void MemoTable::complete(uint32_t index, MemoEntry entry) {
  const MemoEntry* written = written_at(index);
  if (written != nullptr) written_[static_cast<size_t>(written - written_.data())] = entry;
  if (index >= window_begin_) window_[index - window_begin_] = entry;
}

// The window will reach to `end`, with the last kKept entries in it or, behind a gap, fewer.
void MemoTable::make_room(uint32_t end) {
  if (end - window_begin_ <= kWindow) return;
  const uint32_t begin = std::max(next_ - std::min(next_, kKept), end - kWindow);
  if (begin < next_) {
    std::copy(window_.begin() + (begin - window_begin_), window_.begin() + (next_ - window_begin_), window_.begin());
  }
  window_begin_ = begin;
}

// `index` is that of the entry written before and one, or there was a run or a gap between.
void MemoTable::write_down(uint32_t index, MemoEntry entry) {
  const uint32_t written = static_cast<uint32_t>(written_.size());
  if (pieces_.empty() || index - pieces_.back().first_index != written - pieces_.back().first_written) {
    pieces_.push_back({index, written});
  }
  written_.push_back(entry);
  if (index == first_count_ && pieces_.size() == 1) ++first_count_;
}

// No writer changes what it memoised; where a file does, all is written down, and what was skipped too.
void MemoTable::write_down_all() {
  LargeVector<MemoEntry> all(next_, MemoEntry{});
  for (const Piece& piece : pieces_) {
    const Piece* next = &piece + 1;
    const uint32_t end =
        next == pieces_.data() + pieces_.size() ? static_cast<uint32_t>(written_.size()) : next->first_written;
    std::copy(written_.begin() + piece.first_written, written_.begin() + end, all.begin() + piece.first_index);
  }
  for (const MemoRun& run : runs_) {
    for_entries(run, [&all](uint32_t index, MemoEntry entry) { all[index] = entry; });
  }
  written_ = std::move(all);
  pieces_.assign(1, Piece{});
  runs_.clear();
  kinds_.clear();
  first_count_ = next_;
}

const MemoRun* MemoTable::run_of(uint32_t index) const {
  const MemoRun* run = last_before(runs_, index);
  return run != nullptr && index < run->end_index ? run : nullptr;
}

const MemoEntry* MemoTable::written_at(uint32_t index) const {
  if (index < first_count_) return &written_[index];
  const Piece* piece = last_before(pieces_, index);
  if (piece == nullptr) return nullptr;
  const bool is_last = piece == &pieces_.back();
  const size_t end = is_last ? written_.size() : (piece + 1)->first_written;
  const size_t at = size_t{piece->first_written} + (index - piece->first_index);
  return at < end ? &written_[at] : nullptr;
}

MemoEntry MemoTable::get_far(uint32_t index) const {
  const MemoRun* run = run_of(index);
  if (run == nullptr) {
    const MemoEntry* written = written_at(index);
    return written == nullptr ? MemoEntry{} : *written;
  }
  const EventMemos& each = kinds_[run->kind];
  uint32_t left = index - run->first_index;
  size_t event = 0;
  for (const uint64_t lists : run->lists) {
    const uint32_t made = 64 * each.count + static_cast<uint32_t>(std::popcount(lists));
    if (left < made) break;
    left -= made;
    event += 64;
  }
  for (;; ++event) {
    if (left < each.count) return each.entries[left];
    left -= each.count;
    if (!makes_list(*run, event)) continue;
    if (left == 0) return list_of(*run, event);
    left -= 1;
  }
}

}  // namespace oomscope
