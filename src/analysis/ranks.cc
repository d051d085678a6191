// Note [Stages and outliers]
//
// Replicas of a data-parallel job do the same; a rank that needs more than they is a finding. Stages of a pipeline
// need different amounts by design, and saying so of each would be noise. Bytes cannot tell the two apart: an uneven
// batch doubles a replica's, and stages may need equal ones. What tells them apart is *where* requests come from:
//
//   first stage   embedding  block  block                     has what the last has not, and the last
//   last stage               block  block  norm  head  loss   has what the first has not: two designs
//   replica 0     embedding  block  norm  head  loss  EMA     has all that the others have, and more:
//   replica 1     embedding  block  norm  head  loss          one design, and replica 0 is the odd one
//
// So two ranks differ by design if each asks for memory at places where the other never does. A middle stage, whose
// places the first and the last have too, is told by that: it would belong to both of two designs, so it is its own.
// A rank that died early has only some of the others' places, and stays with them. Only places of larger requests
// count, and where a recording starts in mid-life only those that recur: what a short history missed proves nothing.
//
// The same program with another model (other widths, same lines) is caught by what the setup keeps, which no batch
// changes: with hardly any (place, size) in common it is another design. So are two middle stages of different depth:
// they keep the same things in other numbers. Replicas that share out their optimizer's state differ in the numbers of
// that alone, and a copy of the weights is made elsewhere. Without frames only sizes are left to compare.
//
// Cost: linear in events for each rank; pairs of groups afterwards, of which there are few.
#include "analysis/ranks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analysis/show.h"
#include "analysis/sites.h"
#include "analysis/user_code.h"
#include "model/fatal_oom.h"
#include "model/timeline.h"

namespace oomscope {
namespace {

constexpr size_t kCurvePoints = 120;
constexpr int64_t kTriflePart = 4096;    // a path counts if one of its requests is at least this part of the peak
constexpr int64_t kKeptAtLeast = 65536;  // bytes; smaller kept blocks are scalars and counters
constexpr size_t kFewestKept = 3;        // below, what is kept says nothing
constexpr size_t kKeptInCommon = 5;      // at least one in so many must be equal
constexpr size_t kOfFour = 3;            // three in four of the common ones in other numbers: another depth
constexpr int64_t kOutlierPart = 50;     // 2 % of the group's typical peak ...
constexpr int64_t kOutlierSpreads = 4;   // ... and four times the median distance from it

void sort_unique(std::vector<uint64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

// Is all of `part` in `whole`? Both ascending.
bool is_part(const std::vector<uint64_t>& part, const std::vector<uint64_t>& whole) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

struct Common {
  size_t all = 0;
  size_t unequal = 0;  // in number
};

Common common_of(const std::vector<KeptBlocks>& a, const std::vector<KeptBlocks>& b) {
  Common common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].what != b[j].what) {
      (a[i].what < b[j].what ? i : j) += 1;
      continue;
    }
    common.all += 1;
    common.unequal += a[i++].count != b[j++].count ? 1 : 0;
  }
  return common;
}

uint64_t kept_hash(uint64_t path, int64_t requested) {
  return (path ^ (static_cast<uint64_t>(requested) * 0x9E3779B97F4A7C15ULL)) * 1099511628211ULL;
}

// What is known of one path while the allocations pass.
struct PathUse {
  int64_t largest = 0;
  uint32_t first_free = kNoEvent;
  bool recurs = false;
};

Design design_of(const Verification& verification, int64_t peak_bytes) {
  const Timeline& timeline = verification.timeline;
  Design design{.from_start = !timeline.starts_mid_life,
                .paths = {},
                .large = {},
                .recurring = {},
                .kept = {},
                .ended_early = false};
  std::unordered_map<StackId, uint64_t> path_of;
  std::unordered_map<uint64_t, PathUse> uses;
  std::vector<uint64_t> paths;  // by allocation
  paths.reserve(timeline.allocations.size());
  for (const Allocation& allocation : timeline.allocations) {
    const auto [found, is_new] = path_of.try_emplace(allocation.stack, 0);
    if (is_new) found->second = request_path(*timeline.snapshot, allocation.stack);
    paths.push_back(found->second);
    if (allocation.begin == kNoEvent) continue;
    PathUse& use = uses[found->second];
    use.largest = std::max(use.largest, allocation.requested);
    use.recurs |= use.first_free != kNoEvent && allocation.begin > use.first_free;
    use.first_free = std::min(use.first_free, allocation.free_completed);
  }
  const bool has_frames = uses.size() > 1 || (uses.size() == 1 && uses.begin()->first != 0);
  for (const auto& [path, use] : uses) {
    if (path == 0) continue;
    design.paths.push_back(path);
    if (use.largest < peak_bytes / kTriflePart) continue;
    design.large.push_back(path);
    if (use.recurs) design.recurring.push_back(path);
  }
  std::map<uint64_t, int64_t> kept;
  for (size_t i = 0; i < paths.size(); ++i) {
    const Allocation& allocation = timeline.allocations[i];
    if (allocation.requested < kKeptAtLeast) continue;
    const bool is_ghost = allocation.begin == kNoEvent;
    const bool is_setup = !is_ghost && paths[i] != 0 && !uses[paths[i]].recurs;
    const bool is_kept = allocation.free_requested == kNoEvent && (is_ghost || is_setup);
    if (is_kept || !has_frames) kept[kept_hash(is_ghost ? 0 : paths[i], allocation.requested)] += 1;
  }
  for (const auto& [what, count] : kept) design.kept.push_back({.what = what, .count = count});
  sort_unique(design.paths);
  sort_unique(design.large);
  sort_unique(design.recurring);
  return design;
}

