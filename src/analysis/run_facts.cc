#include "analysis/run_facts.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "model/precision.h"

namespace oomscope {
namespace {

// A graph keeps blocks of many places of the model: so large a share of the places that a forward asks from, and at
// least so many; fewer do in a small model, where what the first operation made is among them.
constexpr uint32_t kGraphStacks = 3;
constexpr uint32_t kGraphStacksWithHead = 2;
constexpr double kGraphShare = 0.3;

bool is_graph(uint32_t kept, uint32_t all, bool keeps_head) {
  return kept >= (keeps_head ? kGraphStacksWithHead : kGraphStacks) && kept >= kGraphShare * all;
}

class FactFinder {
 public:
  FactFinder(const Snapshot& snapshot, const Diagnosis& diagnosis) : timeline_(diagnosis.verification->timeline) {
    out_.snapshot = &snapshot;
    out_.diagnosis = &diagnosis;
  }

  RunFacts run() {
    out_.structure = find_structure(timeline_);
    out_.categories = find_categories(timeline_, out_.structure);
    out_.is_16_bit = computes_in_16_bits(timeline_, out_.structure, out_.categories);
    out_.sums = sum_categories(timeline_, out_.categories, out_.instant().event);
    find_basis();
    collect_live();
    place_instant();
    out_.rests.resize(out_.structure.passes.size());
    watch_passes();
    measure_rests();
    find_survived_failures();
    find_growths();
    find_site_growths();
    group_by_stack();
    return std::move(out_);
  }

 private:
  [[nodiscard]] const Structure& structure() const { return out_.structure; }
  [[nodiscard]] const Trace& trace() const { return timeline_.trace(); }

  void find_basis() {
    out_.basis = out_.instant().event;
    if (out_.failed()) return;
    for (uint32_t i = static_cast<uint32_t>(trace().size_events()); i-- > 0;) {
      if (trace().action[i] != Action::alloc) continue;
      out_.basis = i;
      return;
    }
  }

  // Not yet freed by the program, whatever other streams still wait for.
  [[nodiscard]] static bool is_live(const Allocation& allocation, uint32_t event) {
    return is_live_after(allocation, event) && !has_happened(allocation.free_requested, event);
  }

  void collect_live() {
    const bool same = out_.basis == out_.instant().event;
    const auto is_left = [&](uint32_t id) {
      return timeline_.allocations[id].begin != kNoEvent && out_.is_left_by_pass(id);
    };
    for (uint32_t i = 0; i < timeline_.allocations.size(); ++i) {
      const Allocation& allocation = timeline_.allocations[i];
      if (is_live(allocation, out_.basis)) {
        out_.live.push_back(i);
        if (is_left(i)) out_.left.push_back(i);
        out_.live_bytes += allocation.requested;
      }
      if (!same && is_live(allocation, out_.instant().event)) {
        out_.live_at_peak.push_back(i);
        out_.peak_bytes += allocation.requested;
      }
    }
    if (!same) return;
    out_.live_at_peak = out_.live;
    out_.peak_bytes = out_.live_bytes;
  }

  [[nodiscard]] uint32_t pass_at(uint32_t event) const { return out_.pass_at(event); }

  void place_instant() {
    if (out_.instant().event >= structure().span_of.size()) return;
    const Span& span = structure().span_at(out_.instant().event);
    out_.phase = span.phase;
    out_.step = span.step;
    out_.pass = span.pass;
  }

