// Note [Matching requests]
//
// Two runs of one program at another batch make the same requests from the same lines in the same order, with three
// exceptions: a kernel that is chosen by size asks for scratch, or no longer does; a copy becomes a view where a
// dimension is 1; and a fallback asks anew. So the sequences are nearly equal, and what is extra lies between equals:
//
//   base   [conv: out][norm: out, mean, var][(no frames) g, scratch, semaphore, g, g ...]
//   other  [conv: out, workspace][norm: out, mean, var][(no frames) g, g, g ...]
//
// Consecutive requests of one stack form a run, all requests without frames (backward) among them. Runs are aligned by
// stack: they are nearly always equal one by one, else the shortest edit script of Myers is taken. Inside a run, whose
// members differ in size alone, an alignment looks for the pairs whose sizes are in a likely ratio: equal (weights), as
// most others grow (activations), its square (attention matrices). Scratch, which lives for a request or two, is paired
// with scratch alone, whatever the sizes: another kernel at the same place.
//
// Cost: requests, plus edits times runs, plus for each pair of runs their length times the width of a band around the
// diagonal, wide enough for their difference in length and for as many more on both sides.
#include "plan/match_requests.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string_view>
#include <unordered_map>

#include "base/golden.h"
#include "base/source_path.h"

namespace oomscope {
namespace {

constexpr size_t kMostEdits = 4000;
constexpr size_t kMargin = 48;                  // of the band, beyond the difference in length
constexpr size_t kMostCells = size_t{1} << 27;  // of one alignment; longer runs are paired in order
constexpr float kGap = 1.0F;
constexpr float kUnlikely = 1.8F;      // still one request, where its neighbours say so
constexpr float kOtherScratch = 0.3F;  // scratch of another kernel
constexpr float kOtherLife = 0.9F;     // scratch in one of them alone: one request only where the sizes say so
constexpr uint32_t kScratchRequests = 2;
constexpr double kGrowthUnit = 10000;

struct Run {
  uint64_t site = 0;
  uint32_t begin = 0;  // positions in RequestLog::order
  uint32_t end = 0;
};

uint64_t mix(uint64_t hash, std::string_view text) {
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return (hash ^ 0xff) * 0x100000001b3ULL;
}

uint64_t frame_hash(const Snapshot& snapshot, const Frame& frame) {
  const std::string_view file = snapshot.strings.text(frame.filename);
  uint64_t hash = mix(0xcbf29ce484222325ULL, snapshot.strings.text(frame.name));
  hash = mix(hash, file.substr(file.find_last_of("/\\") + 1));
  return (hash ^ frame.line) * 0x100000001b3ULL;
}

// How many frames of a stack, from the innermost on, belong to what asks for memory: all up to the outermost call of a
// module, and the innermost one in any case. What is outside of them is from where it is called.
uint32_t inner_frames(const Snapshot& snapshot, uint32_t stack) {
  const StackTable& stacks = snapshot.stacks;
  uint32_t inner = 1;
  for (uint32_t f = stacks.starts[stack]; f < stacks.starts[stack + 1]; ++f) {
    const Frame& frame = stacks.frames[stacks.frame_ids[f]];
    const bool is_call = snapshot.strings.text(frame.name) == "_call_impl";
    if (is_call && path_has(snapshot.strings.text(frame.filename), "nn/modules/module.py"))
      inner = f - stacks.starts[stack] + 1;
  }
  return inner;
}

// Of every stack, by its text: ids differ from file to file. Frames outside that are not shared do not count.
std::vector<uint64_t> stack_hashes(const Snapshot& snapshot, const FrameHashes& shared) {
  const StackTable& stacks = snapshot.stacks;
  std::vector<uint64_t> of_frame;
  for (const Frame& frame : stacks.frames) of_frame.push_back(frame_hash(snapshot, frame));
  std::vector<uint64_t> hashes(stacks.size(), 0);
  for (uint32_t i = 0; i < stacks.size(); ++i) {
    const uint32_t outside = stacks.starts[i] + inner_frames(snapshot, i);
    for (uint32_t f = stacks.starts[i]; f < stacks.starts[i + 1]; ++f) {
      const uint64_t hash = of_frame[stacks.frame_ids[f]];
      if (f >= outside && shared.count(hash) == 0) continue;
      hashes[i] = (hashes[i] ^ hash) * kGolden + 1;
    }
  }
  return hashes;
}

std::vector<Run> runs_of(const RequestLog& log) {
  std::vector<Run> runs;
  for (uint32_t i = 0; i < log.order.size(); ++i) {
    if (runs.empty() || runs.back().site != log.site[i]) runs.push_back({.site = log.site[i], .begin = i, .end = i});
    runs.back().end = i + 1;
  }
  return runs;
}

int64_t size_at(const RequestLog& log, uint32_t position) { return log.requests.size[log.order[position]]; }

// Pairs of equal runs: the shortest edit script, diagonals by diagonals (Myers 1986). Empty pairs where it is too long.
std::vector<std::pair<uint32_t, uint32_t>> pair_runs(const std::vector<Run>& a, const std::vector<Run>& b) {
  const int64_t n = static_cast<int64_t>(a.size());
  const int64_t m = static_cast<int64_t>(b.size());
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  const int64_t most = std::min<int64_t>(n + m, kMostEdits);
  std::vector<int64_t> furthest(static_cast<size_t>(2 * most + 3), 0);
  std::vector<std::vector<int64_t>> history;
  const auto at = [&](int64_t diagonal) { return static_cast<size_t>(diagonal + most + 1); };
  for (int64_t d = 0; d <= most; ++d) {
    history.emplace_back(furthest.begin() + static_cast<int64_t>(at(-d - 1)),
                         furthest.begin() + static_cast<int64_t>(at(d + 1)) + 1);
    for (int64_t k = -d; k <= d; k += 2) {
      const bool down = k == -d || (k != d && furthest[at(k - 1)] < furthest[at(k + 1)]);
      int64_t x = down ? furthest[at(k + 1)] : furthest[at(k - 1)] + 1;
      int64_t y = x - k;
      while (x < n && y < m && a[static_cast<size_t>(x)].site == b[static_cast<size_t>(y)].site) ++x, ++y;
      furthest[at(k)] = x;
      if (x < n || y < m) continue;
      // Walk back through what each edit started from.
      for (int64_t edits = d; edits >= 0; --edits) {
        const std::vector<int64_t>& before = history[static_cast<size_t>(edits)];
        const auto was = [&](int64_t diagonal) { return before[static_cast<size_t>(diagonal + edits + 1)]; };
        const int64_t diagonal = x - y;
        const bool came_down = diagonal == -edits || (diagonal != edits && was(diagonal - 1) < was(diagonal + 1));
        const int64_t from = edits == 0 ? 0 : came_down ? was(diagonal + 1) : was(diagonal - 1) + 1;
        while (x > from) pairs.emplace_back(static_cast<uint32_t>(--x), static_cast<uint32_t>(--y));
        if (edits > 0) came_down ? --y : --x;
      }
      std::reverse(pairs.begin(), pairs.end());
      return pairs;
    }
  }
  return pairs;
}

// By how much sizes grow, over runs of equal length with frames: base over other, in 1/10000, and how many do.
// `of_tensors`: neither scratch nor a few numbers.
using Growths = std::map<int64_t, int64_t>;
Growths find_growths(const RequestLog& a, const RequestLog& b, const std::vector<Run>& runs_a,
                     const std::vector<Run>& runs_b, const std::vector<std::pair<uint32_t, uint32_t>>& pairs,
                     bool of_tensors) {
  constexpr int64_t kScalars = 512;  // a batch and one more is no other quantity
  Growths count;
  for (const auto& [i, j] : pairs) {
    const Run& x = runs_a[i];
    const Run& y = runs_b[j];
    if (x.site == 0 || x.end - x.begin != y.end - y.begin) continue;
    for (uint32_t k = 0; k < x.end - x.begin; ++k) {
      const int64_t from = size_at(b, y.begin + k);
      const int64_t to = size_at(a, x.begin + k);
      if (of_tensors && (from < kScalars || a.scratch[x.begin + k])) continue;
      if (from > 0 && to != from) {
        ++count[std::llround(static_cast<double>(to) / static_cast<double>(from) * kGrowthUnit)];
      }
    }
  }
  return count;
}

// That of most.
double common_growth(const Growths& growths) {
  const auto best = std::max_element(growths.begin(), growths.end(),
                                     [](const auto& p, const auto& q) { return p.second < q.second; });
  return best == growths.end() ? 1 : static_cast<double>(best->first) / kGrowthUnit;
}

bool is_simple_fraction(double ratio) {
  constexpr int kMostDenominator = 16;
  for (int denominator = 1; denominator <= kMostDenominator; ++denominator) {
    const double scaled = ratio * denominator;
    if (std::abs(scaled - std::round(scaled)) < 1e-3) return true;
  }
  return false;
}

// Where batch and length change together, most sizes do by both, but a few, positions and masks, by the length's alone:
// by another ratio than that of most, or a power of it.
std::optional<double> find_other_growth(const Growths& growths, double growth) {
  constexpr int64_t kSeveral = 3;
  constexpr int64_t kFew = 4;  // at most such a part of those that grow as most
  constexpr double kAlike = 0.01;
  if (growth < 1 + kAlike) return std::nullopt;
  const auto of_most = growths.find(std::llround(growth * kGrowthUnit));
  const int64_t most_count = of_most == growths.end() ? 0 : of_most->second;
  std::optional<double> found;
  int64_t most = kSeveral - 1;
  for (const auto& [units, count] : growths) {
    const double ratio = static_cast<double>(units) / kGrowthUnit;
    bool is_power = false;
    for (double power = 1; power < growth * growth * growth * growth * (1 + kAlike); power *= growth) {
      is_power = is_power || std::abs(ratio / power - 1) < kAlike;
    }
    if (is_power || count <= most || count * kFew > most_count) continue;
    if (!is_simple_fraction(ratio) || !is_simple_fraction(growth / ratio)) continue;
    found = ratio;
    most = count;
  }
  return found;
}

// How unlikely it is that these are one request at two values.
float unlikeliness(double from, double to, double growth) {
  if (from == to) return 0;
  if (from <= 0 || to <= 0) return kUnlikely;
  const double ratio = to / from;
  if (std::abs(ratio - growth) < 2e-4 * growth) return 0;
  if (std::abs(ratio - growth * growth) < 1e-3 * growth) return 0.1F;
  const double low = std::min(1.0, growth);
  const double high = std::max(1.0, growth);
  if (ratio > low && ratio < high) return 0.5F;
  return ratio > low * low && ratio < high * high ? 0.8F : kUnlikely;
}

class RunAlignment {
 public:
  RunAlignment(const RequestLog& a, const RequestLog& b, double growth) : a_(a), b_(b), growth_(growth) {}

