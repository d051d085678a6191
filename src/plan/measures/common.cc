#include "plan/measures/common.h"

#include <algorithm>
#include <map>

namespace oomscope {
namespace {

constexpr int64_t kTensorBytes = 1024;  // less is a counter or a scalar
constexpr double kGoodPart = 0.15;
constexpr int64_t kStatistics = 64;  // a layer's output is no such part of its largest tensor; what norms keep is

// Requests of one stack side by side.
struct Run {
  StackId stack;
  uint32_t begin;  // position
  uint32_t end;    // of its last request, plus one
  int64_t kept_bytes;
};

std::vector<Run> forward_runs(const Job& job, const JobPass& pass) {
  std::vector<Run> runs;
  for (uint32_t id : job.made_between(pass.begin, pass.forward_end)) {
    const JobBlock& block = job.blocks[id];
    if (block.phase != Phase::forward) continue;
    if (runs.empty() || runs.back().stack != block.stack) runs.push_back({block.stack, block.made_at, 0, 0});
    runs.back().end = block.made_at + 1;
    if (job.is_kept_for_backward(id)) runs.back().kept_bytes += job.size(id);
  }
  return runs;
}

bool is_of_block(RequestKind kind) {
  return kind == RequestKind::malloc || kind == RequestKind::free || kind == RequestKind::free_held;
}

}  // namespace

Error does_not_apply(std::string_view reason) {
  return Error{.code = "does-not-apply", .what = std::string(reason), .where = "measure", .hint = ""};
}

std::set<int64_t> parameter_sizes(const Job& job) {
  std::set<int64_t> sizes;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    if (job.blocks[id].category == Category::parameter) sizes.insert(job.size(id));
  }
  return sizes;
}

int64_t largest_parameter(const Job& job) {
  const std::set<int64_t> sizes = parameter_sizes(job);
  return sizes.empty() ? 0 : *sizes.rbegin();
}

std::vector<JobPass> training_passes(const Job& job) {
  std::vector<JobPass> passes;
  std::copy_if(job.passes.begin(), job.passes.end(), std::back_inserter(passes),
               [](const JobPass& pass) { return pass.has_backward && pass.begin != kNowhere; });
  return passes;
}

// Autocast makes a 16-bit gradient of each 32-bit weight first.
int64_t element_bytes(const Job& job) {
  constexpr int64_t kFull = 4;
  constexpr int64_t kHalf = 2;
  constexpr int64_t kMatrixBytes = 64 * 1024;
  constexpr uint32_t kSoon = 32;  // requests
  if (!job.is_16_bit) return kFull;
  const std::set<int64_t> parameters = parameter_sizes(job);
  int64_t gradients = 0;
  int64_t halves = 0;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    if (block.phase != Phase::backward || job.size(id) < kMatrixBytes) continue;
    gradients += parameters.count(job.size(id)) != 0 ? 1 : 0;
    const bool is_short = block.freed_at != kNowhere && block.freed_at - block.made_at < kSoon;
    halves += is_short && parameters.count(2 * job.size(id)) != 0 && parameters.count(job.size(id)) == 0 ? 1 : 0;
  }
  return 3 * halves > gradients ? kFull : kHalf;
}

bool is_step_temporary(const Job& job, uint32_t id) {
  if (id == job.failed) return job.blocks[id].phase == Phase::optimizer_step && !is_optimizer_state(job, id);
  return job.blocks[id].phase == Phase::optimizer_step && job.freed_in(id) == Phase::optimizer_step &&
         job.blocks[id].category != Category::optimizer_state && job.size(id) > kTensorBytes;
}

bool is_optimizer_state(const Job& job, uint32_t id) {
  return job.blocks[id].category == Category::optimizer_state && job.size(id) > kTensorBytes;
}

// Parameters that are there while the first pass trains.
std::vector<uint32_t> trained_parameters(const Job& job) {
  std::vector<uint32_t> ids;
  const std::vector<JobPass> passes = training_passes(job);
  if (passes.empty()) return ids;
  for (uint32_t id = 0; id < job.blocks.size(); ++id) {
    const JobBlock& block = job.blocks[id];
    if (block.category == Category::parameter && block.made_at < passes[0].begin && block.freed_at > passes[0].end)
      ids.push_back(id);
  }
  return ids;
}

