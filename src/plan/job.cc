#include "plan/job.h"

#include <algorithm>
#include <utility>

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
    job.phase[i] = phase;
  }
  for (JobPass& pass : job.passes) {
    if (pass.forward_end == kNowhere) pass.forward_end = pass.end;
  }
}

bool is_compiled(const Snapshot& snapshot) {
  return std::any_of(snapshot.stacks.frames.begin(), snapshot.stacks.frames.end(), [&](const Frame& frame) {
    const std::string_view file = snapshot.strings.text(frame.filename);
    return file.find("torch/_inductor/") != std::string_view::npos ||
           file.find("torchinductor_") != std::string_view::npos;
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
    if (event == kNoEvent || event >= structure.span_of.size()) continue;
    const Span& span = structure.span_at(event);
    block.phase = span.phase;
    block.pass = span.pass;
    block.step = span.step;
  }
  job.is_compiled = is_compiled(*job.snapshot);
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
  out.is_compiled = job_.is_compiled;
  out.blocks = job_.blocks;
  RequestStream& requests = out.requests;
  requests.size = size_;
  requests.place = job_.requests.place;
  requests.begin = job_.requests.begin;
  requests.places = job_.requests.places;
  requests.pools = job_.requests.pools;
  requests.failures = job_.requests.failures;
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
    if (is_block && (dropped_[id] || (refreed_[id] && kind != RequestKind::malloc))) continue;
    push(kind, id);
  }
  insert_up_to(kNowhere);
  index_requests(out);
  return out;
}

}  // namespace oomscope