  void align(const Run& x, const Run& y, std::vector<uint32_t>& partner) {
    const size_t n = x.end - x.begin;
    const size_t m = y.end - y.begin;
    const size_t band = (n > m ? n - m : m - n) + kMargin;
    const size_t width = 2 * band + 1;
    if ((n + 1) * width > kMostCells || are_alike(x, y)) {
      for (size_t i = 0; i < std::min(n, m); ++i) partner[x.begin + i] = y.begin + static_cast<uint32_t>(i);
      return;
    }
    fill(x, y, band);
    walk_back(x, y, band, partner);
  }

 private:
  enum Step : uint8_t { both, only_a, only_b };

  bool are_alike(const Run& x, const Run& y) const {
    if (x.end - x.begin != y.end - y.begin) return false;
    for (uint32_t k = 0; k < x.end - x.begin; ++k) {
      if (cost(x.begin + k, y.begin + k) > 0.2F) return false;
    }
    return true;
  }

  [[nodiscard]] float cost(size_t i, size_t j) const {
    const float unlikely = unlikeliness(static_cast<double>(size_at(b_, static_cast<uint32_t>(j))),
                                        static_cast<double>(size_at(a_, static_cast<uint32_t>(i))), growth_);
    if (a_.scratch[i] != b_.scratch[j]) return unlikely + kOtherLife;
    return a_.scratch[i] ? std::min(unlikely, kOtherScratch) : unlikely;
  }

