#include "cli/why_combined.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "analysis/rules/ranking.h"
#include "analysis/same_failure.h"
#include "base/bytes_text.h"
#include "cli/load_snapshot.h"
#include "cli/why_ranks.h"
#include "report/text_document.h"

namespace oomscope {
namespace {

// The snapshots that stand beside logs are those of one job, however they are named.
Result<RankFiles> files_beside_logs(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  RankFiles of_folder;
  for (const std::string& path : paths) {
    if (!is_folder(path)) {
      files.push_back(path);
      continue;
    }
    OOM_TRY(of_folder, find_rank_files(path));
    if (paths.size() == 1) return of_folder;
    for (const RankFile& file : of_folder.files) files.push_back(file.path);
  }
  return choose_rank_files(files);
}

std::optional<int64_t> rank_of_failure(const TextFacts& facts) {
  for (const RankFailure& each : facts.ranks) {
    if (each.message == facts.failure && each.rank) return *each.rank;
  }
  return std::nullopt;
}

bool any_request_failed(const Snapshot& snapshot) {
  return std::any_of(snapshot.traces.begin(), snapshot.traces.end(), [](const Trace& trace) {
    return std::find(trace.action.begin(), trace.action.end(), Action::oom) != trace.action.end();
  });
}

// A snapshot is exact about the GPU, a log alone knows of the host and of the other ranks.
class Combined {
 public:
  Combined(const GivenEvidence& given, const WhyArguments& arguments, TextFacts& facts, ExplainWithLog with_log,
           Output& output)
      : given_(given), arguments_(arguments), facts_(facts), explain_with_log_(with_log), output_(output) {}

  Result<Done> explain() {
    OOM_TRY(const SnapshotVerdict verdict, explain_snapshots());
    conclude(verdict);
    return Done{};
  }

 private:
  Result<SnapshotVerdict> explain_snapshots() {
    if (given_.piped) return explain_one("-", *given_.piped);
    OOM_TRY(const RankFiles files, files_beside_logs(given_.snapshots));
    if (files.files.size() > 1) {
      const auto explain_rank = [this](const std::string& path, const WhyArguments& of_rank, Output& output) {
        return explain_rank_with_log(path, of_rank, output);
      };
      return explain_ranks(files, arguments_, explain_rank, output_, [this] { show_log_that_decides(); });
    }
    const std::string& path = files.files.front().path;
    OOM_TRY(const Snapshot snapshot, load_snapshot(path));
    return explain_one(path, snapshot);
  }

  Result<SnapshotVerdict> explain_one(const std::string& path, const Snapshot& snapshot) {
    if (!any_request_failed(snapshot)) show_log_that_decides();
    OOM_TRY(const Kind kind, explain_beside_log(path, snapshot, arguments_, output_));
    return SnapshotVerdict{.kind = kind, .rank = read_rank_name(path).rank};
  }

  // The message's figures are of its own rank.
  Result<Kind> explain_rank_with_log(const std::string& path, const WhyArguments& of_rank, Output& output) {
    OOM_TRY(const Snapshot snapshot, load_snapshot(path));
    const std::optional<int64_t> rank = read_rank_name(path).rank;
    const std::optional<int64_t> failed = rank_of_failure(facts_);
    if (!rank || !failed || rank == failed) return explain_beside_log(path, snapshot, of_rank, output);
    TextFacts none;
    return explain_with_log_(path, snapshot, of_rank, none, output);
  }

  // The message's figures hold for the recording of its own failure alone.
  Result<Kind> explain_beside_log(const std::string& path, const Snapshot& snapshot, const WhyArguments& arguments,
                                  Output& output) {
    const bool is_same = !any_request_failed(snapshot) || may_be_same_failure(facts_, snapshot);
    (is_same ? has_same_failure_ : has_other_failure_) = true;
    TextFacts none;
    return explain_with_log_(path, snapshot, arguments, is_same ? facts_ : none, output);
  }

  // Where nothing failed in the snapshots the log is the answer, and stands first.
  void show_log_that_decides() {
    if (facts_.failure != nullptr) show_log(Beside::other_failure);
  }