// Has `a` places that `b` lacks?
bool has_own_places(const Design& a, const Design& b) {
  if (a.paths.empty() || b.paths.empty()) return false;
  return !is_part(a.from_start && b.from_start ? a.large : a.recurring, b.paths);
}

bool keeps_alike(const Design& a, const Design& b) {
  const size_t fewer = std::min(a.kept.size(), b.kept.size());
  if (fewer < kFewestKept || a.from_start != b.from_start) return true;
  const Common common = common_of(a.kept, b.kept);
  if (common.all * kKeptInCommon < fewer) return false;
  const bool other_depth = common.all >= kFewestKept && common.unequal * 4 > common.all * kOfFour;
  return !other_depth || a.ended_early || b.ended_early;
}

enum class Relation : uint8_t { equal, first_has_more, second_has_more, different };

Relation relation_of(const Design& a, const Design& b) {
  const bool first = has_own_places(a, b);
  const bool second = has_own_places(b, a);
  if ((first && second) || !keeps_alike(a, b)) return Relation::different;
  if (first) return Relation::first_has_more;
  return second ? Relation::second_has_more : Relation::equal;
}

// A job has few designs: so many at most are compared with each other, so that the cost stays linear in ranks where a
// folder holds thousands of recordings that have nothing in common.
constexpr size_t kMostDesigns = 64;

// Groups of equal ranks, then those that are part of exactly one design joined to it.
class Grouping {
 public:
  explicit Grouping(const std::vector<Rank>& ranks) : ranks_(ranks) {
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (!ranks[i].error) place(i);
    }
    if (groups_.size() <= kMostDesigns) join_parts();
  }

  [[nodiscard]] std::vector<RankGroup> take() { return std::move(groups_); }

 private:
  [[nodiscard]] const Design& design(size_t group) const { return ranks_[groups_[group].members.front()].facts.design; }

  void place(size_t rank) {
    for (RankGroup& group : std::span(groups_).first(std::min(groups_.size(), kMostDesigns))) {
      const Design& other = ranks_[group.members.front()].facts.design;
      if (relation_of(ranks_[rank].facts.design, other) != Relation::equal) continue;
      group.members.push_back(rank);
      return;
    }
    groups_.push_back(RankGroup{.members = {rank}, .typical = rank});
  }

  // Of each group to each other.
  void relate() {
    const size_t count = groups_.size();
    relations_.assign(count * count, Relation::equal);
    for (size_t a = 0; a < count; ++a) {
      for (size_t b = 0; b < count; ++b) {
        if (a != b) relations_[a * count + b] = relation_of(design(a), design(b));
      }
    }
  }
  [[nodiscard]] Relation relation(size_t a, size_t b) const { return relations_[a * groups_.size() + b]; }

  void join_parts() {
    relate();
    const size_t count = groups_.size();
    std::vector<size_t> root(count);
    std::iota(root.begin(), root.end(), 0);
    const auto root_of = [&](size_t group) {
      while (root[group] != group) group = root[group];
      return group;
    };
    for (size_t part = 0; part < count; ++part) {
      const std::vector<size_t> wholes = wholes_of(part);
      const bool is_ambiguous = std::any_of(wholes.begin(), wholes.end(), [&](size_t a) {
        return std::any_of(wholes.begin(), wholes.end(),
                           [&](size_t b) { return relation(a, b) == Relation::different; });
      });
      if (is_ambiguous) continue;
      for (size_t whole : wholes) {
        const size_t a = root_of(part);
        const size_t b = root_of(whole);
        root[std::max(a, b)] = std::min(a, b);
      }
    }
    std::vector<RankGroup> joined;
    for (size_t group = 0; group < count; ++group) {
      if (root_of(group) != group) continue;
      RankGroup all{.members = {}, .typical = 0};
      for (size_t other = group; other < count; ++other) {
        if (root_of(other) != group) continue;
        all.members.insert(all.members.end(), groups_[other].members.begin(), groups_[other].members.end());
      }
      std::sort(all.members.begin(), all.members.end());
      joined.push_back(std::move(all));
    }
    groups_ = std::move(joined);
  }

  [[nodiscard]] std::vector<size_t> wholes_of(size_t part) const {
    std::vector<size_t> wholes;
    for (size_t other = 0; other < groups_.size(); ++other) {
      if (other != part && relation(part, other) == Relation::second_has_more) wholes.push_back(other);
    }
    return wholes;
  }

  const std::vector<Rank>& ranks_;
  std::vector<RankGroup> groups_;
  std::vector<Relation> relations_;  // row: a, column: b
};

