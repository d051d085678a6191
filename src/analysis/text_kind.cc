#include "analysis/text_kind.h"

#include <algorithm>

#include "base/bytes_text.h"
#include "base/text.h"
#include "types/context_size.h"

namespace oomscope {
namespace {

// Shares of the card, in per cent. Measured on 43 labelled messages with figures: "cached and unused is at least the
// request" holds for 24 of them and 9 are fragmentation; with 5 % of the card besides for 10, of which 6 are.
constexpr int64_t kNotableUnusedPercent = 5;
constexpr int64_t kNotableForeignPercent = 20;
constexpr int64_t kNotableFreePercent = 5;
constexpr int64_t kLargestCardBytes = 288 * kGiB;  // of any card sold so far

bool at_least(int64_t part, int64_t whole, int64_t percent) { return part >= whole / 100 * percent; }

}  // namespace

KindDecision decide_by_figures(const CardFigures& card) {
  if (card.has(Contradiction::impossible_request))
    return {Kind::not_memory, {Kind::gpu_oom, Kind::gpu_oom_capacity}, Confidence::medium};
  const int64_t tried = card.tried.value_or(0);
  if (card.limit_decides()) {
    if (!card.allocated)
      return {Kind::gpu_oom, {Kind::gpu_oom_capacity, Kind::gpu_oom_fragmentation}, Confidence::high};
    const bool is_capacity = *card.allocated + tried > *card.limit;
    return {Kind::gpu_oom, {is_capacity ? Kind::gpu_oom_capacity : Kind::gpu_oom_fragmentation}, Confidence::high};
  }
  if (card.has(Contradiction::request_above_total)) return {Kind::gpu_oom_capacity, {}, Confidence::high};
  if (card.has(Contradiction::allocated_above_total))
    return {Kind::gpu_oom_capacity, {Kind::gpu_oom}, Confidence::medium};
  if (!card.total || !card.free || !card.reserved || !card.allocated) {
    if (tried > kLargestCardBytes) return {Kind::gpu_oom_capacity, {}, Confidence::high};
    return {Kind::gpu_oom, {Kind::gpu_oom_capacity}, Confidence::low};
  }
  const int64_t unused = card.unused.value_or(0);
  const int64_t foreign = card.foreign();
  const bool unused_serves = unused >= tried;
  const bool much_unused = unused_serves && at_least(unused, *card.total, kNotableUnusedPercent);
  const bool would_fit_alone = tried <= *card.free + foreign;
  const bool much_foreign = at_least(foreign, *card.total, kNotableForeignPercent) && would_fit_alone;
  const bool much_free =
      card.has(Contradiction::free_covers_request) && at_least(*card.free, *card.total, kNotableFreePercent);
  if (much_free) {
    KindDecision open{Kind::gpu_oom, {}, Confidence::low};
    if (unused_serves) open.also.push_back(Kind::gpu_oom_fragmentation);
    return open;
  }
  if (much_unused && unused > foreign) {
    const bool nearly_full = *card.allocated + tried > *card.total / 100 * 90;
    std::vector<Kind> also{Kind::gpu_oom};
    if (nearly_full) also.push_back(Kind::gpu_oom_capacity);
    if (much_foreign) also.push_back(Kind::gpu_oom_other_process);
    return {Kind::gpu_oom_fragmentation, also, Confidence::medium};
  }
  if (much_foreign) {
    const bool is_listed = !card.others.empty();
    std::vector<Kind> also;
    if (*card.allocated == 0) also.push_back(Kind::gpu_oom_first_alloc_or_context);
    if (!is_listed) also.push_back(Kind::gpu_oom_capacity);
    return {Kind::gpu_oom_other_process, also, is_listed ? Confidence::high : Confidence::medium};
  }
  if (unused_serves) return {Kind::gpu_oom, {Kind::gpu_oom_capacity, Kind::gpu_oom_fragmentation}, Confidence::medium};
  if (*card.allocated == 0) return {Kind::gpu_oom_first_alloc_or_context, {Kind::gpu_oom_capacity}, Confidence::medium};
  // Free memory and holes together would do, but they do not join: a setting may join them.
  if (card.pieces_cover_request() || card.pools_cover_request())
    return {Kind::gpu_oom_capacity, {Kind::gpu_oom, Kind::gpu_oom_fragmentation}, Confidence::medium};
  return {Kind::gpu_oom_capacity, {}, Confidence::high};
}

namespace {

bool pins_memory(const TextMessage& message) {
  return std::any_of(message.frames.begin(), message.frames.end(), [](const TextFrame& frame) {
    return contains(frame.function, "pin_memory") || contains(frame.file, "pin_memory") ||
           contains(frame.code, "pin_memory(");
  });
}

// Nothing was on the card yet: the first tensor, the first transfer, the context.
bool is_first_use(const TextMessage& message, Phase phase) {
  if (contains(message.what, "THCGeneral") || message.id == "cuda.init") return true;
  if (!(phase == Phase::unknown || phase == Phase::start || phase == Phase::load)) return false;
  const std::string& code = message.frames.empty() ? message.previous_line : message.frames.back().code;
  for (std::string_view call : {".cuda(", ".to(", "torch.zeros", "torch.ones", "torch.empty", "torch.rand",
                                "torch.tensor(", "torch.full(", "cuda.init", "set_device(", "_lazy_init", "manual_seed",
                                "_cuda_init", "cuda.synchronize", "current_stream(", "t.cuda", "convert(t)"}) {
    if (contains(code, call)) return true;
  }
  return phase == Phase::start;
}

// What the listing beside it says: cards that were full without us.
bool listing_shows_full(const Surroundings& around, std::optional<int> gpu) {
  for (const ListedGpu& listed : around.gpus) {
    if (gpu && listed.index != *gpu) continue;
    if (listed.total_bytes > 0 && listed.used_bytes > listed.total_bytes * 0.9) return true;
  }
  return false;
}

KindDecision decide_bare(const TextMessage& message, Phase phase, const Surroundings& around) {
  if (pins_memory(message)) return {Kind::host_alloc_failed, {Kind::gpu_oom}, Confidence::medium};
  const bool first = is_first_use(message, phase);
  if (first && listing_shows_full(around, message.gpu))
    return {Kind::gpu_oom_other_process, {Kind::gpu_oom_first_alloc_or_context}, Confidence::medium};
  if (first) return {Kind::gpu_oom_first_alloc_or_context, {Kind::gpu_oom_other_process}, Confidence::medium};
  if (listing_shows_full(around, message.gpu) && message.frames.empty())
    return {Kind::gpu_oom_other_process, {Kind::gpu_oom_first_alloc_or_context, Kind::gpu_oom}, Confidence::low};
  return {Kind::gpu_oom,
          {Kind::gpu_oom_capacity, Kind::gpu_oom_first_alloc_or_context, Kind::host_alloc_failed},
          Confidence::low};
}

// ---- the other kinds ------------------------------------------------------------------------------------------------

// "No space left on device" is about /dev/shm where semaphores, queues or tensors are shared, else about a disk.
bool shares_memory(const TextMessage& message) {
  const auto tells = [](std::string_view text) {
    return contains(text, "SemLock") || contains(text, "/dev/shm") || contains(text, "shared_memory") ||
           contains(text, "_share_") || contains(text, "</torch_");
  };
  if (tells(message.excerpt) || tells(message.previous_line)) return true;
  return std::any_of(message.frames.begin(), message.frames.end(), [&](const TextFrame& frame) {
    return tells(frame.code) || tells(frame.file) || tells(frame.function) ||
           contains(frame.file, "multiprocessing/synchronize.py") || contains(frame.file, "multiprocessing/heap.py");
  });
}

KindDecision decide_engine(const TextMessage& message, const CardFigures& card) {
  if (message.kind != Kind::gpu_oom_other_process || !card.total || !card.free)
    return {message.kind, message.also, Confidence::high};
  // An engine's own context is on the card by then.
  const bool is_foreign = *card.total - *card.free > kLargestContextBytes;
  if (is_foreign) return {Kind::gpu_oom_other_process, {Kind::gpu_oom_capacity}, Confidence::high};
  return {Kind::gpu_oom_capacity, {Kind::gpu_oom_other_process}, Confidence::medium};
}

Confidence confidence_of(int strength) {
  return strength >= 5 ? Confidence::high : strength >= 3 ? Confidence::medium : Confidence::low;
}

// A signal alone: the kernel, a limit, a person and a launcher's clean-up all send it.
KindDecision decide_ending(const TextMessage& message) {
  constexpr int kSaysSo = 4;
  KindDecision decision{message.kind, message.also, confidence_of(message.strength)};
  if (message.strength >= kSaysSo || message.kind != Kind::host_oom_killed) return decision;
  decision.confidence = Confidence::low;
  if (std::find(decision.also.begin(), decision.also.end(), Kind::not_memory) == decision.also.end())
    decision.also.push_back(Kind::not_memory);
  return decision;
}

// A worker that writes into a full /dev/shm is ended by a bus error or a fault.
bool crashed_with_full_shm(const TextMessage& message, const Surroundings& around) {
  const bool is_worker = message.id == "worker.crashed" || message.id == "worker.signal";
  return is_worker && around.shm_total_bytes && around.shm_used_bytes.value_or(0) >= *around.shm_total_bytes * 0.95;
}

}  // namespace

KindDecision decide_kind(const TextFacts& facts) {
  const TextMessage& message = *facts.failure;
  switch (message.family) {
    case Family::allocator: return decide_by_figures(facts.card);
    case Family::bare_gpu: return decide_bare(message, facts.phase, facts.around);
    case Family::engine_start: return decide_engine(message, facts.card);
    case Family::disk:
      if (message.id == "errno.28" && shares_memory(message)) return {Kind::shm_exhausted, {}, Confidence::high};
      return {message.kind, message.also, Confidence::medium};
    case Family::ended: return decide_ending(message);
    case Family::gpu_library:
      return {message.kind, message.also, message.strength >= 4 ? Confidence::high : Confidence::low};
    case Family::host_alloc:
      if (message.id == "mmap.count" && !ran_out_of_mappings(facts)) return {message.kind, {}, Confidence::high};
      return {message.kind, message.also, confidence_of(message.strength)};
    case Family::device:
      if (crashed_with_full_shm(message, facts.around))
        return {Kind::shm_exhausted, {Kind::not_memory}, Confidence::medium};
      return {message.kind, message.also, confidence_of(message.strength)};
    case Family::other_backend:
      if (message.id == "tf.tensor" && message.what == "CPU")  // the host's memory, whoever asked
        return {Kind::host_alloc_failed, {message.kind}, Confidence::high};
      return {message.kind, message.also, confidence_of(message.strength)};
    case Family::worker:
    case Family::shm:
    case Family::descriptors:
    case Family::kernel:
    case Family::cgroup:
    case Family::windows:
    case Family::collective:
    case Family::by_hand:  // whatever ran before it: SIGINT is a person's
      if (message.id == "ended.keyboard") return {message.kind, message.also, Confidence::high};
      return {message.kind, message.also, confidence_of(message.strength)};
    case Family::program:
    case Family::note: return {message.kind, message.also, confidence_of(message.strength)};
  }
  return {message.kind, message.also, Confidence::low};
}

}  // namespace oomscope
