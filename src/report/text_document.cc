#include "report/text_document.h"

#include <algorithm>
#include <cmath>

#include "base/bytes_text.h"
#include "base/text.h"
#include "report/findings_document.h"
#include "report/proof_lines.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kChangesShown = 4;
constexpr size_t kRanksShown = 16;

// The head of a long message: its figures stand in the balance.
std::string shortened(const std::string& excerpt) {
  constexpr size_t kMost = 160;
  if (excerpt.size() <= kMost) return excerpt;
  return excerpt.substr(0, excerpt.find_last_of(' ', kMost)) + " ...";
}

std::string who_text(const TextFacts& facts, const RankFailure& failure, Language language) {
  if (failure.rank) return say(Phrase{.key = "text.rank"}.with("rank", std::to_string(*failure.rank)), language);
  return say(facts.logs[failure.log]->name, language);
}

// Who was ended, how much it held and which limit it was, as far as the lines of the host tell.
Phrase host_figures(const TextFacts& facts) {
  if (facts.kind != Kind::cgroup_or_slurm_limit && facts.kind != Kind::host_oom_killed) return {};
  const auto text = [](const std::optional<double>& bytes) { return format_bytes(static_cast<int64_t>(*bytes)); };
  std::vector<Phrase> parts;
  if (facts.numbers[Figure::limit])
    parts.push_back(Phrase{.key = "text.figure-limit"}.with("bytes", text(facts.numbers[Figure::limit])));
  if (facts.numbers[Figure::used] && !facts.numbers[Figure::total])
    parts.push_back(Phrase{.key = "text.figure-used"}.with("bytes", text(facts.numbers[Figure::used])));
  if (facts.numbers[Figure::used] && facts.numbers[Figure::total]) {
    parts.push_back(Phrase{.key = "text.figure-host"}
                        .with("used", text(facts.numbers[Figure::used]))
                        .with("total", text(facts.numbers[Figure::total])));
  }
  if (facts.victim != nullptr && facts.victim->figures[Figure::anon_rss]) {
    parts.push_back(Phrase{.key = "text.figure-victim"}
                        .with("what", facts.victim->what)
                        .with("pid", std::to_string(facts.victim->pid.value_or(0)))
                        .with("bytes", text(*facts.victim->figures[Figure::anon_rss] +
                                            facts.victim->figures[Figure::shmem_rss].value_or(0))));
  }
  if (parts.empty()) return {};
  return Phrase{.key = "text.figures"}.with("parts", std::move(parts));
}

// A kill that no line explains is not called one for lack of memory.
std::string kind_key(const TextFacts& facts) {
  const bool is_unexplained = facts.kind == Kind::host_oom_killed && facts.confidence == Confidence::low;
  if (facts.failure != nullptr && facts.failure->id == "ended.interrupt-mark") return "text.is-interrupted";
  if (facts.failure != nullptr && facts.failure->id == "tcmalloc.large") return "text.is-large";
  const bool by_launcher = facts.failure != nullptr && facts.failure->id.starts_with("launcher.");
  if (by_launcher && facts.kind == Kind::not_memory) return "text.is-ended";
  if (!is_unexplained) return "text.is-" + std::string(name_of(facts.kind));
  return names_no_signal(*facts.failure) ? "text.is-vanished" : "text.is-killed";
}

Phrase headline(const TextFacts& facts) {
  Phrase where;
  Phrase phase;
  if (facts.failure != nullptr && facts.failure->gpu)
    where = Phrase{.key = "text.on-gpu"}.with("gpu", std::to_string(*facts.failure->gpu));
  if (facts.phase != Phase::unknown)
    phase = Phrase{.key = facts.is_first ? "text.during-first" : "text.during"}.with(
        "phase", Phrase{.key = "instant." + std::string(name_of(facts.phase))});
  return Phrase{.key = "text.headline"}
      .with("what", Phrase{.key = kind_key(facts)})
      .with("where", std::move(where))
      .with("phase", std::move(phase))
      .with("figures", host_figures(facts));
}