  // One walk over all requests of passes: how many places ask, how large the first requests are, what a forward keeps.
  void watch_passes() {
    std::vector<uint32_t> seen_in(structure().stacks.size(), kNoPass);
    std::vector<uint32_t> kept_in(structure().stacks.size(), kNoPass);
    std::vector<uint32_t> requests(structure().passes.size(), 0);
    std::vector<int64_t> largest(structure().passes.size(), 0);
    for (const Allocation& allocation : timeline_.allocations) {
      if (allocation.begin == kNoEvent) continue;
      const Span& span = structure().span_at(allocation.begin);
      if (span.pass == kNoPass || span.phase == Phase::backward) continue;
      PassRest& rest = out_.rests[span.pass];
      uint32_t& seen = seen_in[static_cast<uint32_t>(allocation.stack)];
      if (seen != span.pass) rest.stacks += 1;
      seen = span.pass;
      const size_t nth = requests[span.pass]++;
      if (nth < rest.head.size()) rest.head[nth] = {allocation.stack, allocation.requested};
      // What a failure's unwinding frees was kept until then.
      const uint32_t end = std::min(structure().passes[span.pass].forward_end, out_.basis);
      if (allocation.free_requested < end) continue;
      rest.kept_bytes += allocation.requested;
      uint32_t& kept = kept_in[static_cast<uint32_t>(allocation.stack)];
      if (kept != span.pass) rest.kept_stacks += 1;
      kept = span.pass;
      if (allocation.requested <= largest[span.pass] || allocation.free_requested == kNoEvent) continue;
      largest[span.pass] = allocation.requested;
      const Span& death = structure().span_at(allocation.free_requested);
      rest.freed_by = death.phase == Phase::backward ? death.pass : kNoPass;
    }
  }

  void measure_rests() {
    std::unordered_set<uint64_t> seen;  // pass and stack
    for (uint32_t id : out_.left) {
      const Allocation& allocation = timeline_.allocations[id];
      const uint32_t pass = pass_at(allocation.begin);
      if (pass == kNoPass) continue;
      PassRest& rest = out_.rests[pass];
      rest.bytes += allocation.requested;
      rest.blocks += 1;
      if (!out_.traits(id).has(Trait::module_call)) continue;
      rest.inner_bytes += allocation.requested;
      rest.keeps_head = rest.keeps_head || allocation.stack == structure().passes[pass].first_stack;
      const uint64_t key = (uint64_t{pass} << 32) | static_cast<uint32_t>(allocation.stack);
      if (seen.insert(key).second) rest.inner_stacks += 1;
    }
  }

  // Passes that one backward frees together are one unit of work: micro-batches whose losses are summed, the two
  // towers of a contrastive loss. How many that normally are, by caller.
  [[nodiscard]] std::map<uint32_t, uint32_t> usual_groups() const {
    std::map<uint32_t, uint32_t> usual;
    for (uint32_t p = 0; p < structure().passes.size(); ++p) {
      const uint32_t by = out_.rests[p].freed_by;
      if (by == kNoPass || by < p || out_.rests[p].inner_bytes > 0) continue;
      uint32_t& most = usual[structure().passes[p].caller];
      most = std::max(most, by - p);
    }
    return usual;
  }

  // Did the pass leave more than a scalar or two?
  [[nodiscard]] bool left_much(uint32_t pass) const {
    constexpr int64_t kLittle = 64 << 10;
    return out_.rests[pass].inner_bytes > kLittle;
  }

  void find_growths() {
    const std::map<uint32_t, uint32_t> usual = usual_groups();
    std::map<uint32_t, Growth> by_caller;
    // The pass under way holds its graph by right; so may the last finished one, whose results the program still has.
    const uint32_t last = pass_at(out_.basis);
    if (last == kNoPass) return;
    for (uint32_t p = 0; p < last; ++p) {
      if (has_failed(p)) continue;  // its exception may hold it: no growth
      const Pass& pass = structure().passes[p];
      const PassRest& rest = out_.rests[p];
      Growth& growth = by_caller[pass.caller];
      growth.of += 1;
      if (!left_much(p)) {
        if (growth.passes > 0) growth = Growth{.of = growth.of};  // it came back: not this line's
        continue;
      }
      if (growth.passes == 0) {
        growth.caller = pass.caller;
        growth.first_pass = p;
        growth.call = pass.first_stack;
      }
      growth.last_pass = p;
      growth.passes += 1;
      growth.bytes += rest.bytes;
      growth.blocks += rest.blocks;
      growth.with_graph = is_graph(rest.inner_stacks, rest.stacks, rest.keeps_head);
    }
    for (auto& [caller, growth] : by_caller) {
      const auto found = usual.find(caller);
      const int64_t normal = found == usual.end() ? 0 : found->second;
      if (growth.passes > normal) out_.growths.push_back(growth);
    }
    std::stable_sort(out_.growths.begin(), out_.growths.end(),
                     [](const Growth& a, const Growth& b) { return a.bytes > b.bytes; });
    for (Growth& growth : out_.growths) growth.largest = largest_left(growth);
  }

