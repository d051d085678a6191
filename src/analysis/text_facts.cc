#include "analysis/text_facts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/merge_surroundings.h"
#include "analysis/text_balance.h"
#include "analysis/text_kind.h"
#include "analysis/text_victim.h"
#include "base/bytes_text.h"
#include "base/text.h"
#include "types/context_size.h"

namespace oomscope {
namespace {

// ---- which message it is --------------------------------------------------------------------------------------------

struct Candidate {
  const TextMessage* message = nullptr;
  size_t log = 0;
};

bool may_be_explained(const TextMessage& message) {
  const std::string_view id = message.id;
  return message.family == Family::by_hand || id == "launcher.kill-9" || id == "slurm.killed" || id == "worker.exited";
}

// A person's or a scheduler's ending, a launcher's account or a loader's echo, where `other` names what they follow.
bool is_told_better(const TextMessage& message, const TextMessage& other) {
  constexpr int kSaysSo = 4;
  const bool stands_before = other.offset_bytes < message.offset_bytes;
  const std::string_view id = message.id;
  if (message.family == Family::by_hand) {
    const bool is_memory = other.kind != Kind::not_memory && other.strength >= kSaysSo;
    return is_memory || (id == "ended.cancelled" && other.family == Family::program && stands_before);
  }
  // A launcher names the first process to fail alone; others that it ends itself stand in its summary.
  if (id == "launcher.kill-9")
    return other.id == "launcher.failed" && stands_before && !contains(message.excerpt, "local_rank: ");
  if (id == "slurm.killed") return other.id.starts_with("ended.") && stands_before;
  if (id != "worker.exited") return false;
  return other.id == "worker.caught" || other.id == "program.bootstrap" ||
         (other.id == "ended.keyboard" && stands_before);
}

// Messages behind which the run did not go on, and that no other one explains.
class Failures {
 public:
  Failures(std::span<const TextEvidence> logs, const std::vector<Survival>& survived) {
    for (const Survival& each : survived) passed_over_.insert(each.message);
    std::vector<const TextMessage*> explained;
    for (const TextEvidence& log : logs) {
      for (const TextMessage& message : log.messages) {
        if (!may_be_explained(message)) continue;
        const bool is_explained = std::any_of(log.messages.begin(), log.messages.end(), [&](const TextMessage& other) {
          return is_told_better(message, other) && contain(other);
        });
        if (is_explained) explained.push_back(&message);
      }
    }
    passed_over_.insert(explained.begin(), explained.end());
  }
  [[nodiscard]] bool contain(const TextMessage& message) const {
    return message.strength > 0 && !passed_over_.contains(&message);
  }