// A step that needs no memory leaves no request behind: then it lies before the first gradient that is freed.
std::vector<StepPosition> step_positions(const Job& job) {
  std::vector<StepPosition> steps;
  const std::vector<JobPass> passes = training_passes(job);
  for (size_t p = 0; p < passes.size(); ++p) {
    const size_t end = p + 1 < passes.size() ? passes[p + 1].begin : job.requests.kind.size();
    uint32_t behind_state = kNowhere;
    uint32_t first_request = kNowhere;
    uint32_t first_cleared = kNowhere;
    for (uint32_t i = passes[p].end; i < end; ++i) {
      if (!is_of_block(job.requests.kind[i])) continue;
      const JobBlock& block = job.blocks[job.requests.id[i]];
      const bool is_malloc = job.requests.kind[i] == RequestKind::malloc;
      if (is_malloc && block.phase == Phase::optimizer_step) {
        if (is_optimizer_state(job, job.requests.id[i])) behind_state = i + 1;
        first_request = std::min(first_request, i);
      }
      if (block.freed_at == i && block.category == Category::gradient) first_cleared = std::min(first_cleared, i);
    }
    // Between micro-batches there is no step.
    uint32_t position = behind_state != kNowhere ? behind_state : std::min(first_request, first_cleared);
    if (position == kNowhere && p + 1 == passes.size()) position = static_cast<uint32_t>(end);
    if (position == kNowhere) continue;
    steps.push_back({.position = position, .like = job.requests.id[passes[p].begin]});
  }
  return steps;
}

// The stacks of a layer's lines come back once a layer, or several times (two projections in one line). So the number
// of layers is the smallest that a good part of the kept bytes comes back with; a layer begins where the first of those
// lines does.
std::vector<Layer> find_layers(const Job& job, const JobPass& pass) {
  const std::vector<Run> runs = forward_runs(job, pass);
  std::map<StackId, int64_t> times;
  for (const Run& run : runs) ++times[run.stack];
  std::map<int64_t, int64_t> bytes_by_times;
  for (const Run& run : runs) {
    if (times[run.stack] > 1) bytes_by_times[times[run.stack]] += run.kept_bytes;
  }
  std::vector<Layer> layers;
  if (bytes_by_times.empty()) return layers;
  int64_t all_bytes = 0;
  for (const auto& [number, bytes] : bytes_by_times) all_bytes += bytes;
  int64_t count = 0;
  for (const auto& [number, bytes] : bytes_by_times) {
    if (count == 0 && static_cast<double>(bytes) >= kGoodPart * static_cast<double>(all_bytes)) count = number;
  }
  std::vector<size_t> begins;  // indices into runs
  StackId first = StackId::none;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (times[runs[i].stack] == count && first == StackId::none) first = runs[i].stack;
    if (first != StackId::none && runs[i].stack == first) begins.push_back(i);
  }
  for (size_t i = 0; i < begins.size(); ++i) {
    // The last layer is as long as the one before it.
    const size_t end = i + 1 < begins.size() ? begins[i + 1] : begins[i] + (i > 0 ? begins[i] - begins[i - 1] : 1);
    layers.push_back({.begin = runs[begins[i]].begin,
                      .end = end < runs.size() ? runs[end].begin : runs.back().end,
                      .output = kNoAllocation});
  }
  for (Layer& layer : layers) {
    int64_t largest = 0;
    const std::vector<uint32_t> ids = job.made_between(layer.begin, layer.end);
    for (uint32_t id : ids) largest = std::max(largest, job.size(id));
    for (uint32_t id : ids) {
      const bool outlives = job.is_kept_for_backward(id) || job.blocks[id].freed_at >= layer.end;
      if (outlives && job.size(id) >= largest / kStatistics) layer.output = id;
    }
  }
  return layers;
}

}  // namespace oomscope
