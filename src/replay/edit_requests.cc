// A recording's requests as a changed program would make them.
#include <algorithm>
#include <utility>

#include "replay/what_if.h"

namespace oomscope {
namespace {

// Walks the requests once; what a change frees or adds "at an event" comes before the next request behind that event.
class Editor {
 public:
  Editor(const RequestStream& requests, RequestEdits edits) : in_(requests), edits_(std::move(edits)), out_(requests) {
    const auto by_free = [](const RequestEdit& a, const RequestEdit& b) { return a.free_at < b.free_at; };
    std::stable_sort(edits_.blocks.begin(), edits_.blocks.end(), by_free);
    const auto by_event = [](const RequestEdits::Added& a, const RequestEdits::Added& b) { return a.event < b.event; };
    std::stable_sort(edits_.added.begin(), edits_.added.end(), by_event);
    free_at_.resize(in_.size.size(), RequestEdit::kFreedAsRecorded);
    held_.resize(in_.size.size(), false);
    for (const RequestEdit& edit : edits_.blocks) {
      if (edit.allocation >= free_at_.size()) continue;
      free_at_[edit.allocation] = edit.free_at;
      if (edit.size != RequestEdit::kSizeAsRecorded) out_.size[edit.allocation] = edit.size;
    }
    out_.kind.clear();
    out_.id.clear();
    if (!edits_.shares_pools) return;
    for (RequestStream::Place& place : out_.places) place.pool = PoolId{};
    for (RequestStream::Failure& failure : out_.failures) failure.place.pool = PoolId{};
  }

  RequestStream run() {
    for (size_t i = 0; i < in_.kind.size(); ++i) pass_on(in_.kind[i], in_.id[i]);
    if (edits_.last_failure_bytes && !out_.failures.empty()) out_.failures.back().size = *edits_.last_failure_bytes;
    return std::move(out_);
  }

 private:
  void add(RequestKind kind, uint32_t id) {
    out_.kind.push_back(kind);
    out_.id.push_back(id);
  }

  void move_to(uint32_t event) {
    for (; next_free_ < edits_.blocks.size() && edits_.blocks[next_free_].free_at <= event; ++next_free_) {
      const uint32_t id = edits_.blocks[next_free_].allocation;
      if (id >= held_.size() || !held_[id]) continue;
      held_[id] = false;
      add(RequestKind::free, id);
    }
    for (; next_added_ < edits_.added.size() && edits_.added[next_added_].event <= event; ++next_added_) {
      add_block(edits_.added[next_added_]);
    }
  }

  // On the stream that most is asked for: the first of the recording.
  void add_block(const RequestEdits::Added& block) {
    if (added_place_ == kNoPlace) {
      added_place_ = static_cast<uint32_t>(out_.places.size());
      const StreamId stream = out_.places.empty() ? StreamId{} : out_.places.front().stream;
      out_.places.push_back(RequestStream::Place{stream, PoolId{}});
    }
    const uint32_t id = static_cast<uint32_t>(out_.size.size());
    out_.size.push_back(block.size);
    out_.place.push_back(added_place_);
    out_.begin.push_back(block.event);
    add(RequestKind::malloc, id);
  }

  void pass_on(RequestKind kind, uint32_t id) {
    switch (kind) {
      case RequestKind::malloc: {
        const uint32_t begin = in_.begin[id] == kNoEvent ? 0 : in_.begin[id];
        move_to(begin);
        if (free_at_[id] == RequestEdit::kFreedAsRecorded) break;
        if (free_at_[id] <= begin) return;
        held_[id] = true;
        break;
      }
      case RequestKind::free:
      case RequestKind::free_held:
      case RequestKind::complete:
        if (free_at_[id] != RequestEdit::kFreedAsRecorded) return;
        break;
      case RequestKind::failed: {
        move_to(in_.failures[id].event);
        const bool is_last = id + 1 == in_.failures.size();
        if (is_last && edits_.last_failure_bytes == 0) return;
        break;
      }
      case RequestKind::empty_pool:
        if (edits_.shares_pools) return;
        break;
      case RequestKind::empty_cache: break;
    }
    add(kind, id);
  }

  static constexpr uint32_t kNoPlace = 0xffffffff;
  const RequestStream& in_;
  RequestEdits edits_;
  RequestStream out_;
  std::vector<uint32_t> free_at_;  // by allocation
  std::vector<bool> held_;         // was asked for, and waits for its own free
  size_t next_free_ = 0;
  size_t next_added_ = 0;
  uint32_t added_place_ = kNoPlace;
};

}  // namespace

RequestStream with_edits(const RequestStream& requests, RequestEdits edits) {
  return Editor(requests, std::move(edits)).run();
}

}  // namespace oomscope
