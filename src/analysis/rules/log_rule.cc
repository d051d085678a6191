#include "analysis/rules/log_rule.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "base/bytes_text.h"
#include "remedies/causes.h"
#include "remedies/remedy.h"
#include "types/gpu_names.h"

namespace oomscope {
namespace {

bool frames_name(const TextFacts& facts, std::initializer_list<std::string_view> parts) {
  if (facts.failure == nullptr) return false;
  const auto names = [&](std::string_view text) {
    return std::any_of(parts.begin(), parts.end(),
                       [&](std::string_view part) { return text.find(part) != std::string_view::npos; });
  };
  return names(facts.failure->previous_line) ||
         std::any_of(facts.failure->frames.begin(), facts.failure->frames.end(),
                     [&](const TextFrame& frame) { return names(frame.code) || names(frame.function); });
}

bool frames_are_of(const TextFacts& facts, std::initializer_list<std::string_view> files) {
  if (facts.failure == nullptr) return false;
  const std::vector<TextFrame>& frames = facts.failure->frames;
  return std::any_of(frames.begin(), frames.end(), [&](const TextFrame& frame) {
    return std::any_of(files.begin(), files.end(),
                       [&](std::string_view file) { return frame.file.find(file) != std::string::npos; });
  });
}

// The first release of a range such as "2.2-2.8" or "2.9 or later"; of one that begins in 1.x the last of 1.x, which
// most ran.
std::string oldest_release(std::string_view vintage) {
  const size_t end = std::min(vintage.find_first_not_of("0123456789."), vintage.size());
  std::string oldest(vintage.substr(0, end));
  const std::string_view rest = vintage.substr(end);
  if (!oldest.starts_with("1.")) return oldest;
  return rest.starts_with("-1.") ? std::string(rest.substr(1)) : "1.13";
}

// Of the card that failed where the log lists it, else the least of all that it names: what works there works anywhere.
std::optional<int> compute_capability_of(const TextFacts& facts) {
  if (const std::optional<int> given = compute_capability(facts.around.gpu_name)) return given;
  std::optional<int> least;
  for (const ListedGpu& gpu : facts.around.gpus) {
    const std::optional<int> each = compute_capability(gpu.name);
    if (each && facts.failure != nullptr && facts.failure->gpu == gpu.index) return each;
    if (each && (!least || *each < *least)) least = each;
  }
  return least;
}

// A batch has at least what a worker could not put into shared memory, could not collate or could not pin; else it is
// as large as the log prints it.
std::optional<int64_t> host_batch(const TextFacts& facts) {
  const bool is_host = facts.kind == Kind::host_alloc_failed || facts.kind == Kind::dataloader_worker_killed;
  const bool is_batch =
      facts.kind == Kind::shm_exhausted ||
      (is_host && (facts.phase == Phase::data_loading || frames_name(facts, {"collate", "pin_memory"})));
  if (is_batch && facts.card.tried) return facts.card.tried;
  return whole_bytes(facts.around.batch_bytes);
}

// By the words of the message that tells of the limit.
std::string scheduler_of(const TextFacts& facts) {
  if (facts.failure == nullptr) return {};
  const std::string_view id = facts.failure->id;
  for (std::string_view each : {"pbs", "sge", "condor"}) {
    if (id.starts_with(each)) return std::string(each);
  }
  return facts.failure->excerpt.find("TERM_MEMLIMIT") != std::string::npos ? "lsf" : "";
}

// Loops of evaluation that Lightning and transformers run without gradients.
bool frameworks_evaluate(const TextFacts& facts) {
  if (facts.failure == nullptr) return false;
  if (frames_are_of(facts, {"loops/evaluation_loop.py", "loops/prediction_loop.py"})) return true;
  const auto runs = [&](std::initializer_list<std::string_view> functions, std::string_view file) {
    const std::vector<TextFrame>& frames = facts.failure->frames;
    return std::any_of(frames.begin(), frames.end(), [&](const TextFrame& frame) {
      return frame.file.find(file) != std::string::npos &&
             std::find(functions.begin(), functions.end(), frame.function) != functions.end();
    });
  };
  if (runs({"evaluation_loop", "evaluate", "prediction_step", "nested_concat"}, "transformers/")) return true;
  return facts.around.framework == "lightning" && runs({"validation_step", "test_step", "predict_step"}, "");
}

// What the text shows, and what the failure's own frames go through.
std::set<std::string, std::less<>> measures_in_force(const TextFacts& facts) {
  std::set<std::string, std::less<>> in_force = facts.around.in_force;
  if (frames_name(facts, {"torch.no_grad()", "inference_mode()", "decorate_context"}) || frameworks_evaluate(facts)) {
    in_force.insert("no-grad");
    in_force.insert("inference-mode");
  }
  // A huge request within it shows that no fused kernel ran.
  const bool is_fused =
      facts.failure != nullptr && facts.failure->family == Family::allocator && !is_oversized_request(facts) &&
      frames_name(facts, {"scaled_dot_product_attention", "flash_attn", "memory_efficient_attention"});
  if (is_fused) in_force.insert("fused-attention");
  const bool has_one_sample = facts.around.batch_size == 1;
  if (has_one_sample) in_force.insert({"smaller-batch", "gradient-accumulation"});
  if (facts.around.num_workers == 0) in_force.insert({"fewer-workers", "less-prefetch", "larger-shm"});
  return in_force;
}

// What the text sets, what its tables list, and what the message itself names.
LimitsInForce limits_in_force(const TextFacts& facts) {
  LimitsInForce limits = facts.around.limits;
  merge_limits({.memory_bytes = whole_bytes(facts.around.job_limit_bytes),
                .shm_bytes = whole_bytes(facts.around.shm_total_bytes)},
               limits);
  // What the container was given counts for nothing there.
  if (limits.is_host_shm) limits.shm_bytes = whole_bytes(facts.around.shm_total_bytes);
  if (facts.kind == Kind::cgroup_or_slurm_limit) merge_limits({.memory_bytes = facts.card.limit}, limits);
  return limits;
}

// As the launcher's arguments say, else as many as the logs of one node show.
std::optional<int> ranks_on_host(const TextFacts& facts) {
  if (facts.around.ranks_on_host) return facts.around.ranks_on_host;
  std::map<std::optional<int>, std::set<int>> ranks_of_node;
  for (const RankFailure& each : facts.ranks) {
    if (each.rank) ranks_of_node[each.node].insert(*each.rank);
  }
  size_t most = 0;
  for (const auto& [node, ranks] : ranks_of_node) most = std::max(most, ranks.size());
  return most < 2 ? std::nullopt : std::optional<int>(static_cast<int>(most));
}

std::string size_text(double bytes) { return format_bytes(static_cast<int64_t>(bytes)); }

void add_evidence(Phrase text, double bytes, Finding& finding) {
  finding.evidence.push_back(FindingEvidence{.text = std::move(text),
                                             .event = std::nullopt,
                                             .site = {},
                                             .bytes = static_cast<int64_t>(bytes),
                                             .log_line = std::nullopt});
}

// Of the other cards that a listing shows the one with most room, if it has half of its memory free. A message counts
// among the visible cards, a listing all of them.
std::optional<int> emptiest_card(const TextFacts& facts) {
  const std::optional<int> failed = facts.failure == nullptr ? std::nullopt : facts.failure->gpu;
  const ListedGpu* best = nullptr;
  const auto room = [](const ListedGpu& gpu) { return gpu.total_bytes - gpu.used_bytes; };
  for (const ListedGpu& gpu : facts.around.gpus) {
    const bool is_failed = facts.around.limits.visible_cards.empty() && failed.value_or(0) == gpu.index;
    if (is_failed || room(gpu) < gpu.total_bytes / 2) continue;
    if (best == nullptr || room(gpu) > room(*best)) best = &gpu;
  }
  return best == nullptr ? std::nullopt : std::optional<int>(best->index);
}

}  // namespace

Finding log_finding(const TextFacts& facts, std::string id, std::vector<PhraseValue> values) {
  Finding finding;
  finding.claim = Phrase{.key = "log." + id + ".claim", .values = values};
  finding.because = Phrase{.key = "log." + id + ".because", .values = values};
  finding.surer = Phrase{.key = "log." + id + ".surer", .values = std::move(values)};
  finding.id = std::move(id);
  finding.confidence = facts.confidence;
  finding.instant = {.phase = facts.phase, .event = std::nullopt, .step = facts.step, .failed = true};
  if (facts.failure != nullptr) {
    finding.bytes = facts.card.tried;
    FindingEvidence message{.text = Phrase{.key = "log.message"}.with("text", facts.failure->excerpt),
                            .event = std::nullopt,
                            .site = {},
                            .bytes = facts.card.tried,
                            .log_line = facts.failure->line};
    finding.evidence.push_back(std::move(message));
  }
  // Popular advice that the figures speak against.
  const auto refutes = [&](bool holds, const char* claim) {
    if (holds) finding.claims.emplace_back(claim);
  };
  const CardFigures& card = facts.card;
  const bool slack_is_too_small = card.tried && card.unused && *card.unused<*card.tried&& * card.unused> 0;
  // Where the cache is too little to speak of nobody would call it "much larger".
  const bool slack_is_notable = slack_is_too_small && *card.unused >= card.allocated.value_or(0) / 20;
  refutes(slack_is_notable && facts.failure != nullptr && !facts.failure->hint.empty(), "reserved-is-fragmentation");
  refutes(card.has(Contradiction::free_covers_request) || listing_is_later(facts), "smi-shows-free");
  refutes(card.has(Contradiction::reserved_below_allocated), "allocated-above-reserved");
  const bool names_max_split = facts.failure != nullptr && facts.failure->hint == "max_split_size_mb";
  refutes(names_max_split && facts.kind == Kind::gpu_oom_fragmentation, "max-split-cures");
  refutes(facts.phase == Phase::evaluation && facts.card.total.has_value(), "eval-saves-memory");
  return finding;
}

void add_listed_card(const TextFacts& facts, Finding& finding) {
  constexpr size_t kMostProcesses = 3;
  const ListedGpu* card = listed_card(facts);
  if (card == nullptr) return;
  add_evidence(Phrase{.key = "log.listed-card"}
                   .with("gpu", std::to_string(card->index))
                   .with("used", size_text(card->used_bytes))
                   .with("total", size_text(card->total_bytes)),
               card->used_bytes, finding);
  if (is_slice(facts)) {
    const auto slice = static_cast<double>(*facts.card.total);
    add_evidence(Phrase{.key = "log.listed-slice"}.with("slice", size_text(slice)), slice, finding);
  }
  std::vector<ListedProcess> processes;
  std::copy_if(facts.around.gpu_processes.begin(), facts.around.gpu_processes.end(), std::back_inserter(processes),
               [&](const ListedProcess& process) { return process.gpu == card->index; });
  std::stable_sort(processes.begin(), processes.end(),
                   [](const ListedProcess& a, const ListedProcess& b) { return a.used_bytes > b.used_bytes; });
  for (size_t i = 0; i < std::min(processes.size(), kMostProcesses); ++i) {
    add_evidence(Phrase{.key = "log.listed-process"}
                     .with("pid", std::to_string(processes[i].pid))
                     .with("name", processes[i].name)
                     .with("used", size_text(processes[i].used_bytes)),
                 processes[i].used_bytes, finding);
  }
}

void add_listed_host(const TextFacts& facts, Finding& finding) {
  const Surroundings& around = facts.around;
  if (!around.host_total_bytes) return;
  Phrase text = around.host_available_bytes
                    ? Phrase{.key = "log.listed-host"}.with("available", size_text(*around.host_available_bytes))
                    : Phrase{.key = "log.listed-host-total"};
  add_evidence(std::move(text).with("total", size_text(*around.host_total_bytes)), *around.host_total_bytes, finding);
}

void add_kernel_table(const TextFacts& facts, Finding& finding) {
  constexpr size_t kMostPrograms = 3;
  struct Program {
    std::string_view name;
    int64_t processes = 0;
    double bytes = 0;
  };
  std::map<std::string_view, Program> by_name;
  for (const HostProcess& process : facts.around.host_processes) {
    Program& program = by_name[process.name];
    program.name = process.name;
    ++program.processes;
    program.bytes += process.rss_bytes;
  }
  std::vector<Program> programs;
  for (const auto& [name, program] : by_name) programs.push_back(program);
  std::stable_sort(programs.begin(), programs.end(),
                   [](const Program& a, const Program& b) { return a.bytes > b.bytes; });
  programs.resize(std::min(programs.size(), kMostPrograms));
  for (const Program& program : programs) {
    if (program.bytes == 0 || program.bytes < programs.front().bytes / 10) break;
    add_evidence(Phrase{.key = "log.kernel-table"}
                     .with("name", std::string(program.name))
                     .with("count", std::to_string(program.processes))
                     .with("bytes", size_text(program.bytes)),
                 program.bytes, finding);
  }
}

void add_listed_shm(const TextFacts& facts, Finding& finding) {
  const Surroundings& around = facts.around;
  if (!around.shm_total_bytes) return;
  add_evidence(Phrase{.key = "log.listed-shm"}
                   .with("used", size_text(around.shm_used_bytes.value_or(0)))
                   .with("total", size_text(*around.shm_total_bytes)),
               *around.shm_total_bytes, finding);
}

PhraseValue size_value(std::string name, const std::optional<int64_t>& bytes) {
  return {.name = std::move(name), .text = bytes ? format_bytes(*bytes) : "?", .phrases = {}};
}

std::vector<PhraseValue> victim_values(const TextFacts& facts) {
  const std::optional<double>& limit = facts.numbers[Figure::limit];
  Phrase victim{.key = "text.victim-unnamed"};
  Phrase held;
  if (facts.victim != nullptr) {
    const TextMessage& ended = *facts.victim;
    victim = Phrase{.key = "text.victim"}.with("what", ended.what).with("pid", std::to_string(ended.pid.value_or(0)));
    const double shared = ended.figures[Figure::shmem_rss].value_or(0);
    if (const std::optional<double>& rss = ended.figures[Figure::anon_rss])
      held = Phrase{.key = shared > *rss / 100 ? "text.victim-held-shared" : "text.victim-held"}
                 .with("bytes", size_text(*rss))
                 .with("shared", size_text(shared));
  }
  Phrase of_limit;
  if (limit) of_limit = Phrase{.key = "text.limit-is"}.with("bytes", format_bytes(static_cast<int64_t>(*limit)));
  PhraseValue cgroup{.name = "cgroup", .text = facts.cgroup, .phrases = {}};
  if (facts.cgroup.empty()) cgroup.phrases.push_back(Phrase{.key = "text.a-cgroup"});
  return {{.name = "victim", .text = "", .phrases = {std::move(victim)}},
          {.name = "held", .text = "", .phrases = {std::move(held)}},
          {.name = "limit", .text = "", .phrases = {std::move(of_limit)}},
          std::move(cgroup)};
}

Circumstances circumstances_of(const TextFacts& facts) {
  Circumstances known;
  known.kind = facts.kind;
  known.phase = facts.phase;
  known.torch_version = facts.around.torch_version;
  // The host's messages have been the same for years.
  if (known.torch_version.empty() && facts.failure != nullptr && facts.failure->family != Family::host_alloc)
    known.torch_version = oldest_release(facts.failure->vintage);
  if (facts.around.expandable_segments) known.expandable_segments = true;
  known.compute_capability = compute_capability_of(facts);
  known.framework = facts.around.framework;
  known.num_workers = facts.around.num_workers;
  known.prefetch_factor = facts.around.prefetch_factor;
  known.batch_size = facts.around.batch_size;
  known.pin_memory = facts.around.pin_memory;
  known.ranks_on_host = ranks_on_host(facts);
  known.figures.host_batch = host_batch(facts);
  known.is_notebook = facts.around.is_notebook;
  known.is_container = facts.around.is_container;
  known.is_slurm = facts.around.is_slurm;
  known.is_evicted = facts.failure != nullptr && facts.failure->id == "pod.evicted";
  known.only_some_nodes = facts.only_some_nodes;
  known.scheduler = scheduler_of(facts);
  known.is_rocm = facts.around.is_rocm || (facts.failure != nullptr && facts.failure->backend == "HIP") ||
                  known.torch_version.find("rocm") != std::string::npos;
  if (facts.failure != nullptr && facts.failure->id.starts_with("vllm.")) known.framework = "vllm";
  if (program_beside_torch(facts) == "llama.cpp") known.framework = "llama.cpp";
  if (facts.failure != nullptr && facts.failure->id == "runtime.heap")
    known.framework = facts.failure->excerpt.find("JavaScript") == std::string::npos ? "java" : "node";
  known.in_force = measures_in_force(facts);
  known.is_cmd = facts.around.is_cmd;
  known.is_image_build = facts.around.is_image_build;
  known.is_windows = facts.around.is_windows || facts.around.is_cmd || facts.kind == Kind::windows_commit_limit;
  known.figures.host_limit = facts.kind == Kind::cgroup_or_slurm_limit ? facts.card.limit : std::nullopt;
  known.has_momentum_alone = facts.around.has_sgd;
  known.limits = limits_in_force(facts);
  if (facts.failure != nullptr) known.failing_card = facts.failure->gpu;
  known.emptiest_card = emptiest_card(facts);
  if (facts.around.host_total_bytes && !known.figures.host_limit)
    known.figures.host_limit = static_cast<int64_t>(*facts.around.host_total_bytes);
  return known;
}

void add_changes(const TextFacts& facts, std::initializer_list<std::string_view> remedies, Finding& finding) {
  for (std::string_view remedy : remedies) {
    const bool is_new = std::none_of(finding.changes.begin(), finding.changes.end(),
                                     [&](const Change& change) { return change.remedy == remedy; });
    const Remedy* found = find_remedy(remedy);
    const Circumstances known = circumstances_of(facts);
    if (is_new && found != nullptr && is_open(*found, known)) finding.changes.push_back(change_of(*found, known));
  }
}

std::vector<std::string_view> remedies_of_phase(const TextFacts& facts) {
  const Ids of_phase = remedies_of_phase(facts.phase);
  std::vector<std::string_view> list(of_phase.begin(), of_phase.end());
  const bool in_attention = frames_name(facts, {"scaled_dot_product_attention", "attention", "attn", "softmax"});
  if (in_attention) list.insert(list.begin() + std::min<size_t>(1, list.size()), "fused-attention");
  if (frames_name(facts, {"cross_entropy", "lm_head"}) && facts.phase != Phase::loss)
    list.insert(list.begin() + std::min<size_t>(1, list.size()), "chunked-loss");
  if (frames_are_of(facts, {"nn/parallel/replicate.py", "nn/parallel/comm.py", "nn/parallel/data_parallel.py"}))
    list.insert(list.begin() + std::min<size_t>(1, list.size()), "distributed-data-parallel");
  if (facts.phase == Phase::evaluation && frames_name(facts, {"nested_concat", "gather_for_metrics"}))
    list.insert(list.begin(), "results-to-cpu");
  if (frames_name(facts, {"deepcopy("})) list.insert(list.begin(), "copy-on-cpu");
  if (frames_are_of(facts, {"nn/parallel/distributed.py"}))
    list.insert(list.begin() + std::min<size_t>(1, list.size()), "bucket-view");
  return list;
}

std::string_view program_beside_torch(const TextFacts& facts) {
  if (facts.failure == nullptr) return {};
  const std::string_view id = facts.failure->id;
  const bool is_bare = facts.failure->family == Family::bare_gpu && facts.failure->frames.empty();
  if (id.starts_with("ggml.") || (is_bare && facts.around.framework == "llama.cpp")) return "llama.cpp";
  if (id.starts_with("tensorrt.")) return "TensorRT";
  if (id.starts_with("faiss.")) return "faiss";
  return {};
}

bool is_oversized_request(const TextFacts& facts) {
  if (!program_beside_torch(facts).empty()) return false;  // their buffers hold a model
  constexpr int64_t kOversized = 30 * kGiB;                // where no total is printed: no tensor of a usual step
  const std::optional<int64_t>& tried = facts.card.tried;
  if (!tried) return false;
  const int64_t total = facts.card.total.value_or(0);  // a total of nothing is an impossible figure, and says nothing
  return total > 0 ? *tried >= total / 10 * 9 : *tried >= kOversized;
}

bool failed_as(const CaseFacts& facts, Kind kind) {
  return facts.text != nullptr && facts.text->failure != nullptr && facts.text->kind == kind;
}

}  // namespace oomscope
