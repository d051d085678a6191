// SnapshotMachine, at the end of the pickle: its value, or what is left of it.
//
// A file that was cut leaves containers open. We close them from the inside out, as if APPENDS and SETITEMS had come,
// but a dictionary whose pairs are not all there is dropped: half an event is no event. Only the outermost dictionary
// is kept, since each of its keys stands for itself.
//
//   stack at the cut   D ( 'segments' S 'device_traces' T L (      D ( 'addr' 140 'si
//                      |                                 '- half an event: dropped
//   after              { segments: S, device_traces: [ L ] }       the events of L so far are kept
#include "evidence/snapshot_machine.h"

namespace oomscope {
namespace {

bool is_row(SlotKind kind) {
  switch (kind) {
    case SlotKind::event:
    case SlotKind::segment:
    case SlotKind::block:
    case SlotKind::annotation:
    case SlotKind::frame: return true;
    default: return false;
  }
}

}  // namespace

// The items above `floor`, the last of which may still wait for its APPEND: [... list item] becomes [... list].
// Inside a list two neighbours that are lists are items both, and only a row is known to belong to its neighbour.
void SnapshotMachine::fold_last_item(size_t floor, bool in_list) {
  while (stack_.size() >= floor + 2) {
    Slot item = stack_.back();
    Slot list = stack_[stack_.size() - 2];
    bool belongs = is_row(item.kind) || (!in_list && item.kind == SlotKind::list);
    if (list.kind != SlotKind::list || !belongs) return;
    stack_.pop_back();
    Slot frozen = freeze(item);
    append_item(builders_[list.index], frozen);
  }
}

void SnapshotMachine::close_unfinished() {
  // A dictionary without its SETITEMS yet.
  if (stack_.size() > 1 && stack_.back().kind == SlotKind::dict) pop();
  while (!marks_.empty() && marks_.back() > 0) {
    size_t position = marks_.back();
    Slot container = stack_[position - 1];
    fold_last_item(position + 1, container.kind == SlotKind::list);
    if (container.kind == SlotKind::list) {
      if (!append_from_mark()) return;
    } else if (container.kind == SlotKind::dict && position == 1) {
      if ((stack_.size() - position - 1) % 2 != 0) pop();
      for (size_t i = position + 1; i < stack_.size(); ++i) stack_[i] = freeze(stack_[i]);
      Builder& top = builders_[container.index];
      top.pairs.insert(top.pairs.end(), stack_.begin() + static_cast<ptrdiff_t>(position) + 1, stack_.end());
      pop_mark();
    } else {
      pop_mark();
      pop();
    }
  }
  fold_last_item(0, false);
}

SnapshotMachine::Top SnapshotMachine::take_top() {
  if (!stopped_) close_unfinished();
  if (stack_.empty()) return Top{};
  // STOP takes the last value, damage leaves the outermost first.
  Slot slot = stopped_ ? stack_.back() : stack_.front();
  if (slot.kind == SlotKind::dict) return Top{slot, builders_[slot.index].pairs};
  return Top{freeze(slot), {}};
}

}  // namespace oomscope