int64_t peak_of(const Rank& rank) { return rank.facts.peak_allocated_bytes; }

// A rank that died, or whose history is shorter than the others', peaks lower for that reason alone: it is no measure.
std::vector<size_t> whole_members(const std::vector<Rank>& ranks, const std::vector<size_t>& members) {
  std::vector<int64_t> events;
  for (size_t member : members) events.push_back(ranks[member].facts.events);
  std::sort(events.begin(), events.end());
  const int64_t usual = events[(events.size() - 1) / 2];
  std::vector<size_t> whole;
  for (size_t member : members) {
    const RankFacts& facts = ranks[member].facts;
    if (!facts.failed && facts.complete && facts.events * 10 >= usual * 9) whole.push_back(member);
  }
  return whole.empty() ? members : whole;
}

// Of an even number the lower of the middle two: extra memory is what is looked for.
size_t median_member(const std::vector<Rank>& ranks, std::vector<size_t> members) {
  std::stable_sort(members.begin(), members.end(),
                   [&](size_t a, size_t b) { return peak_of(ranks[a]) < peak_of(ranks[b]); });
  return members[(members.size() - 1) / 2];
}

std::vector<SiteDifference> site_differences(const Rank& rank, const Rank& typical) {
  std::unordered_map<std::string_view, int64_t> bytes;
  for (const RankSite& site : rank.facts.sites) bytes[site.text] += site.bytes;
  for (const RankSite& site : typical.facts.sites) bytes[site.text] -= site.bytes;
  std::vector<SiteDifference> differences;
  for (const auto& [site, difference] : bytes) {
    if (difference != 0) differences.push_back({.site = std::string(site), .bytes = difference});
  }
  std::sort(differences.begin(), differences.end(), [](const SiteDifference& a, const SiteDifference& b) {
    return std::pair(-std::abs(a.bytes), a.site) < std::pair(-std::abs(b.bytes), b.site);
  });
  return differences;
}

void find_outliers(const std::vector<Rank>& ranks, RankComparison& out) {
  for (size_t group = 0; group < out.groups.size(); ++group) {
    const std::vector<size_t>& members = out.groups[group].members;
    const std::vector<size_t> whole = whole_members(ranks, members);
    const size_t typical = out.groups[group].typical;
    std::vector<int64_t> distances;
    for (size_t member : whole) distances.push_back(std::abs(peak_of(ranks[member]) - peak_of(ranks[typical])));
    std::sort(distances.begin(), distances.end());
    const int64_t spread = distances[(distances.size() - 1) / 2];
    const int64_t least = std::max(peak_of(ranks[typical]) / kOutlierPart, kOutlierSpreads * spread);
    for (size_t member : members) {
      const int64_t bytes = peak_of(ranks[member]) - peak_of(ranks[typical]);
      const bool is_whole = std::find(whole.begin(), whole.end(), member) != whole.end();
      if (std::abs(bytes) <= least || (bytes < 0 && !is_whole)) continue;
      out.outliers.push_back(Outlier{.rank = member,
                                     .typical = typical,
                                     .group = group,
                                     .bytes = bytes,
                                     .sites = site_differences(ranks[member], ranks[typical])});
    }
  }
  std::stable_sort(out.outliers.begin(), out.outliers.end(),
                   [](const Outlier& a, const Outlier& b) { return std::abs(a.bytes) > std::abs(b.bytes); });
}

