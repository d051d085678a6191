// Note [What tells 16 bits]
//
// Any of these does:
//   a scaler    torch.amp.GradScaler is at work: somebody computes in fp16
//   moves       most weights were halved as the module moved: model.to(torch.bfloat16), model.half()
//   the loss    is a scalar of two bytes: it was computed in 16 bits
//   upcasts     the loss makes a copy twice as large as the logits, or a norm one twice as large as what it returns:
//   such
//               copies are no copies where all is 32 bits
//   downcasts   most gradients of weights are made at half their size first: autocast's backward
#include "model/precision.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "base/source_path.h"

namespace oomscope {
namespace {

constexpr int64_t kMatrixBytes = 64 * 1024;  // less is a vector of weights, or of statistics
constexpr int64_t kHalfScalar = 2;
constexpr size_t kNear = 16;   // requests between a 16-bit gradient and its 32-bit copy, at most
constexpr uint32_t kSoon = 4;  // events after which the 16-bit one is gone

class Witnesses {
 public:
  Witnesses(const Timeline& timeline, const Structure& structure, const std::vector<AllocationCategory>& categories)
      : timeline_(timeline), structure_(structure), categories_(categories) {}

  [[nodiscard]] bool any() const {
    return has_scaler() || has_halved_weights() || has_half_loss() || has_upcasts() || has_downcast_gradients();
  }

 private:
  [[nodiscard]] Allocation at(uint32_t id) const { return timeline_.allocations[id]; }
  [[nodiscard]] const StackTraits& traits(uint32_t id) const { return structure_.traits(at(id).stack); }
  [[nodiscard]] Phase phase(uint32_t id) const {
    const uint32_t begin = at(id).begin;
    return begin == kNoEvent || begin >= structure_.span_of.size() ? Phase::unknown : structure_.span_at(begin).phase;
  }

  [[nodiscard]] bool has_scaler() const {
    const Snapshot& snapshot = *timeline_.snapshot;
    return std::any_of(snapshot.stacks.frames.begin(), snapshot.stacks.frames.end(), [&](const Frame& frame) {
      return path_ends_with(snapshot.strings.text(frame.filename), "torch/amp/grad_scaler.py") &&
             snapshot.strings.text(frame.name) != "__init__";
    });
  }

  [[nodiscard]] bool has_halved_weights() const {
    int64_t weights = 0;
    int64_t halved = 0;
    for (uint32_t id = 0; id < categories_.size(); ++id) {
      if (categories_[id].category != Category::parameter || at(id).requested < kMatrixBytes) continue;
      ++weights;
      // Its half was made just before it went.
      const uint32_t end = at(id).free_requested;
      if (end == kNoEvent || end == 0 || !traits(id).has(Trait::module_move)) continue;
      const uint32_t other = timeline_.allocation_of[end - 1];
      if (other != kNoAllocation && at(other).requested * 2 == at(id).requested) ++halved;
    }
    return halved > 0 && halved * 3 > weights;  // both copies are counted as weights
  }

  [[nodiscard]] bool has_half_loss() const {
    for (uint32_t id = 0; id < categories_.size(); ++id) {
      if (at(id).requested == kHalfScalar && phase(id) == Phase::loss) return true;
    }
    return false;
  }

  [[nodiscard]] bool has_upcasts() const {
    int64_t projection = 0;  // the last that a linear layer made
    for (uint32_t id : in_order()) {
      const int64_t bytes = at(id).requested;
      if (bytes < kMatrixBytes) continue;
      if (traits(id).has(Trait::linear) && phase(id) == Phase::forward) projection = bytes;
      if (traits(id).has(Trait::loss) && phase(id) == Phase::loss && projection > 0 && bytes == 2 * projection)
        return true;
    }
    return false;
  }

  // Weights' gradients, and how many of them are copies of one of half their size.
  [[nodiscard]] bool has_downcast_gradients() const {
    std::unordered_set<int64_t> weights;
    for (uint32_t id = 0; id < categories_.size(); ++id) {
      if (categories_[id].category == Category::parameter) weights.insert(at(id).requested);
    }
    const std::vector<uint32_t> ids = in_order();
    int64_t gradients = 0;
    int64_t casts = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const int64_t bytes = at(ids[i]).requested;
      if (bytes < kMatrixBytes || phase(ids[i]) != Phase::backward || weights.count(bytes) == 0) continue;
      ++gradients;
      const uint32_t begin = at(ids[i]).begin;
      for (size_t k = i - std::min(i, kNear); k < i; ++k) {
        const uint32_t end = at(ids[k]).free_requested;
        if (at(ids[k]).requested * 2 != bytes || end < begin || end > begin + kSoon) continue;
        ++casts;
        break;
      }
    }
    return casts * 3 > gradients;
  }

  [[nodiscard]] std::vector<uint32_t> in_order() const {
    std::vector<uint32_t> ids;
    for (uint32_t event = 0; event < timeline_.trace().size_events(); ++event) {
      const uint32_t id = timeline_.allocation_of[event];
      if (id != kNoAllocation && at(id).begin == event) ids.push_back(id);
    }
    return ids;
  }

  const Timeline& timeline_;
  const Structure& structure_;
  const std::vector<AllocationCategory>& categories_;
};

}  // namespace

bool computes_in_16_bits(const Timeline& timeline, const Structure& structure,
                         const std::vector<AllocationCategory>& categories) {
  return Witnesses(timeline, structure, categories).any();
}

}  // namespace oomscope