 private:
  std::set<const TextMessage*> passed_over_;
};

// A person and a scheduler end a job that is short of memory too: one that was killed beside it may have been.
void doubt_purpose(std::span<const TextEvidence> logs, const Failures& failures, KindDecision& decision) {
  for (const TextEvidence& log : logs) {
    for (const TextMessage& message : log.messages) {
      const bool is_memory = failures.contain(message) && message.kind != Kind::not_memory;
      if (!is_memory || std::count(decision.also.begin(), decision.also.end(), message.kind) > 0) continue;
      decision.also.push_back(message.kind);
      if (decision.confidence == Confidence::high) decision.confidence = Confidence::medium;
    }
  }
}

// The strongest message, and of equals the earliest: later ones are mostly consequences (the other ranks, the launcher,
// the handler). A GPU assertion counts against every later message of the GPU.
Candidate choose_failure(std::span<const TextEvidence> logs, const Failures& failures) {
  Candidate best;
  const auto is_earlier = [](const TextMessage& a, size_t log_a, const TextMessage& b, size_t log_b) {
    if (a.time && b.time && log_a != log_b) return is_surely_before(*a.time, *b.time);
    return false;  // they come in the order of the text
  };
  for (size_t log = 0; log < logs.size(); ++log) {
    for (const TextMessage& message : logs[log].messages) {
      if (!failures.contain(message)) continue;
      const bool is_better =
          best.message == nullptr || message.strength > best.message->strength ||
          (message.strength == best.message->strength && is_earlier(message, log, *best.message, best.log));
      if (is_better) best = {&message, log};
    }
  }
  return best;
}

// A library may print its line before the exception's traceback is: "THCudaCheck FAIL ...", then the exception. The
// second one of the two knows where the program was.
Candidate with_traceback(std::span<const TextEvidence> logs, Candidate chosen) {
  constexpr int64_t kNear = 200;  // lines
  if (chosen.message == nullptr || !chosen.message->frames.empty()) return chosen;
  const TextMessage& first = *chosen.message;
  for (const TextMessage& message : logs[chosen.log].messages) {
    const bool is_behind = message.offset_bytes > first.offset_bytes && message.line - first.line <= kNear;
    if (!is_behind || message.rank != first.rank) continue;
    const bool is_same = message.family == first.family && message.kind == first.kind &&
                         message.strength == first.strength &&
                         message.figures[Figure::tried] == first.figures[Figure::tried];
    if (is_same && !message.frames.empty()) return {&message, chosen.log};
    if (message.strength > 0) return chosen;
  }
  return chosen;
}

bool same_machine_memory(Family a, Family b) {
  const auto is_host = [](Family f) {
    return f == Family::kernel || f == Family::cgroup || f == Family::ended || f == Family::host_alloc ||
           f == Family::worker || f == Family::note;
  };
  return a == b || (is_host(a) && is_host(b));
}

// PrintedFigures that the failure's own message lacks and another one about the same memory has.
void add_figures(const TextMessage& from, PrintedFigures& to) {
  for (size_t i = 0; i < kFigures; ++i) {
    const std::optional<double>& figure = from.figures.values[i];
    const bool is_none = figure && static_cast<Figure>(i) == Figure::limit && means_no_limit(*figure);
    if (!to.values[i] && !is_none) to.values[i] = figure;
  }
}

void collect_figures(std::span<const TextEvidence> logs, TextFacts& facts) {
  const TextMessage* failure = facts.failure;
  if (failure != nullptr) facts.numbers = settled_figures(*failure, facts.card);
  const bool is_complete = failure != nullptr && failure->family == Family::allocator;
  if (is_complete) return;
  for (const TextEvidence& log : logs) {
    for (const TextMessage& message : log.messages) {
      if (failure == nullptr || same_machine_memory(failure->family, message.family))
        add_figures(message, facts.numbers);
    }
  }
  if (facts.kind != Kind::cgroup_or_slurm_limit && facts.kind != Kind::host_oom_killed) return;
  if (!facts.numbers[Figure::limit]) facts.numbers[Figure::limit] = facts.around.job_limit_bytes;
  if (!facts.numbers[Figure::used]) facts.numbers[Figure::used] = facts.around.job_used_bytes;
}

// The kernel's line about another program does not tell how a worker of the job ended.
Candidate without_other_victim(std::span<const TextEvidence> logs, Candidate chosen) {
  const TextMessage* const victim = find_victim(logs);
  const bool is_kernel = chosen.message != nullptr && chosen.message->family == Family::kernel;
  if (!is_kernel || victim == nullptr || may_be_job(victim->what)) return chosen;
  for (size_t log = 0; log < logs.size(); ++log) {
    for (const TextMessage& message : logs[log].messages) {
      if (message.family == Family::worker && message.strength > 0) return {&message, log};
    }
  }
  return chosen;
}

// Whom the kernel ended, and by whose limit, where the failure is one of the host's memory.
void take_victim(std::span<const TextEvidence> logs, TextFacts& facts) {
  const bool is_worker = facts.kind == Kind::dataloader_worker_killed;
  if (facts.kind != Kind::cgroup_or_slurm_limit && facts.kind != Kind::host_oom_killed && !is_worker) return;
  const TextMessage* const victim = find_victim(logs);
  const std::set<int64_t> workers = worker_pids(logs);
  if (victim != nullptr && !workers.empty() && !workers.contains(*victim->pid)) {
    facts.caveats.push_back(Caveat{
        "text-other-victim",
        {{"worker", std::to_string(*workers.begin())}, {"pid", std::to_string(*victim->pid)}, {"what", victim->what}},
        CaveatSource::recording});
  }
  if (is_worker) return;
  facts.victim = victim;
  facts.victim_is_other = victim != nullptr && !may_be_job(victim->what);
  for (const TextEvidence& log : logs) {
    for (const TextMessage& message : log.messages) {
      if (message.id == "kernel.constraint-memcg" && facts.cgroup.empty()) facts.cgroup = message.what;
      facts.only_some_nodes |= message.id == "kernel.constraint-nodes";
    }
  }
}

// ---- ranks

// All have one, and all of them name their zone or none does.
bool have_comparable_times(const std::vector<RankFailure>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](const RankFailure& each) {
    const std::optional<PrintedTime>& time = each.message->time;
    return time && time->has_zone == ranks.front().message->time->has_zone;
  });
}

