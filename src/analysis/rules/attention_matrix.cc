// attention-matrix: attention weights are stored, a matrix of length times length a head.
//
// In the recording: blocks born inside a function that says attention, or beside a softmax, that are much larger than
// what the projections before them made. Scores, mask, softmax and dropout each make one. Where no function says so,
// several such blocks of one size, one after another, speak for it more softly.
#include <array>

#include "analysis/rules/causes.h"
#include "analysis/rules/common.h"
#include "base/bytes_text.h"

namespace oomscope {
namespace {

constexpr double kLarger = 1.5;      // than the projections
constexpr double kMuchLarger = 3.0;  // where no function says attention

struct Scores {
  int64_t live_bytes = 0;  // and the request, if it is for one
  bool asked_for = false;  // the request is for one
  std::vector<uint32_t> ids;
  int64_t blocks = 0;
  int64_t size = 0;
  bool named = false;
  StackId stack = StackId::none;
};

// Follows the requests of one forward in their order.
class ScoreFinder {
 public:
  explicit ScoreFinder(const RunFacts& run) : run_(run) {}

  Scores find(uint32_t pass) {
    const uint32_t begin = run_.structure.passes[pass].begin;
    const uint32_t event = run_.instant().event;
    const uint32_t end = std::min(event + 1, run_.structure.passes[pass].forward_end);
    for (uint32_t i = begin; i < end; ++i) {
      const Action action = run_.trace().action[i];
      if (action != Action::alloc && !(i == event && run_.failed())) continue;
      const uint32_t id = run_.timeline().allocation_of[i];
      if (id != kNoAllocation && run_.categories[id].category == Category::workspace) continue;
      const bool is_request = action == Action::oom;
      const bool live = is_request || (id != kNoAllocation && is_live(run_.timeline().allocations[id]));
      if (!look_at(run_.trace().stack[i], run_.trace().size[i], live)) continue;
      if (is_request) scores_.asked_for = true;
      if (!is_request && id != kNoAllocation) scores_.ids.push_back(id);
    }
    return unnamed_blocks_ >= 2 || scores_.named ? scores_ : Scores{};
  }

 private:
  [[nodiscard]] bool is_live(const Allocation& allocation) const {
    return allocation.free_requested == kNoEvent || allocation.free_requested > run_.instant().event;
  }

  // Is it one of the matrices?
  bool look_at(StackId stack, int64_t size, bool live) {
    const StackTraits& traits = run_.structure.traits(stack);
    // Scores are made of projections; behind a convolution, sizes grow by channels and pixels.
    if (traits.has(Trait::convolution)) projections_ = {};
    if (traits.has(Trait::linear)) {
      projections_[next_++ % projections_.size()] = size;
      return false;
    }
    const int64_t largest = *std::max_element(projections_.begin(), projections_.end());
    constexpr int64_t kTooSmall = 1 << 20;
    if (largest == 0 || size < kTooSmall || traits.has(Trait::loss) || traits.has(Trait::convolution)) return false;
    const bool named = traits.attention != 0 || traits.has(Trait::softmax);
    const double limit = static_cast<double>(largest) * (named ? kLarger : kMuchLarger);
    if (static_cast<double>(size) <= limit) return false;
    if (!named) {
      unnamed_blocks_ = size == last_unnamed_ ? unnamed_blocks_ + 1 : 1;
      last_unnamed_ = size;
    }
    scores_.named = scores_.named || named;
    if (!live) return true;
    scores_.live_bytes += size;
    scores_.blocks += 1;
    if (size > scores_.size) {
      scores_.size = size;
      scores_.stack = stack;
    }
    return true;
  }

  const RunFacts& run_;
  Scores scores_;
  std::array<int64_t, 3> projections_{};  // the last three that a linear layer made
  size_t next_ = 0;
  int64_t last_unnamed_ = 0;
  int64_t unnamed_blocks_ = 0;
};

}  // namespace

std::vector<Finding> find_attention_matrix(const CaseFacts& facts) {
  if (facts.run == nullptr || !facts.run->failed()) return {};
  const RunFacts& run = *facts.run;
  const uint32_t pass = run.pass_at(run.instant().event);
  const bool in_pass = run.phase == Phase::forward || run.phase == Phase::loss || run.phase == Phase::backward;
  if (pass == kNoPass || !in_pass) return {};
  const Scores scores = ScoreFinder(run).find(pass);
  constexpr double kShare = 0.35;  // of what does not stay from step to step
  const double passing = static_cast<double>(run.wanted() - run.persistent_bytes());
  if (static_cast<double>(scores.live_bytes) < kShare * passing) return {};
  Finding finding = finding_of(run, "attention-matrix");
  finding.bytes = scores.live_bytes;
  finding.claim = claim_of(finding)
                      .with("bytes", format_bytes(scores.live_bytes))
                      .with("blocks", format_count(scores.blocks))
                      .with("size", format_bytes(scores.size))
                      .with("site", site_of(run, scores.stack));
  constexpr int64_t kSeveral = 3;
  finding.confidence = scores.named                ? Confidence::high
                       : scores.blocks >= kSeveral ? Confidence::medium
                                                   : Confidence::low;
  finding.because = because(scores.named ? "attention-larger-than-projections" : "blocks-larger-than-projections");
  if (!scores.named) finding.surer = surer("try-another-length");
  add_site(finding, run, "attention-blocks", scores.stack, scores.live_bytes, scores.blocks);
  // Nobody can put another kernel into nn.MultiheadAttention; it takes the fused one by itself, unless it returns
  // weights.
  if (run.structure.traits(scores.stack).has(Trait::multihead)) {
    add_changes(finding, run, scores.live_bytes, {"need-weights-false", "smaller-input", "smaller-batch"});
  } else {
    add_changes(finding, run, scores.live_bytes, {"fused-attention", "smaller-input", "smaller-batch"});
  }
  for (uint32_t id : scores.ids) finding.edits.push_back(RequestEdit{.allocation = id, .free_at = 0});
  finding.drops_request = scores.asked_for;
  return {finding};
}

}  // namespace oomscope