  // What the program makes of results, outside of modules, and keeps: one line that left a block in most passes up to
  // the last. Where whole passes of the same time are kept, that is told already.
  void find_site_growths() {
    constexpr int64_t kPasses = 8;
    constexpr int64_t kLittle = 64 << 10;  // a pass
    std::unordered_map<uint32_t, size_t> index;
    std::vector<Growth> found;
    const uint32_t last = pass_at(out_.basis);
    if (last == kNoPass || !out_.growths.empty()) return;
    for (uint32_t id : out_.left) {
      const Allocation& allocation = timeline_.allocations[id];
      const uint32_t pass = pass_at(allocation.begin);
      const StackTraits& traits = out_.traits(id);
      if (pass == kNoPass || has_failed(pass) || traits.has(Trait::module_call) || traits.role != StackRole::user)
        continue;
      const auto [entry, added] = index.emplace(static_cast<uint32_t>(allocation.stack), found.size());
      if (added) {
        found.push_back(Growth{.caller = structure().passes[pass].caller,
                               .first_pass = pass,
                               .last_pass = kNoPass,
                               .call = structure().passes[pass].first_stack,
                               .largest = allocation.stack,
                               .site = allocation.stack});
      }
      Growth& growth = found[entry->second];
      growth.passes += pass != growth.last_pass ? 1 : 0;
      growth.last_pass = pass;
      growth.bytes += allocation.requested;
      growth.blocks += 1;
    }
    for (Growth& growth : found) {
      growth.of = last - growth.first_pass + 1;
      const bool lasting = growth.passes >= kPasses && growth.passes * 2 >= growth.of && last - growth.last_pass <= 2;
      if (lasting && growth.bytes >= kLittle * growth.passes) out_.growths.push_back(growth);
    }
    std::stable_sort(out_.growths.begin(), out_.growths.end(),
                     [](const Growth& a, const Growth& b) { return a.bytes > b.bytes; });
  }

  [[nodiscard]] bool has_failed(uint32_t pass) const {
    return std::any_of(out_.survived.begin(), out_.survived.end(),
                       [&](const SurvivedFailure& failure) { return failure.pass == pass; });
  }

  [[nodiscard]] StackId largest_left(const Growth& growth) const {
    int64_t most = 0;
    StackId stack = StackId::none;
    const Pass& pass = structure().passes[growth.first_pass];
    for (uint32_t id : out_.left_of(pass.begin, pass.forward_end)) {
      const Allocation& allocation = timeline_.allocations[id];
      if (allocation.requested <= most) continue;
      most = allocation.requested;
      stack = allocation.stack;
    }
    return stack;
  }

  // The next request comes from the same call: a library that tried a smaller plan. An exception leaves that call.
  [[nodiscard]] bool went_on(uint32_t failure) const {
    for (uint32_t i = failure + 1; i < trace().size_events(); ++i) {
      if (trace().action[i] == Action::alloc) return trace().stack[i] == trace().stack[failure];
    }
    return false;
  }

  void find_survived_failures() {
    for (uint32_t event : timeline_.driver_events) {
      if (trace().action[event] != Action::oom || event >= out_.basis) continue;
      const uint32_t pass = pass_at(event);
      if (pass == kNoPass || pass == pass_at(out_.basis) || went_on(event)) continue;
      if (!out_.survived.empty() && out_.survived.back().pass == pass) out_.survived.pop_back();
      out_.survived.push_back(SurvivedFailure{.event = event, .pass = pass, .held_bytes = 0});
    }
    for (SurvivedFailure& failure : out_.survived) {
      for (uint32_t id : out_.left_by(failure)) failure.held_bytes += timeline_.allocations[id].requested;
    }
  }