void find_ranks(std::span<const TextEvidence> logs, const Failures& failures, TextFacts& facts) {
  std::map<std::pair<size_t, int>, RankFailure> strongest;
  for (size_t log = 0; log < logs.size(); ++log) {
    for (const TextMessage& message : logs[log].messages) {
      if (!failures.contain(message)) continue;
      const std::optional<int> rank = message.rank ? message.rank : logs[log].rank;
      if (!rank && logs.size() == 1) continue;
      // One log of all ranks is told apart by its prefixes, several logs by themselves.
      const auto [at, is_new] = strongest.try_emplace({log, rank.value_or(-1)},
                                                      RankFailure{rank, logs[log].node, log, &message, message.kind});
      if (!is_new && message.strength > at->second.message->strength) at->second.message = &message;
    }
  }
  for (auto& [key, failure] : strongest) {
    failure.kind = failure.message->family == Family::allocator
                       ? decide_by_figures(reconcile_card(*failure.message)).kind
                       : failure.message->kind;
    facts.ranks.push_back(failure);
  }
  const bool have_times = have_comparable_times(facts.ranks);
  std::stable_sort(facts.ranks.begin(), facts.ranks.end(), [&](const RankFailure& a, const RankFailure& b) {
    if (have_times && a.message->time->seconds != b.message->time->seconds)
      return a.message->time->seconds < b.message->time->seconds;
    // Those that waited for others noticed later, wherever their lines stand.
    const bool a_waited = a.message->family == Family::collective;
    const bool b_waited = b.message->family == Family::collective;
    if (a_waited != b_waited) return b_waited;
    return a.log == b.log && a.message->offset_bytes < b.message->offset_bytes;
  });
  // Of those whose stamps cannot tell them apart none is known to be first.
  const auto is_behind_first = [&](const RankFailure& each) {
    return is_surely_before(*facts.ranks.front().message->time, *each.message->time);
  };
  facts.order_is_known = logs.size() == 1 || (have_times && !facts.ranks.empty() &&
                                              std::all_of(facts.ranks.begin() + 1, facts.ranks.end(), is_behind_first));
}

// ---- growth

// Allocated bytes of later and later messages, and of figures that the program prints itself, where they never fall.
void find_growth(std::span<const TextEvidence> logs, TextFacts& facts) {
  constexpr size_t kFewest = 4;
  constexpr size_t kFewestFailures = 3;  // the same failure over and over tells more than figures of any moment
  for (const TextEvidence& log : logs) {
    std::vector<GrowthPoint> points;
    bool falls = false;
    bool only_failures = true;
    for (const TextMessage& message : log.messages) {
      const std::optional<double>& bytes = message.figures[Figure::allocated];
      const bool is_peak = message.family == Family::note && !message.what.empty();  // which cannot fall
      if (!whole_bytes(bytes) || is_peak || (facts.failure != nullptr && message.rank != facts.failure->rank)) continue;
      falls |= !points.empty() && *bytes < points.back().allocated_bytes;
      only_failures &= message.strength > 0;
      if (points.empty() || *bytes > points.back().allocated_bytes) points.push_back({*bytes, &message});
    }
    if (falls || points.size() < (only_failures ? kFewestFailures : kFewest)) continue;
    if (points.back().allocated_bytes < points.front().allocated_bytes * 1.1) continue;
    facts.growth = std::move(points);
    return;
  }
}

// Failures of one process with more allocated each time: what was caught before tells less than the last one. Null:
// there are none.
const TextMessage* last_of_growth(std::span<const TextEvidence> logs, const Failures& failures,
                                  const TextFacts& facts) {
  const Candidate chosen{facts.failure, facts.failure_log};
  const auto is_alike = [&](const TextMessage& message) {
    return message.strength == chosen.message->strength && message.family == chosen.message->family &&
           message.rank == chosen.message->rank && message.gpu == chosen.message->gpu;
  };
  const bool grows = chosen.message != nullptr && !facts.growth.empty() &&
                     std::all_of(facts.growth.begin(), facts.growth.end(),
                                 [&](const GrowthPoint& point) { return is_alike(*point.message); });
  if (!grows) return nullptr;
  const std::vector<TextMessage>& messages = logs[chosen.log].messages;
  const auto last = std::find_if(messages.rbegin(), messages.rend(), [&](const TextMessage& message) {
    return is_alike(message) && failures.contain(message);
  });
  return last == messages.rend() ? nullptr : &*last;
}

// ---- caveats

void add_caveat(TextFacts& facts, const char* code, Values values = {}) {
  facts.caveats.push_back(Caveat{code, std::move(values), CaveatSource::recording});
}