  // cost_[i][j - i + band]: of the first i of x against the first j of y.
  void fill(const Run& x, const Run& y, size_t band) {
    const size_t n = x.end - x.begin;
    const size_t m = y.end - y.begin;
    const size_t width = 2 * band + 1;
    constexpr float kFar = 1e9F;
    std::vector<float> above(width, kFar);
    std::vector<float> row(width, kFar);
    step_.assign((n + 1) * width, both);
    for (size_t i = 0; i <= n; ++i) {
      std::fill(row.begin(), row.end(), kFar);
      for (size_t c = 0; c < width; ++c) {
        if (i + c < band || i + c - band > m) continue;
        const size_t j = i + c - band;
        if (i == 0 && j == 0) {
          row[c] = 0;
          continue;
        }
        Step step = both;
        float best = i > 0 && j > 0 ? above[c] + cost(x.begin + i - 1, y.begin + j - 1) : kFar;
        if (i > 0 && c + 1 < width && above[c + 1] + kGap < best) best = above[c + 1] + kGap, step = only_a;
        if (j > 0 && c > 0 && row[c - 1] + kGap < best) best = row[c - 1] + kGap, step = only_b;
        row[c] = best;
        step_[i * width + c] = step;
      }
      std::swap(row, above);
    }
  }

  void walk_back(const Run& x, const Run& y, size_t band, std::vector<uint32_t>& partner) const {
    size_t i = x.end - x.begin;
    size_t j = y.end - y.begin;
    const size_t width = 2 * band + 1;
    while (i > 0 || j > 0) {
      switch (step_[i * width + (j + band - i)]) {
        case both: partner[x.begin + --i] = y.begin + static_cast<uint32_t>(--j); break;
        case only_a: --i; break;
        case only_b: --j; break;
      }
    }
  }