  void show_log(Beside beside) {
    if (std::exchange(log_is_shown_, true)) return;
    if (beside == Beside::other_failure) findings_ = find_findings({.run = nullptr, .text = &facts_});
    for (Section& section : text_sections(facts_, findings_, arguments_.language, beside))
      output_.add(std::move(section));
    if (facts_.failure == nullptr && facts_.outlived() == nullptr) output_.set_incomplete();
  }

  void conclude(const SnapshotVerdict& verdict) {
    const Kind kind = verdict.kind.value_or(Kind::no_failure);
    const bool log_decides = log_outweighs_snapshot(facts_, kind);
    const bool kinds_differ = !log_agrees_with_snapshot(facts_, kind) && !log_decides;
    const bool figures_differ = !kinds_differ && has_other_failure_ && !has_same_failure_;
    const bool differs = kinds_differ || figures_differ;
    if (figures_differ) {
      const CardFigures& card = facts_.card;
      facts_.caveats.push_back(Caveat{
          "text-and-snapshot-figures-differ",
          {{"tried", format_bytes(card.tried.value_or(0))}, {"free", card.free ? format_bytes(*card.free) : "?"}},
          CaveatSource::model});
    }
    if (kinds_differ) {
      facts_.caveats.push_back(
          Caveat{"text-and-snapshot-differ",
                 {{"log", std::string(name_of(facts_.kind))}, {"snapshot", std::string(name_of(kind))}},
                 CaveatSource::model});
    }
    if (differs) output_.add_sentence(say("text.another-failure", arguments_.language), Style::bold);
    const std::optional<int64_t> failed = rank_of_failure(facts_);
    const bool of_other_rank = kind != Kind::no_failure && failed && verdict.rank && *failed != *verdict.rank;
    if (of_other_rank) {
      facts_.caveats.push_back(Caveat{"text-and-snapshot-ranks-differ",
                                      {{"log", std::to_string(*failed)}, {"snapshot", std::to_string(*verdict.rank)}},
                                      CaveatSource::model});
    }
    const bool is_settled = kind != Kind::no_failure && !differs && !of_other_rank;
    show_log(is_settled ? Beside::same_failure : Beside::other_failure);
    merge_payloads(log_decides, differs, is_settled);
  }

  void merge_payloads(bool log_decides, bool differs, bool is_settled) {
    nlohmann::ordered_json& payload = output_.payload();
    nlohmann::ordered_json log = text_payload(facts_, findings_);
    if (log_decides) {
      payload["kind"] = log["kind"];
      payload["confidence"] = log["confidence"];
      payload["sentence"] = log["sentence"];
    } else if (differs && log["kind"] != payload["kind"]) {
      payload["also"].push_back(log["kind"]);
    }
    // Of another failure's phase and open kinds the log's own object tells.
    const bool lacks_phase = is_settled && (!payload.contains("phase") || payload["phase"].is_null());
    if (log_decides || (lacks_phase && !log["phase"].is_null())) payload["phase"] = log["phase"];
    if (log_decides) payload["also"] = log["also"];
    // What decides stands first.
    nlohmann::ordered_json& findings = payload["findings"];
    findings.insert(log_decides ? findings.begin() : findings.end(), log["findings"].begin(), log["findings"].end());
    payload["caveats"].insert(payload["caveats"].end(), log["caveats"].begin(), log["caveats"].end());
    payload["log"] = std::move(log);
  }

  const GivenEvidence& given_;
  const WhyArguments& arguments_;
  TextFacts& facts_;
  ExplainWithLog explain_with_log_;
  Output& output_;
  std::vector<Finding> findings_;  // of the log, where it does not tell of the snapshot's failure
  bool log_is_shown_ = false;
  bool has_same_failure_ = false;  // in a snapshot, as far as its figures tell
  bool has_other_failure_ = false;
};

}  // namespace

Result<Done> explain_combined(const GivenEvidence& given, const WhyArguments& arguments, TextFacts& facts,
                              ExplainWithLog explain, Output& output) {
  return Combined(given, arguments, facts, explain, output).explain();
}

}  // namespace oomscope