void fill_caveats(TextFacts& facts) {
  const CardFigures& card = facts.card;
  const auto text = [](const std::optional<int64_t>& bytes) { return bytes ? format_bytes(*bytes) : std::string("?"); };
  for (Contradiction each : card.contradictions) {
    switch (each) {
      case Contradiction::impossible_request: break;  // the finding itself says so
      case Contradiction::total_is_zero: add_caveat(facts, "text-zero-total"); break;
      case Contradiction::impossible_value: add_caveat(facts, "text-impossible-value"); break;
      case Contradiction::own_is_zero:
        add_caveat(facts, "text-own-is-zero", {{"allocated", text(card.allocated)}});
        break;
      case Contradiction::own_listed_as_other:
        add_caveat(facts, "text-pid-is-self", {{"own", text(card.own)}, {"reserved", text(card.reserved)}});
        break;
      case Contradiction::free_covers_request:
        if (card.limit_decides()) {
          add_caveat(facts, "text-limit-decides", {{"free", text(card.free)}, {"limit", text(card.limit)}});
          break;
        }
        add_caveat(facts, "text-free-covers-request", {{"free", text(card.free)}, {"tried", text(card.tried)}});
        break;
      case Contradiction::reserved_below_allocated:
        add_caveat(facts, "text-reserved-below-allocated",
                   {{"reserved", text(card.reserved)}, {"allocated", text(card.allocated)}});
        break;
      case Contradiction::allocated_above_total:
        add_caveat(facts, "text-allocated-above-total", {{"total", text(card.total)}});
        break;
      case Contradiction::request_above_total:
        add_caveat(facts, "text-request-above-total", {{"tried", text(card.tried)}, {"total", text(card.total)}});
        break;
      case Contradiction::fraction_omitted: add_caveat(facts, "text-fraction-omitted"); break;
    }
  }
  if (facts.around.expandable_segments && facts.failure != nullptr && facts.failure->hint == "expandable_segments:True")
    add_caveat(facts, "text-hint-is-followed");
  if (facts.failure != nullptr && !facts.survived.empty())
    add_caveat(facts, "text-outlived", {{"line", format_count(facts.survived.front().message->line)}});
  for (const TextEvidence* log : facts.logs)
    facts.caveats.insert(facts.caveats.end(), log->caveats.begin(), log->caveats.end());
}

// Messages of one family; lines that tell of one failure in two wordings ("THCudaCheck FAIL ...", then the exception)
// stand beside each other and count once.
int64_t count_failures(const TextEvidence& log, Family family) {
  int64_t count = 0;
  const TextMessage* before = nullptr;
  for (const TextMessage& message : log.messages) {
    if (message.family != family) continue;
    const bool is_first_to_speak = before != nullptr && before->frames.empty() && !message.frames.empty();
    const bool is_same =
        before != nullptr && message.id != before->id && (message.line - before->line <= 1 || is_first_to_speak);
    count += is_same ? 0 : 1;
    before = &message;
  }
  return count;
}

// A summary alone: it counts failures and says no more of them.
void use_summary(TextFacts& facts) {
  for (const TextEvidence* log : facts.logs) {
    for (const MemorySummary& summary : log->summaries) {
      for (const SummaryRow& row : summary.rows) {
        if (row.metric == "allocated_bytes.all") facts.numbers[Figure::allocated] = row.values[0];
        if (row.metric == "reserved_bytes.all") facts.numbers[Figure::reserved] = row.values[0];
        if (row.metric == "active_bytes.all") facts.numbers[Figure::active] = row.values[0];
      }
      if (summary.num_ooms > 0 && facts.failure == nullptr) {
        facts.kind = Kind::gpu_oom;
        facts.confidence = Confidence::low;
      }
    }
  }
}

}  // namespace

