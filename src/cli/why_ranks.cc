#include "cli/why_ranks.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "cli/load_snapshot.h"
#include "cli/why.h"
#include "cli/why_evidence.h"
#include "replay/parallel.h"
#include "report/ranks_document.h"

namespace oomscope {
namespace {

constexpr int kMostThreads = 4;                             // files in memory at a time,
constexpr uintmax_t kLargeFileBytes = uintmax_t{16} << 20;  // and one only where a file is this large: packed ones
                                                            // unpack to a good ten times as much

// `name` tells the file from the others, where no number does.
Rank named_rank(const RankFile& file, const std::string& name) {
  return {.label = file.rank ? file.job : name,
          .path = file.path,
          .node = file.node,
          .rank = file.rank,
          .says_rank = file.says_rank,
          .error = std::nullopt,
          .facts = {}};
}

// One rank a device that the file tells of.
Result<std::vector<Rank>> look_at_file(const RankFile& file, const std::string& name, const WhyArguments& arguments,
                                       const std::optional<RuleSet>& rules) {
  OOM_TRY(const Snapshot snapshot, load_snapshot(file.path));
  OOM_TRY(const std::vector<int32_t> devices, choose_devices(snapshot, arguments.device));
  std::vector<Rank> ranks;
  for (int32_t device : devices) {
    const std::unique_ptr<Verification> verification =
        verify(snapshot, device, {.limit_bytes = std::nullopt, .rules = rules});
    ranks.push_back(named_rank(file, name));
    ranks.back().facts = look_at_rank(*verification);
  }
  return ranks;
}

int threads_for(const std::vector<RankFile>& files) {
  const bool any_large = std::any_of(files.begin(), files.end(), [](const RankFile& file) {
    std::error_code error;
    const uintmax_t size = std::filesystem::file_size(file.path, error);
    return !error && size >= kLargeFileBytes;
  });
  return any_large ? 1 : std::min(thread_count(), kMostThreads);
}

std::vector<Rank> look_at_files(const std::vector<RankFile>& files, const WhyArguments& arguments,
                                const std::optional<RuleSet>& rules, Progress& progress) {
  std::vector<std::string> paths;
  for (const RankFile& file : files) paths.push_back(file.path);
  const std::vector<std::string> names = distinct_names(paths);
  std::vector<std::vector<Rank>> by_file(files.size());
  run_parallel(
      files.size(), threads_for(files),
      [&](size_t i) {
        Result<std::vector<Rank>> ranks = look_at_file(files[i], names[i], arguments, rules);
        if (ranks) {
          by_file[i] = *std::move(ranks);
        } else {
          by_file[i] = {named_rank(files[i], names[i])};
          by_file[i].front().error = ranks.error();
        }
      },
      [&](size_t done, size_t total) {
        progress.update(say("progress.ranks", arguments.language), static_cast<int64_t>(done),
                        static_cast<int64_t>(total));
      });
  std::vector<Rank> ranks;
  for (std::vector<Rank>& of_file : by_file) {
    ranks.insert(ranks.end(), std::make_move_iterator(of_file.begin()), std::make_move_iterator(of_file.end()));
  }
  return ranks;
}

void add_rank_caveats(RanksReport& report) {
  std::vector<UnreadFile> unread;
  bool inexact = false;
  bool any_node = false;
  for (const Rank& rank : report.ranks) {
    any_node |= rank.node.value_or(0) > 0;
    if (!rank.error) {
      inexact |= !rank.facts.exact;
      continue;
    }
    unread.push_back({rank.path, *rank.error});
  }
  add_unread(unread, report.caveats);
  if (inexact) {
    report.caveats.push_back(Caveat{.code = "ranks-not-exact", .values = {}, .source = CaveatSource::model});
  }
  if (any_node && report.comparison.failed > 1) {
    report.caveats.push_back(Caveat{.code = "clocks-of-nodes", .values = {}, .source = CaveatSource::recording});
  }
}

// Snapshots that one process left are no ranks.
Caveats leave_repeats_aside(std::vector<Rank>& ranks) {
  const std::vector<Rank> repeats = take_out_repeats(ranks);
  std::set<std::string> paths;  // one file may tell of several devices
  for (const Rank& repeat : repeats) paths.insert(repeat.path);
  if (paths.empty()) return {};
  return {Caveat{.code = "snapshots-of-one-process",
                 .values = {{"count", std::to_string(paths.size())}, {"example", *paths.begin()}},
                 .source = CaveatSource::recording}};
}

bool is_one_file(const std::vector<Rank>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [&](const Rank& rank) { return rank.path == ranks.front().path; });
}

// What is left is one process's, and there is nothing to compare.
Result<SnapshotVerdict> explain_only(const Rank& rank, const Caveats& caveats, const WhyArguments& arguments,
                                     const ExplainOne& explain, Output& output) {
  OOM_TRY(const Kind kind, explain(rank.path, arguments, output));
  for (const Caveat& caveat : caveats) output.add_sentence(caveat_text(caveat, arguments.language));
  for (const nlohmann::ordered_json& caveat : caveats_json(caveats)) output.payload()["caveats"].push_back(caveat);
  return SnapshotVerdict{.kind = kind, .rank = std::nullopt};
}

}  // namespace

Result<SnapshotVerdict> explain_ranks(const RankFiles& files, const WhyArguments& arguments, const ExplainOne& explain,
                                      Output& output, const std::function<void()>& none_failed) {
  OOM_TRY(const std::optional<RuleSet> rules, choose_rules(arguments.rules));
  RanksReport report{.ranks = look_at_files(files.files, arguments, rules, output.progress()),
                     .comparison = {},
                     .caveats = files.caveats};
  const Caveats repeats = leave_repeats_aside(report.ranks);
  add_caveats(repeats, report.caveats);
  const bool nothing_to_compare = !repeats.empty() && is_one_file(report.ranks) && !report.ranks.front().error;
  if (nothing_to_compare) return explain_only(report.ranks.front(), report.caveats, arguments, explain, output);
  report.comparison = compare_ranks(report.ranks);
  if (!report.comparison.chosen) return *report.ranks.front().error;
  if (report.comparison.failed == 0 && none_failed) none_failed();
  add_rank_caveats(report);
  for (Section& section : ranks_sections(report, arguments.language)) output.add(std::move(section));
  if (arguments.listener != nullptr) arguments.listener->compared(report);
  const Rank& chosen = report.ranks[*report.comparison.chosen];
  WhyArguments alone = arguments;
  alone.device = chosen.facts.device;
  OOM_TRY(const Kind kind, explain(chosen.path, alone, output));
  output.payload() = ranks_payload(report, std::move(output.payload()));
  if (report.comparison.unreadable > 0) output.set_incomplete();
  return SnapshotVerdict{.kind = kind, .rank = chosen.facts.failed ? chosen.rank : std::nullopt};
}

}  // namespace oomscope