Phrase confidence_line(const TextFacts& facts) {
  Phrase also;
  if (facts.failure != nullptr && !facts.also.empty()) {
    std::vector<Phrase> kinds;
    for (Kind kind : facts.also) kinds.push_back(Phrase{.key = "text.kind-" + std::string(name_of(kind))});
    also = Phrase{.key = "text.also"}.with("kinds", std::move(kinds));
  }
  return Phrase{.key = "text.confidence"}
      .with("confidence", Phrase{.key = "confidence." + std::string(name_of(facts.confidence))})
      .with("also", std::move(also));
}

Table balance_table(const TextFacts& facts, Language language) {
  Table table{.title = "",
              .columns = {{.header = ""}, {.header = "", .align = Align::right}, {.header = "", .may_wrap = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  for (const BalanceRow& row : facts.balance) {
    table.rows.push_back(
        Row{.cells = {say(row.name, language), row.bytes ? format_mib(*row.bytes) : "?", say(row.source, language)}});
  }
  const char* sum = is_slice(facts) ? "text.sum-slice" : facts.card.total ? "text.sum" : "text.sum-known";
  table.rows.push_back(
      Row{.cells = {say("text.total", language), format_mib(facts.balance_total_bytes), say(sum, language)},
          .style = Style::bold});
  return table;
}

// The only rank whose kind is not that of all others, of three and more.
std::optional<RankFailure> odd_one_out(const TextFacts& facts) {
  if (facts.ranks.size() < 3) return std::nullopt;
  for (const RankFailure& each : facts.ranks) {
    const auto same = std::count_if(facts.ranks.begin(), facts.ranks.end(),
                                    [&](const RankFailure& other) { return other.kind == each.kind; });
    const RankFailure& other = each.message == facts.ranks[0].message ? facts.ranks[1] : facts.ranks[0];
    const auto others = std::count_if(facts.ranks.begin(), facts.ranks.end(),
                                      [&](const RankFailure& one) { return one.kind == other.kind; });
    if (same == 1 && others + 1 == static_cast<std::ptrdiff_t>(facts.ranks.size())) return each;
  }
  return std::nullopt;
}

// A rank that only lost the others is told apart from those that failed themselves.
std::string rank_kind_key(const TextFacts& facts, const RankFailure& rank) {
  const auto only_waited = [](const RankFailure& each) { return each.message->family == Family::collective; };
  const bool is_consequence = only_waited(rank) && !std::all_of(facts.ranks.begin(), facts.ranks.end(), only_waited);
  return is_consequence ? "text.consequence" : "text.kind-" + std::string(name_of(rank.kind));
}

void add_ranks(const TextFacts& facts, Language language, std::vector<Section>& sections) {
  if (facts.ranks.size() < 2) return;
  const auto strongest = std::max_element(
      facts.ranks.begin(), facts.ranks.end(),
      [](const RankFailure& a, const RankFailure& b) { return a.message->strength < b.message->strength; });
  const RankFailure& first = facts.order_is_known ? facts.ranks.front() : *strongest;
  const char* key = facts.order_is_known ? "text.ranks-first" : "text.ranks-likely";
  sections.push_back(
      Section{.body = Sentence{.text = say(Phrase{.key = key}.with("who", who_text(facts, first, language)), language),
                               .style = Style::bold}});
  Table table{.title = say("text.ranks", language),
              .columns = {{.header = say("text.column-who", language)},
                          {.header = say("text.column-line", language), .align = Align::right},
                          {.header = say("text.column-kind", language)},
                          {.header = say("text.column-message", language), .may_shrink = true}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  for (size_t i = 0; i < std::min(facts.ranks.size(), kRanksShown); ++i) {
    const RankFailure& each = facts.ranks[i];
    table.rows.push_back(Row{.cells = {who_text(facts, each, language), format_count(each.message->line),
                                       say(rank_kind_key(facts, each), language), each.message->excerpt}});
  }
  if (facts.ranks.size() > kRanksShown) {
    const Phrase others =
        Phrase{.key = "balance.others"}.with("count", std::to_string(facts.ranks.size() - kRanksShown));
    table.rows.push_back(Row{.cells = {say(others, language)}, .style = Style::dim});
  }
  sections.push_back(Section{.body = std::move(table), .joined = true});
  if (const std::optional<RankFailure> odd = odd_one_out(facts)) {
    const RankFailure& usual = odd->message == facts.ranks[0].message ? facts.ranks[1] : facts.ranks[0];
    const Phrase differs = Phrase{.key = "text.ranks-differ"}
                               .with("who", who_text(facts, *odd, language))
                               .with("kind", Phrase{.key = rank_kind_key(facts, usual)});
    sections.push_back(Section{.body = Sentence{.text = say(differs, language)}, .joined = true});
  }
}

bool failed_on_gpu(const TextFacts& facts) {
  return facts.failure != nullptr &&
         (facts.failure->family == Family::allocator || facts.failure->family == Family::bare_gpu);
}

void add_smi(const TextFacts& facts, Language language, std::vector<Section>& sections) {
  const bool covers = facts.card.has(Contradiction::free_covers_request) && !facts.card.limit_decides();
  if (!covers && !listing_is_later(facts)) return;
  List list{.title = say("text.smi", language), .entries = {}};
  for (int i = 1; i <= 5; ++i) list.entries.push_back(say("text.smi-" + std::to_string(i), language));
  sections.push_back(Section{.body = std::move(list)});
}

Phrase summary_phrase(const MemorySummary& summary) {
  const auto bytes = [&](std::string_view metric, size_t column) {
    for (const SummaryRow& row : summary.rows) {
      if (row.metric == metric) return format_mib(static_cast<int64_t>(row.values[column]));
    }
    return std::string("?");
  };
  return Phrase{.key = summary.num_ooms > 0 ? "text.summary-failures" : "text.summary-state"}
      .with("count", format_count(summary.num_ooms))
      .with("device", std::to_string(summary.device))
      .with("allocated", bytes("allocated_bytes.all", 0))
      .with("peak", bytes("allocated_bytes.all", 1))
      .with("reserved", bytes("reserved_bytes.all", 0));
}

// Of all that the logs hold.
std::vector<const MemorySummary*> summaries_of(const TextFacts& facts) {
  std::vector<const MemorySummary*> all;
  for (const TextEvidence* log : facts.logs) {
    for (const MemorySummary& summary : log->summaries) all.push_back(&summary);
  }
  return all;
}

void add_summaries(const TextFacts& facts, Language language, std::vector<Section>& sections) {
  for (const MemorySummary* summary : summaries_of(facts)) {
    sections.push_back(Section{.body = Sentence{.text = say(summary_phrase(*summary), language)}, .joined = true});
  }
}

// "1.4-1.9" says itself what it is; "1.0 on" and "2.6 or later" are said.
Phrase vintage_phrase(std::string_view vintage) {
  for (std::string_view later : {" on", " or later"}) {
    const size_t at = vintage.find(later);
    if (at == std::string_view::npos) continue;
    return Phrase{.key = "text.or-later"}
        .with("release", std::string(vintage.substr(0, at)))
        .with("rest", std::string(vintage.substr(at + later.size())));
  }
  return Phrase{.key = std::string(vintage)};
}

// Where the message stands, and of which release it is.
void add_place(const TextFacts& facts, Language language, std::vector<Section>& sections) {
  const Survival* outlived = facts.failure == nullptr ? facts.outlived() : nullptr;
  if (facts.failure == nullptr && outlived == nullptr) return;
  const TextMessage& failure = outlived != nullptr ? *outlived->message : *facts.failure;
  const auto dim = [&](const Phrase& phrase) {
    sections.push_back(Section{.body = Sentence{.text = say(phrase, language), .style = Style::dim}, .joined = true});
  };
  dim(Phrase{.key = "text.place"}
          .with("file", say(facts.logs[outlived != nullptr ? outlived->log : facts.failure_log]->name, language))
          .with("line", format_count(failure.line))
          .with("text", shortened(failure.excerpt)));
  const bool is_torch = failure.family == Family::allocator || failure.family == Family::bare_gpu;
  if (is_torch && !failure.vintage.empty())
    dim(Phrase{.key = "text.wording"}.with("vintage", vintage_phrase(failure.vintage)));
  const char* repeated = facts.is_last ? "text.repeated-last" : "text.repeated";
  if (facts.failures > 1) dim(Phrase{.key = repeated}.with("count", format_count(facts.failures)));
}

Phrase nothing_found(const TextFacts& facts) {
  int64_t lines = 0;
  for (const TextEvidence* log : facts.logs) lines += log->lines;
  return Phrase{.key = "text.nothing-found"}.with("count", format_count(lines));
}

bool is_nothing_found(const TextFacts& facts) { return facts.failure == nullptr && facts.outlived() == nullptr; }

// A negative answer: what was looked for, and what would tell more.
void add_nothing_found(const TextFacts& facts, Language language, std::vector<Section>& sections) {
  sections.push_back(Section{.body = Sentence{.text = say(nothing_found(facts), language), .style = Style::bold}});
  sections.push_back(Section{.body = Sentence{.text = say("text.looked-for", language)}, .joined = true});
  List paste{.title = say("text.paste", language), .entries = {}};
  for (const char* key : {"text.paste-end", "text.paste-kernel", "text.paste-scheduler", "text.paste-snapshot"})
    paste.entries.push_back(say(key, language));
  sections.push_back(Section{.body = std::move(paste)});
}

void add_failure(const TextFacts& facts, Language language, std::vector<Section>& sections) {
  const auto sentence = [&](const Phrase& phrase, Style style = Style::plain) {
    sections.push_back(Section{.body = Sentence{.text = say(phrase, language), .style = style}, .joined = true});
  };
  sentence(headline(facts), Style::bold);
  sentence(confidence_line(facts));
  add_place(facts, language, sections);
  if (!facts.balance.empty()) sections.push_back(Section{.body = balance_table(facts, language)});
}

// The answer in one sentence; where the text holds a summary alone, that of the device whose requests failed, or the
// first.
Phrase sentence_of(const TextFacts& facts) {
  if (!is_nothing_found(facts)) return headline(facts);
  const std::vector<const MemorySummary*> summaries = summaries_of(facts);
  const auto failed = std::find_if(summaries.begin(), summaries.end(),
                                   [](const MemorySummary* summary) { return summary->num_ooms > 0; });
  if (failed != summaries.end()) return summary_phrase(**failed);
  return summaries.empty() ? nothing_found(facts) : summary_phrase(*summaries.front());
}

Json kinds_json(const std::vector<Kind>& kinds) {
  Json list = Json::array();
  for (Kind kind : kinds) {
    const std::string name(name_of(kind));
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  }
  return list;
}

// Whole numbers where they fit; a counter that wrapped around (2^64) does not.
Json bytes_json(double bytes) {
  constexpr double kLargestWhole = 9.2e18;
  if (std::abs(bytes) < kLargestWhole) return static_cast<int64_t>(bytes);
  return bytes;
}

Json numbers_json(const TextFacts& facts) {
  Json numbers = Json::object();
  for (size_t i = 0; i < kFigures; ++i) {
    const std::optional<double>& bytes = facts.numbers.values[i];
    if (bytes) numbers[std::string(name_of(static_cast<Figure>(i)))] = bytes_json(*bytes);
  }
  if (!facts.numbers.other_processes.empty()) {
    numbers["other_processes"] = Json::array();
    for (double each : facts.numbers.other_processes) numbers["other_processes"].push_back(bytes_json(each));
  }
  return numbers;
}

// Rows of memory_summary() under the names of torch.cuda.memory_stats().
Json summaries_json(const TextFacts& facts) {
  Json list = Json::array();
  for (const TextEvidence* log : facts.logs) {
    for (const MemorySummary& summary : log->summaries) {
      Json stats = {{"num_ooms", summary.num_ooms}, {"num_alloc_retries", summary.num_alloc_retries}};
      for (const SummaryRow& row : summary.rows) {
        constexpr std::array<const char*, 4> kColumns = {"current", "peak", "allocated", "freed"};
        for (size_t i = 0; i < kColumns.size(); ++i) stats[row.metric + "." + kColumns[i]] = bytes_json(row.values[i]);
      }
      list.push_back({{"device", summary.device}, {"line", summary.line}, {"stats", std::move(stats)}});
    }
  }
  return list;
}

Json messages_json(const TextFacts& facts) {
  Json list = Json::array();
  constexpr size_t kMost = 100;
  for (size_t log = 0; log < facts.logs.size(); ++log) {
    for (const TextMessage& message : facts.logs[log]->messages) {
      if (list.size() >= kMost) return list;
      list.push_back({{"file", say(facts.logs[log]->name, Language::english)},
                      {"line", message.line},
                      {"template", std::string(message.id)},
                      {"kind", std::string(name_of(message.kind))},
                      {"rank", message.rank ? Json(*message.rank) : Json(nullptr)},
                      {"text", message.excerpt}});
    }
  }
  return list;
}

Json ranks_json(const TextFacts& facts) {
  Json list = Json::array();
  for (const RankFailure& each : facts.ranks) {
    list.push_back({{"rank", each.rank ? Json(*each.rank) : Json(nullptr)},
                    {"file", say(facts.logs[each.log]->name, Language::english)},
                    {"line", each.message->line},
                    {"kind", std::string(name_of(each.kind))}});
  }
  return list;
}

}  // namespace

std::vector<Section> text_sections(const TextFacts& facts, std::span<const Finding> findings, Language language,
                                   Beside beside) {
  std::vector<Section> sections;
  if (beside == Beside::same_failure) {
    add_place(facts, language, sections);
    add_ranks(facts, language, sections);
    if (!facts.caveats.empty()) sections.push_back(Section{.body = caveat_list(facts.caveats, language)});
    return sections;
  }
  if (!is_nothing_found(facts)) {
    add_failure(facts, language, sections);
  } else {
    if (summaries_of(facts).empty()) add_nothing_found(facts, language, sections);
    add_summaries(facts, language, sections);
  }
  for (const Finding& finding : findings) {
    for (Section& section : log_finding_sections(finding, kChangesShown, language))
      sections.push_back(std::move(section));
  }
  add_ranks(facts, language, sections);
  add_smi(facts, language, sections);
  const bool is_recorded = beside == Beside::other_failure && failed_on_gpu(facts);
  if (std::vector<std::string> proof = proof_lines(facts, language); !proof.empty() && !is_recorded) {
    const bool records = contains(proof.back(), "oom.pickle");
    sections.push_back(Section{.body = Lines{.title = say(records ? "text.next-snapshot" : "text.next-time", language),
                                             .lines = std::move(proof),
                                             .style = Style::cyan}});
  }
  if (!facts.caveats.empty()) sections.push_back(Section{.body = caveat_list(facts.caveats, language)});
  return sections;
}

Json text_payload(const TextFacts& facts, std::span<const Finding> findings) {
  Json payload = {{"schema", "oomscope.why-log/1"}, {"files", Json::array()}};
  for (const TextEvidence* log : facts.logs) payload["files"].push_back(say(log->name, Language::english));
  payload["kind"] = std::string(name_of(facts.kind));
  payload["also"] = kinds_json(facts.also);
  payload["confidence"] = std::string(name_of(facts.confidence));
  payload["phase"] = facts.phase == Phase::unknown ? Json(nullptr) : Json(std::string(name_of(facts.phase)));
  payload["step"] = facts.step ? Json(*facts.step) : Json(nullptr);
  payload["sentence"] = say(sentence_of(facts), Language::english);
  payload["numbers"] = numbers_json(facts);
  payload["balance"] = Json::array();
  for (const BalanceRow& row : facts.balance) {
    payload["balance"].push_back({{"name", say(row.name, Language::english)},
                                  {"bytes", row.bytes ? Json(*row.bytes) : Json(nullptr)},
                                  {"source", say(row.source, Language::english)}});
  }
  payload["balance_total"] = facts.balance_total_bytes;
  payload["findings"] = findings_json({findings.begin(), findings.end()});
  payload["next_time"] = proof_lines(facts, Language::english);
  payload["ranks"] = ranks_json(facts);
  payload["messages"] = messages_json(facts);
  payload["summaries"] = summaries_json(facts);
  payload["torch_version"] = facts.around.torch_version.empty() ? Json(nullptr) : Json(facts.around.torch_version);
  payload["caveats"] = caveats_json(facts.caveats);
  return payload;
}

}  // namespace oomscope