TextFacts find_text_facts(std::span<const TextEvidence> logs) {
  TextFacts facts;
  for (const TextEvidence& log : logs) {
    facts.logs.push_back(&log);
    merge_surroundings(log.surroundings, facts.around);
  }
  for (size_t log = 0; log < logs.size(); ++log) {
    const std::vector<Survival> of_log = find_survivals(logs[log], log);
    facts.survived.insert(facts.survived.end(), of_log.begin(), of_log.end());
  }
  const Failures failures(logs, facts.survived);
  const Candidate chosen = with_traceback(logs, without_other_victim(logs, choose_failure(logs, failures)));
  facts.failure = chosen.message;
  facts.failure_log = chosen.log;
  find_growth(logs, facts);
  const TextMessage* const last = last_of_growth(logs, failures, facts);
  facts.is_last = last != nullptr;
  if (facts.is_last) facts.failure = last;
  if (facts.failure != nullptr) {
    facts.card = reconcile_card(*facts.failure);
    const TextPhase phase = phase_of(*facts.failure);
    facts.phase = phase.phase;
    facts.step = phase.step;
    facts.after_training = phase.after_training;
    facts.is_first = phase.is_first;
    KindDecision decision = decide_kind(facts);
    if (facts.failure->family == Family::by_hand) doubt_purpose(logs, failures, decision);
    if (decision.kind == Kind::shm_exhausted && shm_has_room(facts))
      decision.confidence = std::max(decision.confidence, Confidence::medium);
    facts.kind = decision.kind;
    facts.also = decision.also;
    facts.confidence = decision.confidence;
    for (const TextEvidence& log : logs) facts.failures += count_failures(log, facts.failure->family);
    fill_balance(facts);
  } else if (const Survival* outlived = facts.outlived()) {
    facts.also.push_back(outlived->message->kind);
    facts.confidence = outlived->sign != nullptr && !outlived->sign->is_finish ? Confidence::medium : Confidence::high;
  } else {
    use_summary(facts);
  }
  collect_figures(logs, facts);
  take_victim(logs, facts);
  find_ranks(logs, failures, facts);
  if (!facts.growth.empty() && facts.kind != Kind::no_failure) facts.also.push_back(Kind::leak_suspected);
  fill_caveats(facts);
  return facts;
}

bool ran_out_of_mappings(const TextFacts& facts) {
  constexpr int64_t kTinyBytes = int64_t{1} << 20;
  if (facts.failure == nullptr || facts.failure->id != "mmap.count") return false;
  const bool is_shared_tensor = facts.failure->what.find("/torch_") != std::string::npos;
  return is_shared_tensor || facts.card.tried.value_or(0) < kTinyBytes;
}

// The card of the message in the listing; without an index there, the only card.
const ListedGpu* listed_card(const TextFacts& facts) {
  const std::vector<ListedGpu>& gpus = facts.around.gpus;
  if (facts.failure == nullptr || !facts.failure->gpu) return gpus.size() == 1 ? &gpus.front() : nullptr;
  const auto found =
      std::find_if(gpus.begin(), gpus.end(), [&](const ListedGpu& gpu) { return gpu.index == *facts.failure->gpu; });
  return found == gpus.end() ? nullptr : &*found;
}

bool listing_is_later(const TextFacts& facts) {
  const ListedGpu* card = listed_card(facts);
  if (card == nullptr || !facts.card.total || !facts.card.free) return false;
  return card->used_bytes < static_cast<double>(*facts.card.total - *facts.card.free) / 2;
}

bool is_slice(const TextFacts& facts) {
  constexpr double kClearlyLess = 0.75;  // what the driver keeps of a whole card is less
  const std::vector<ListedGpu>& gpus = facts.around.gpus;
  return facts.card.total && !gpus.empty() && std::all_of(gpus.begin(), gpus.end(), [&](const ListedGpu& gpu) {
           return static_cast<double>(*facts.card.total) < gpu.total_bytes * kClearlyLess;
         });
}

bool shm_has_room(const TextFacts& facts) {
  const std::optional<double>& total = facts.around.shm_total_bytes;
  const std::optional<double>& used = facts.around.shm_used_bytes;
  return total && used &&
         *total - *used > std::max(*total / 2, 2.0 * static_cast<double>(facts.card.tried.value_or(0)));
}

bool names_no_signal(const TextMessage& message) {
  return message.id == "pool.abrupt" || message.id == "ray.worker-died";
}

const Survival* TextFacts::outlived() const {
  const auto strongest = std::max_element(survived.begin(), survived.end(), [](const Survival& a, const Survival& b) {
    return a.message->strength < b.message->strength;
  });
  return strongest == survived.end() ? nullptr : &*strongest;
}

// Every kind of a full GPU is the same failure, of which the snapshot knows more.
bool log_agrees_with_snapshot(const TextFacts& facts, Kind snapshot) {
  const auto is_gpu = [](Kind kind) {
    return kind == Kind::gpu_oom || kind == Kind::gpu_oom_capacity || kind == Kind::gpu_oom_fragmentation ||
           kind == Kind::gpu_oom_other_process || kind == Kind::gpu_oom_first_alloc_or_context;
  };
  if (facts.failure == nullptr || facts.kind == snapshot || (is_gpu(facts.kind) && is_gpu(snapshot))) return true;
  // The error that ends the program may be what it made of the failure.
  return facts.failure->family == Family::program && snapshot != Kind::no_failure;
}

bool log_outweighs_snapshot(const TextFacts& facts, Kind snapshot) {
  if (facts.failure == nullptr || facts.kind == snapshot) return false;
  return snapshot == Kind::no_failure;
}

}  // namespace oomscope