void find_failures(const std::vector<Rank>& ranks, RankComparison& out) {
  std::optional<size_t> highest_failed;
  bool all_timed = true;
  for (size_t i = 0; i < ranks.size(); ++i) {
    const Rank& rank = ranks[i];
    out.unreadable += rank.error ? 1 : 0;
    if (rank.error) continue;
    if (!out.highest_peak || peak_of(rank) > peak_of(ranks[*out.highest_peak])) out.highest_peak = i;
    if (!rank.facts.failed) continue;
    out.failed += 1;
    all_timed &= rank.facts.failed_at_us > 0;
    if (!highest_failed || peak_of(rank) > peak_of(ranks[*highest_failed])) highest_failed = i;
    if (!out.first_failure || rank.facts.failed_at_us < ranks[*out.first_failure].facts.failed_at_us) {
      out.first_failure = i;
    }
  }
  if (out.failed > 1 && !all_timed) out.first_failure.reset();
  out.chosen = out.first_failure ? out.first_failure : highest_failed ? highest_failed : out.highest_peak;
}

bool repeats_of(const Rank& a, const Rank& b) {
  if (a.error || b.error || a.facts.device != b.facts.device) return false;
  const bool apart = a.rank && b.rank && (a.rank != b.rank || a.node != b.node);
  const bool copies = apart && a.facts.events == b.facts.events;
  if (copies || (apart && a.says_rank && b.says_rank)) return false;
  return is_same_process(a.facts.events_sample, b.facts.events_sample);
}

// Of two snapshots of one process: of the same failure the one with the fewest events behind it.
bool tells_more(const RankFacts& a, const RankFacts& b) {
  if (a.failed != b.failed) return a.failed;
  if (a.failed && a.failed_at_us != b.failed_at_us) return a.failed_at_us > b.failed_at_us;
  if (a.failed) return a.ends_at_us < b.ends_at_us;
  return a.ends_at_us > b.ends_at_us;
}

}  // namespace

RankFacts look_at_rank(const Verification& verification) {
  const Snapshot& snapshot = *verification.timeline.snapshot;
  const Trace& trace = verification.timeline.trace();
  RankFacts facts{.device = verification.timeline.device,
                  .events = static_cast<int64_t>(trace.size_events()),
                  .complete = snapshot.complete,
                  .exact = verification.exact(),
                  .failed_site = {},
                  .peak_allocated_bytes = verification.replay->peak_allocated().bytes,
                  .peak_reserved_bytes = verification.replay->peak_reserved().bytes,
                  .sites = {},
                  .design = {}};
  if (const std::optional<uint32_t> event = fatal_oom(trace)) {
    facts.failed = true;
    facts.request_bytes = trace.size[*event];
    facts.failed_at_us = trace.time_at(*event);
    if (const std::optional<Frame> frame = user_frame(snapshot, trace.stack[*event])) {
      facts.failed_site = frame_text(snapshot, *frame);
    }
  }
  for (const LiveSite& site : live_sites(verification, verification.replay->peak_allocated().event)) {
    facts.sites.push_back({.text = site_text(site), .bytes = site.bytes, .user_code = site.user_code});
  }
  facts.curve = allocated_curve(verification, kCurvePoints);
  facts.design = design_of(verification, facts.peak_allocated_bytes);
  facts.design.ended_early = facts.failed || !facts.complete;
  facts.ends_at_us = trace.size_events() > 0 ? trace.time_at(trace.size_events() - 1) : 0;
  facts.events_sample = sample_events(trace);
  return facts;
}

std::vector<Rank> take_out_repeats(std::vector<Rank>& ranks) {
  std::vector<Rank> kept;
  std::vector<Rank> repeats;
  for (Rank& rank : ranks) {
    const auto same =
        std::find_if(kept.begin(), kept.end(), [&](const Rank& other) { return repeats_of(rank, other); });
    if (same == kept.end()) {
      kept.push_back(std::move(rank));
      continue;
    }
    if (tells_more(rank.facts, same->facts)) std::swap(rank, *same);
    repeats.push_back(std::move(rank));
  }
  ranks = std::move(kept);
  return repeats;
}

bool is_same_design(const Design& a, const Design& b) { return relation_of(a, b) != Relation::different; }

RankComparison compare_ranks(const std::vector<Rank>& ranks) {
  RankComparison out;
  out.groups = Grouping(ranks).take();
  out.group_of.resize(ranks.size());
  for (size_t group = 0; group < out.groups.size(); ++group) {
    out.groups[group].typical = median_member(ranks, whole_members(ranks, out.groups[group].members));
    for (size_t member : out.groups[group].members) out.group_of[member] = group;
  }
  const bool any_says_rank = std::any_of(ranks.begin(), ranks.end(), [](const Rank& rank) { return rank.says_rank; });
  const bool most_differ = out.groups.size() > 1 && out.groups.size() * 2 > ranks.size();
  out.unrelated = most_differ && !any_says_rank;
  if (!out.unrelated) find_outliers(ranks, out);
  find_failures(ranks, out);
  return out;
}

}  // namespace oomscope
