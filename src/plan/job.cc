#include "plan/job.h"

#include <algorithm>
#include <utility>

#include "base/source_path.h"
#include "model/precision.h"

namespace oomscope {
namespace {

bool is_end(RequestKind kind) { return kind == RequestKind::free || kind == RequestKind::free_held; }

// Fills in what follows from the requests alone: positions, phases by position, passes.
void index_requests(Job& job) {
  const RequestStream& requests = job.requests;
  for (JobBlock& block : job.blocks) block.made_at = block.freed_at = kNowhere;
  job.phase.assign(requests.kind.size(), Phase::unknown);
  job.passes.assign(job.structure->passes.size(), JobPass{});
  Phase phase = Phase::unknown;
  for (uint32_t i = 0; i < requests.kind.size(); ++i) {
    const uint32_t id = requests.id[i];
    if (requests.kind[i] == RequestKind::malloc) {
      JobBlock& block = job.blocks[id];
      block.made_at = i;
      if (block.phase != Phase::unknown) phase = block.phase;
      if (block.pass < job.passes.size()) {
        JobPass& pass = job.passes[block.pass];
        if (pass.begin == kNowhere) pass.begin = i;
        const bool is_backward = block.phase == Phase::backward;
        if (is_backward && pass.forward_end == kNowhere) pass.forward_end = i;
        pass.has_backward = pass.has_backward || is_backward;
        pass.end = i + 1;
      }
    }
    if (is_end(requests.kind[i])) job.blocks[id].freed_at = i;
    if (job.is_fatal(i)) {
      job.blocks[job.failed].made_at = i;
      phase = job.blocks[job.failed].phase;
      const uint32_t pass = job.blocks[job.failed].pass;
      if (pass < job.passes.size() && job.passes[pass].begin != kNowhere) job.passes[pass].end = i + 1;
    }
    job.phase[i] = phase;
  }
  for (JobPass& pass : job.passes) {
    if (pass.forward_end == kNowhere) pass.forward_end = pass.end;
  }
  // In a run that trains, a pass that a failure ended would have had its backward.
  const bool trains =
      std::any_of(job.passes.begin(), job.passes.end(), [](const JobPass& p) { return p.has_backward; });
  job.ends_in_failure = !requests.failures.empty() && requests.failures.back().last;
  if (job.ends_in_failure && trains) job.passes.back().has_backward = true;
}

// What it would have been, as far as its phase and stack tell.
Category category_of_failed(const Job& job) {
  const JobBlock& block = job.blocks[job.failed];
  const StackTraits& traits = job.traits(job.failed);
  switch (block.phase) {
    case Phase::optimizer_step:
      return traits.has(Trait::optimizer_state) ? Category::optimizer_state : Category::temporary;
    case Phase::backward:
      return std::any_of(job.blocks.begin(), job.blocks.end() - 1,
                         [&](const JobBlock& other) {
                           const size_t id = static_cast<size_t>(&other - job.blocks.data());
                           return other.category == Category::parameter &&
                                  job.size(static_cast<uint32_t>(id)) == job.size(job.failed);
                         })
                 ? Category::gradient
                 : Category::temporary;
    case Phase::loss: return Category::logits;
    case Phase::forward:
    case Phase::evaluation:
    case Phase::generation: return traits.has(Trait::library_workspace) ? Category::workspace : Category::activation;
    default: return Category::unknown;
  }
}

// The request that ended the run joins the blocks: what changes blocks changes it.
void add_failed(RequestStream& requests) {
  const RequestStream::Failure& failure = requests.failures.back();
  const auto place = std::find_if(requests.places.begin(), requests.places.end(), [&](const RequestStream::Place& p) {
    return p.stream == failure.place.stream && p.pool == failure.place.pool;
  });
  requests.size.push_back(failure.size);
  requests.place.push_back(place == requests.places.end() ? 0 : static_cast<uint32_t>(place - requests.places.begin()));
  requests.begin.push_back(failure.event);
}

bool is_compiled(const Snapshot& snapshot) {
  return std::any_of(snapshot.stacks.frames.begin(), snapshot.stacks.frames.end(), [&](const Frame& frame) {
    const std::string_view file = snapshot.strings.text(frame.filename);
    return path_has(file, "torch/_inductor/") || path_has(file, "torchinductor_");
  });
}

// The innermost frame of Python code, or null.
const Frame* innermost(const Snapshot& snapshot, StackId stack) {
  const StackTable& stacks = snapshot.stacks;
  const uint32_t s = static_cast<uint32_t>(stack);
  for (uint32_t f = stacks.starts[s]; f < stacks.starts[s + 1]; ++f) {
    const Frame& frame = stacks.frames[stacks.frame_ids[f]];
    if (snapshot.strings.text(frame.filename).ends_with(".py")) return &frame;
  }
  return nullptr;
}

}  // namespace

std::string_view Job::function_of(uint32_t id) const {
  const Frame* frame = innermost(*snapshot, blocks[id].stack);
  return frame == nullptr ? std::string_view() : snapshot->strings.text(frame->name);
}

std::string_view Job::file_of(uint32_t id) const {
  const Frame* frame = innermost(*snapshot, blocks[id].stack);
  return frame == nullptr ? std::string_view() : snapshot->strings.text(frame->filename);
}

bool Job::is_kept_for_backward(uint32_t id) const {
  const JobBlock& block = blocks[id];
  if (block.phase != Phase::forward && block.phase != Phase::loss) return false;
  if (block.pass >= passes.size() || !passes[block.pass].has_backward) return false;
  return block.freed_at == kNowhere || block.freed_at >= passes[block.pass].forward_end;
}

std::vector<uint32_t> Job::made_between(uint32_t begin, uint32_t end) const {
  std::vector<uint32_t> ids;
  for (uint32_t i = begin; i < end && i < requests.kind.size(); ++i) {
    if (requests.kind[i] == RequestKind::malloc) ids.push_back(requests.id[i]);
    if (is_fatal(i)) ids.push_back(failed);
  }
  return ids;
}

Job make_job(const Verification& verification, const Structure& structure) {
  return make_job(verification, structure, requests_of(verification));
}

Job make_job(const Verification& verification, const Structure& structure, RequestStream requests) {
  Job job;
  job.structure = &structure;
  job.snapshot = verification.timeline.snapshot;
  job.requests = std::move(requests);
  if (!job.requests.failures.empty() && job.requests.failures.back().last) {
    job.failed = static_cast<uint32_t>(job.requests.size.size());
    add_failed(job.requests);
  }
  const Timeline& timeline = verification.timeline;
  const std::vector<AllocationCategory> categories = find_categories(timeline, structure);
  job.blocks.resize(job.requests.size.size());
  for (size_t id = 0; id < job.blocks.size(); ++id) {
    JobBlock& block = job.blocks[id];
    if (id < timeline.allocations.size()) {
      block.category = categories[id].category;
      block.reason = categories[id].reason;
      block.stack = timeline.allocations[id].stack;
    }
    const uint32_t event = job.requests.begin[id];
    if (id == job.failed) block.stack = timeline.trace().stack[event];
    if (event == kNoEvent || event >= structure.span_of.size()) continue;
    const Span& span = structure.span_at(event);
    block.phase = span.phase;
    block.pass = span.pass;
    block.step = span.step;
  }
  if (job.failed != kNoAllocation) job.blocks[job.failed].category = category_of_failed(job);
  job.is_compiled = is_compiled(*job.snapshot);
  job.is_16_bit = computes_in_16_bits(timeline, structure, categories);
  index_requests(job);
  return job;
}

uint32_t JobEditor::add(int64_t bytes, uint32_t like) {
  size_.push_back(bytes);
  dropped_.push_back(false);
  refreed_.push_back(false);
  like_.push_back(like);
  added_.push_back(like < job_.blocks.size() ? job_.blocks[like] : added(like));
  return static_cast<uint32_t>(size_.size() - 1);
}

Job JobEditor::build() const {
  Job out;
  out.structure = job_.structure;
  out.snapshot = job_.snapshot;
  out.failed = job_.failed;
  out.is_compiled = job_.is_compiled;
  out.is_16_bit = job_.is_16_bit;
  out.unsure_bytes = job_.unsure_bytes + unsure_bytes_;
  out.blocks = job_.blocks;
  RequestStream& requests = out.requests;
  requests.size = size_;
  requests.place = job_.requests.place;
  requests.begin = job_.requests.begin;
  requests.places = job_.requests.places;
  requests.pools = job_.requests.pools;
  requests.failures = job_.requests.failures;
  if (job_.failed != kNoAllocation) requests.failures.back().size = size_[job_.failed];
  requests.address_hints = job_.requests.address_hints;
  requests.from_mid_life = job_.requests.from_mid_life;
  out.blocks.insert(out.blocks.end(), added_.begin(), added_.end());
  for (uint32_t like : like_) {
    requests.place.push_back(requests.place[like]);
    requests.begin.push_back(requests.begin[like]);
  }
  std::vector<Insertion> insertions = insertions_;
  std::stable_sort(insertions.begin(), insertions.end(),
                   [](const Insertion& a, const Insertion& b) { return a.position < b.position; });
  size_t next = 0;
  const auto push = [&](RequestKind kind, uint32_t id) {
    requests.kind.push_back(kind);
    requests.id.push_back(id);
  };
  const auto insert_up_to = [&](uint32_t position) {
    for (; next < insertions.size() && insertions[next].position <= position; ++next) {
      if (!dropped_[insertions[next].id]) push(insertions[next].kind, insertions[next].id);
    }
  };
  for (uint32_t i = 0; i < job_.requests.kind.size(); ++i) {
    insert_up_to(i);
    const RequestKind kind = job_.requests.kind[i];
    const uint32_t id = job_.requests.id[i];
    const bool is_block = kind == RequestKind::malloc || is_end(kind) || kind == RequestKind::complete;
    if (job_.is_fatal(i) && dropped_[job_.failed]) continue;
    if (is_block && (dropped_[id] || (refreed_[id] && kind != RequestKind::malloc))) continue;
    push(kind, id);
  }
  insert_up_to(kNowhere);
  index_requests(out);
  return out;
}

}  // namespace oomscope