  void group_by_stack() {
    std::unordered_map<uint32_t, size_t> index;
    std::unordered_set<uint64_t> sizes;
    for (uint32_t id : out_.live) {
      const Allocation& allocation = timeline_.allocations[id];
      if (allocation.begin == kNoEvent || allocation.stack == StackId::none) continue;
      const uint32_t stack = static_cast<uint32_t>(allocation.stack);
      const auto [found, added] = index.emplace(stack, out_.groups.size());
      if (added) out_.groups.push_back(StackGroup{.stack = allocation.stack, .first_event = allocation.begin});
      StackGroup& group = out_.groups[found->second];
      group.bytes += allocation.requested;
      group.blocks += 1;
      const uint64_t key = uint64_t{stack} << 40 ^ static_cast<uint64_t>(allocation.requested);
      if (sizes.insert(key).second) group.distinct_sizes += 1;
    }
    std::stable_sort(out_.groups.begin(), out_.groups.end(),
                     [](const StackGroup& a, const StackGroup& b) { return a.bytes > b.bytes; });
  }

  const Timeline& timeline_;
  RunFacts out_;
};

}  // namespace

uint32_t RunFacts::pass_at(uint32_t event) const {
  const std::vector<Pass>& passes = structure.passes;
  const auto behind = std::upper_bound(passes.begin(), passes.end(), event,
                                       [](uint32_t at, const Pass& next) { return at < next.begin; });
  return behind == passes.begin() ? kNoPass : static_cast<uint32_t>(behind - passes.begin() - 1);
}

std::span<const uint32_t> RunFacts::left_of(uint32_t begin, uint32_t end) const {
  const auto is_before = [&](uint32_t id, uint32_t event) { return timeline().allocations[id].begin < event; };
  const auto first = std::lower_bound(left.begin(), left.end(), begin, is_before);
  return {first, std::lower_bound(first, left.end(), end, is_before)};
}

std::span<const uint32_t> RunFacts::left_by(const SurvivedFailure& failure) const {
  return left_of(structure.passes[failure.pass].begin, failure.event + 1);
}

bool RunFacts::kept_graph(uint32_t index) const {
  return is_graph(rests[index].kept_stacks, rests[index].stacks, false);
}

bool RunFacts::is_inference() const {
  if (structure.trains || structure.passes.size() < 2) return false;
  for (uint32_t index = 0; index < rests.size(); ++index) {
    if (kept_graph(index)) return false;
  }
  return true;
}

bool RunFacts::is_left_by_pass(uint32_t allocation) const {
  switch (categories[allocation].category) {
    case Category::parameter:
    case Category::gradient:
    case Category::optimizer_state:
    case Category::workspace:
    case Category::communication:
    case Category::graph_pool: return false;
    default: return true;
  }
}

RunFacts::Larger RunFacts::larger_than_before(uint32_t index) const {
  constexpr int64_t kTooSmall = 64 << 10;
  Larger out;
  for (const PassRest::Request& now : rests[index].head) {
    int64_t before = 0;
    int64_t same = 0;
    // One frame may hold several operations, not all of which come in every pass: the largest counts.
    for (uint32_t p = 0; p < index; ++p) {
      int64_t largest = 0;
      for (const PassRest::Request& earlier : rests[p].head) {
        const bool is_same = earlier.bytes > 0 && inner_frame(earlier.stack) == inner_frame(now.stack);
        if (is_same) largest = std::max(largest, earlier.bytes);
      }
      before = std::max(before, largest);
      same += largest > 0 ? 1 : 0;
    }
    if (before == 0 || now.bytes < kTooSmall) continue;
    const double ratio = static_cast<double>(now.bytes) / static_cast<double>(before);
    if (ratio > out.ratio) out = Larger{.ratio = ratio, .now = now.bytes, .before = before, .passes = same};
  }
  return out;
}

// The same operation may be reached from another line of the program.
uint32_t RunFacts::inner_frame(StackId stack) const {
  const StackTable& stacks = snapshot->stacks;
  const uint32_t at = static_cast<uint32_t>(stack);
  return stacks.starts[at] < stacks.starts[at + 1] ? stacks.frame_ids[stacks.starts[at]] + 1 : 0;
}

bool matters(const RunFacts& facts, int64_t bytes) {
  constexpr double kAlone = 0.15;     // of what was wanted
  constexpr double kDecisive = 0.03;  // where it would have fitted without them
  return facts.share(bytes) >= kAlone ||
         (facts.failed() && facts.fits_without(bytes) && facts.share(bytes) >= kDecisive);
}

RunFacts find_run_facts(const Snapshot& snapshot, const Diagnosis& diagnosis) {
  return FactFinder(snapshot, diagnosis).run();
}

}  // namespace oomscope