  const RequestLog& a_;
  const RequestLog& b_;
  double growth_;
  std::vector<Step> step_;
};

std::string frame_text(const Snapshot& snapshot, const Frame& frame) {
  const std::string_view file = snapshot.strings.text(frame.filename);
  return std::string(snapshot.strings.text(frame.name)) + " (" + std::string(file.substr(file.find_last_of('/') + 1)) +
         ":" + std::to_string(frame.line) + ")";
}

// A request's frames, the innermost first.
std::vector<std::string> frames_of(const RequestLog& log, size_t position) {
  const Snapshot& snapshot = *log.verification->timeline.snapshot;
  const uint32_t stack = static_cast<uint32_t>(log.verification->timeline.allocations[log.order[position]].stack);
  const StackTable& stacks = snapshot.stacks;
  std::vector<std::string> frames;
  for (uint32_t f = stacks.starts[stack]; f < stacks.starts[stack + 1]; ++f)
    frames.push_back(frame_text(snapshot, stacks.frames[stacks.frame_ids[f]]));
  return frames;
}

// The first frame in which the one differs from the other.
std::string site_text(const RequestLog& log, size_t position, const RequestLog& other, size_t other_position) {
  if (position >= log.order.size()) return "error.recordings-differ.end";
  const std::vector<std::string> frames = frames_of(log, position);
  if (frames.empty()) return "error.recordings-differ.frameless";
  if (other_position >= other.order.size()) return frames[0];
  const std::vector<std::string> others = frames_of(other, other_position);
  size_t i = 0;
  while (i + 1 < frames.size() && i < others.size() && frames[i] == others[i]) ++i;
  return i == 0 ? frames[0] : frames[0] + " < " + frames[i];
}

uint32_t event_at(const RequestLog& log, size_t position) {
  return position < log.order.size() ? log.requests.begin[log.order[position]] : kNoEvent;
}

// The first run that has no partner; where all have one, the first whose partner has more or fewer requests.
void find_first_difference(const RequestLog& a, const RequestLog& b, const std::vector<Run>& runs_a,
                           const std::vector<Run>& runs_b, const std::vector<std::pair<uint32_t, uint32_t>>& pairs,
                           RequestMatch& match) {
  const auto add = [&](size_t at_a, size_t at_b, int64_t count_a, int64_t count_b) {
    match.first.push_back({.event_base = event_at(a, at_a),
                           .event_other = event_at(b, at_b),
                           .site_base = site_text(a, at_a, b, at_b),
                           .site_other = site_text(b, at_b, a, at_a),
                           .count_base = count_a,
                           .count_other = count_b});
  };
  size_t i = 0;
  while (i < pairs.size() && pairs[i].first == i && pairs[i].second == i) ++i;
  if (i < runs_a.size() || i < runs_b.size()) {
    add(i < runs_a.size() ? runs_a[i].begin : a.order.size(), i < runs_b.size() ? runs_b[i].begin : b.order.size(), 0,
        0);
    return;
  }
  for (const auto& [x, y] : pairs) {
    const int64_t count_a = runs_a[x].end - runs_a[x].begin;
    const int64_t count_b = runs_b[y].end - runs_b[y].begin;
    if (count_a == count_b || runs_a[x].site == 0) continue;
    return add(runs_a[x].begin, runs_b[y].begin, count_a, count_b);
  }
}

// How many requests are made between a request and its free; large where it is never freed.
std::vector<uint32_t> requests_until_free(const RequestStream& requests) {
  std::vector<uint32_t> made_at(requests.size.size(), 0);
  std::vector<uint32_t> span(requests.size.size(), UINT32_MAX);
  uint32_t made = 0;
  for (size_t i = 0; i < requests.kind.size(); ++i) {
    const uint32_t id = requests.id[i];
    if (requests.kind[i] == RequestKind::malloc) made_at[id] = ++made;
    if (requests.kind[i] == RequestKind::free || requests.kind[i] == RequestKind::free_held)
      span[id] = made - made_at[id];
  }
  return span;
}

}  // namespace

FrameHashes frame_hashes(const Snapshot& snapshot) {
  FrameHashes hashes;
  for (const Frame& frame : snapshot.stacks.frames) hashes.insert(frame_hash(snapshot, frame));
  return hashes;
}

std::string site_of(const RequestLog& log, size_t position) {
  const Snapshot& snapshot = *log.verification->timeline.snapshot;
  const StackTable& stacks = snapshot.stacks;
  const uint32_t stack = static_cast<uint32_t>(log.verification->timeline.allocations[log.order[position]].stack);
  const std::vector<std::string> frames = frames_of(log, position);
  for (size_t i = 0; i < frames.size(); ++i) {
    const Frame& frame = stacks.frames[stacks.frame_ids[stacks.starts[stack] + i]];
    const bool is_torch = path_has(snapshot.strings.text(frame.filename), "torch/nn/");
    if (!is_torch) return i == 0 ? frames[0] : frames[0] + " < " + frames[i];
  }
  return frames.empty() ? "" : frames[0];
}

RequestLog request_log(const Verification& verification, const Structure& structure, const FrameHashes& shared) {
  RequestLog log;
  log.verification = &verification;
  log.requests = requests_of(verification);
  log.sums = find_bias_sums(log.requests, structure);
  std::vector<bool> follows(log.requests.size.size(), false);
  for (const BiasSum& sum : log.sums) {
    if (sum.scratch != kNoAllocation) follows[sum.scratch] = follows[sum.semaphores] = true;
  }
  const std::vector<uint32_t> span = requests_until_free(log.requests);
  const std::vector<uint64_t> hashes = stack_hashes(*verification.timeline.snapshot, shared);
  const Allocations& allocations = verification.timeline.allocations;
  for (size_t i = 0; i < log.requests.kind.size(); ++i) {
    if (log.requests.kind[i] != RequestKind::malloc) continue;
    const uint32_t id = log.requests.id[i];
    if (id >= allocations.size() || follows[id]) continue;  // the first is the tensor before the recording
    log.order.push_back(id);
    log.site.push_back(hashes[static_cast<uint32_t>(allocations[id].stack)]);
    log.scratch.push_back(span[id] <= kScratchRequests);
    log.workspace.push_back(span[id] == 0);
  }
  return log;
}

RequestMatch match_requests(const RequestLog& base, const RequestLog& other) {
  RequestMatch match;
  match.partner.assign(base.order.size(), kNoMatch);
  const std::vector<Run> runs_a = runs_of(base);
  const std::vector<Run> runs_b = runs_of(other);
  const std::vector<std::pair<uint32_t, uint32_t>> pairs = pair_runs(runs_a, runs_b);
  match.growth = common_growth(find_growths(base, other, runs_a, runs_b, pairs, false));
  match.other_growth = find_other_growth(find_growths(base, other, runs_a, runs_b, pairs, true), match.growth);
  RunAlignment alignment(base, other, match.growth);
  for (const auto& [i, j] : pairs) alignment.align(runs_a[i], runs_b[j], match.partner);
  const auto counts = [](const RequestLog& log, size_t i) { return log.site[i] != 0 && !log.scratch[i] ? 1 : 0; };
  int64_t framed_matched = 0;
  for (size_t i = 0; i < base.order.size(); ++i) {
    match.framed += counts(base, i);
    if (match.partner[i] == kNoMatch) continue;
    ++match.matched;
    framed_matched += counts(base, i);
  }
  int64_t framed_other = 0;
  for (size_t i = 0; i < other.order.size(); ++i) framed_other += counts(other, i);
  match.framed_unmatched = std::max(match.framed, framed_other) - framed_matched;
  find_first_difference(base, other, runs_a, runs_b, pairs, match);
  return match;
}

}  // namespace oomscope
