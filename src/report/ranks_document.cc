#include "report/ranks_document.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostRows = 16;
constexpr size_t kMostOutliers = 3;
constexpr size_t kMostSites = 6;

using Time = std::chrono::sys_time<std::chrono::microseconds>;

// "12:03:04.123".
std::string clock_text(int64_t time_us) {
  const Time time{std::chrono::microseconds(time_us)};
  const std::chrono::hh_mm_ss clock{
      std::chrono::floor<std::chrono::milliseconds>(time - std::chrono::floor<std::chrono::days>(time))};
  return fmt::format("{:02}:{:02}:{:02}.{:03}", clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

// "2026-11-28 12:03:04.123 UTC".
std::string time_text(int64_t time_us) {
  const std::chrono::year_month_day date{
      std::chrono::floor<std::chrono::days>(Time{std::chrono::microseconds(time_us)})};
  return fmt::format("{}-{:02}-{:02} {} UTC", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), clock_text(time_us));
}

Section sentence(std::string text, bool is_joined, Style style = Style::plain) {
  return Section{.body = Sentence{.text = std::move(text), .style = style}, .joined = is_joined};
}

class RanksWriter {
 public:
  RanksWriter(const RanksReport& report, Language language)
      : report_(report), ranks_(report.ranks), comparison_(report.comparison), language_(language) {}

  std::vector<Section> run() {
    std::vector<Section> sections;
    sections.push_back(sentence(verdict(), false, Style::bold));
    if (!comparison_.unrelated) {
      for (std::string& text : outlier_texts()) sections.push_back(sentence(std::move(text), true));
      sections.push_back(Section{.body = groups_table(), .joined = false});
    }
    sections.push_back(Section{.body = ranks_table(), .joined = false});
    for (size_t i = 0; i < comparison_.outliers.size() && i < kMostOutliers; ++i) {
      sections.push_back(Section{.body = sites_table(comparison_.outliers[i]), .joined = false});
    }
    if (!report_.caveats.empty()) {
      sections.push_back(Section{.body = caveat_list(report_.caveats, language_), .joined = false});
    }
    if (comparison_.chosen) {
      const std::string explained = words(Phrase{.key = "ranks.explained", .values = {}}
                                              .with("name", label(*comparison_.chosen))
                                              .with("path", ranks_[*comparison_.chosen].path));
      sections.push_back(sentence(explained, false, Style::cyan));
    }
    return sections;
  }

  [[nodiscard]] std::string verdict() const {
    Phrase phrase;
    phrase.values.push_back(
        {.name = "ranks", .text = format_count(static_cast<int64_t>(ranks_.size())), .phrases = {}});
    phrase.values.push_back({.name = "failed", .text = format_count(comparison_.failed), .phrases = {}});
    if (!comparison_.chosen) {
      phrase.key = "ranks.verdict.none-readable";
      return words(phrase);
    }
    const RankFacts& facts = ranks_[*comparison_.chosen].facts;
    phrase.values.push_back({.name = "name", .text = label(*comparison_.chosen), .phrases = {}});
    phrase.values.push_back({.name = "site", .text = site_name(facts.failed_site), .phrases = {}});
    phrase.values.push_back({.name = "time", .text = time_text(facts.failed_at_us), .phrases = {}});
    const int64_t bytes = comparison_.failed > 0 ? facts.request_bytes : facts.peak_allocated_bytes;
    phrase.values.push_back({.name = "bytes", .text = format_bytes(bytes), .phrases = {}});
    if (comparison_.unrelated) {
      phrase.key = "ranks.verdict.unrelated";
      return words(phrase);
    }
    const int64_t readable = static_cast<int64_t>(ranks_.size()) - comparison_.unreadable;
    phrase.values.push_back({.name = "readable", .text = format_count(readable), .phrases = {}});
    const bool some_unread = comparison_.unreadable > 0;
    phrase.key = comparison_.failed == 0
                     ? (some_unread ? "ranks.verdict.none-failed-of-readable" : "ranks.verdict.none-failed")
                 : comparison_.failed == 1   ? "ranks.verdict.one-failed"
                 : comparison_.first_failure ? "ranks.verdict.first-failed"
                                             : "ranks.verdict.first-unknown";
    return words(phrase);
  }

 private:
  [[nodiscard]] std::string words(const Phrase& phrase) const { return say(phrase, language_); }
  [[nodiscard]] std::string words(const char* key) const { return say(key, language_); }

  [[nodiscard]] std::string label(size_t rank) const {
    const auto same_file = [&](const Rank& other) { return other.path == ranks_[rank].path; };
    return rank_label(ranks_[rank], std::count_if(ranks_.begin(), ranks_.end(), same_file) > 1, language_);
  }

  [[nodiscard]] std::string site_name(const std::string& site) const {
    return site.empty() ? words("ranks.site.unknown") : site;
  }

  [[nodiscard]] std::vector<std::string> outlier_texts() const {
    std::vector<std::string> texts;
    if (const std::optional<size_t> low = failed_below_others()) {
      const size_t typical = comparison_.groups[*comparison_.group_of[*low]].typical;
      texts.push_back(words(Phrase{.key = "ranks.failed-below", .values = {}}
                                .with("reserved", format_bytes(ranks_[*low].facts.peak_reserved_bytes))
                                .with("typical", label(typical))
                                .with("typical_reserved", format_bytes(ranks_[typical].facts.peak_reserved_bytes))));
    }
    for (size_t i = 0; i < comparison_.outliers.size() && i < kMostOutliers; ++i) {
      const Outlier& outlier = comparison_.outliers[i];
      const SiteDifference most = outlier.sites.empty() ? SiteDifference{} : outlier.sites.front();
      const char* key = outlier.bytes > 0 ? "ranks.outlier.above" : "ranks.outlier.below";
      texts.push_back(words(Phrase{.key = key, .values = {}}
                                .with("name", label(outlier.rank))
                                .with("typical", label(outlier.typical))
                                .with("bytes", format_bytes(std::abs(outlier.bytes)))
                                .with("site", site_name(most.site))
                                .with("site_bytes", format_bytes_signed(most.bytes))));
    }
    const int64_t readable = static_cast<int64_t>(ranks_.size()) - comparison_.unreadable;
    if (!texts.empty() || readable < 2) return texts;
    const bool alone = std::all_of(comparison_.groups.begin(), comparison_.groups.end(),
                                   [](const RankGroup& group) { return group.members.size() < 2; });
    return {words(alone ? "ranks.outlier.alone" : "ranks.outlier.none")};
  }

  // The chosen rank, if it was refused what others of its group got: its limit is lower, or its card is shared.
  [[nodiscard]] std::optional<size_t> failed_below_others() const {
    if (comparison_.failed == 0 || !comparison_.chosen) return std::nullopt;
    const RankFacts& facts = ranks_[*comparison_.chosen].facts;
    const RankGroup& group = comparison_.groups[*comparison_.group_of[*comparison_.chosen]];
    const bool is_below =
        facts.peak_reserved_bytes + facts.request_bytes <= ranks_[group.typical].facts.peak_reserved_bytes;
    return is_below ? comparison_.chosen : std::nullopt;
  }

  // "0-3, 5" where members are plain ranks; else their labels.
  [[nodiscard]] std::string members_text(const RankGroup& group) const {
    std::string text;
    for (size_t i = 0; i < group.members.size();) {
      size_t last = i;
      while (last + 1 < group.members.size() && follows(group.members[last], group.members[last + 1])) ++last;
      if (!text.empty()) text += ", ";
      text += short_label(group.members[i]);
      if (last > i) text += "-" + fmt::format("{}", *ranks_[group.members[last]].rank);
      i = last + 1;
    }
    return text;
  }

  [[nodiscard]] bool is_plain(size_t rank) const {
    return ranks_[rank].rank && ranks_[rank].label.empty() && label(rank) == rank_label(ranks_[rank], false, language_);
  }

  [[nodiscard]] bool follows(size_t a, size_t b) const {
    return is_plain(a) && is_plain(b) && ranks_[a].node == ranks_[b].node && *ranks_[a].rank + 1 == *ranks_[b].rank;
  }

  [[nodiscard]] std::string short_label(size_t rank) const {
    return is_plain(rank) && !ranks_[rank].node ? fmt::format("{}", *ranks_[rank].rank) : label(rank);
  }

  [[nodiscard]] Table groups_table() const {
    Table table{.title = words("ranks.groups.title"),
                .columns = {{.header = words("ranks.groups.group")},
                            {.header = words("ranks.groups.count"), .align = Align::right},
                            {.header = words("ranks.groups.failed"), .align = Align::right},
                            {.header = words("ranks.groups.lowest"), .align = Align::right},
                            {.header = words("ranks.groups.highest"), .align = Align::right},
                            {.header = words("ranks.groups.ranks"), .may_shrink = true}},
                .rows = {},
                .total = std::nullopt,
                .note = ""};
    for (size_t i = 0; i < comparison_.groups.size(); ++i) {
      const RankGroup& group = comparison_.groups[i];
      int64_t lowest = ranks_[group.members.front()].facts.peak_allocated_bytes;
      int64_t highest = 0;
      int64_t failed = 0;
      for (size_t member : group.members) {
        lowest = std::min(lowest, ranks_[member].facts.peak_allocated_bytes);
        highest = std::max(highest, ranks_[member].facts.peak_allocated_bytes);
        failed += ranks_[member].facts.failed ? 1 : 0;
      }
      table.rows.push_back(
          Row{.cells = {fmt::format("{}", i + 1), fmt::format("{}", group.members.size()), fmt::format("{}", failed),
                        format_mib(lowest), format_mib(highest), members_text(group)},
              .style = Style::plain});
    }
    return table;
  }

  // All of a few; of many those worth a look: failed, unreadable, odd, typical of their group, the highest.
  [[nodiscard]] std::vector<bool> shown_ranks() const {
    std::vector<bool> shown(ranks_.size(), ranks_.size() <= kMostRows);
    size_t count = 0;
    const auto show = [&](size_t rank) {
      if (shown[rank] || count + 1 >= kMostRows) return;
      shown[rank] = true;
      count += 1;
    };
    if (ranks_.size() <= kMostRows) return shown;
    if (comparison_.chosen) show(*comparison_.chosen);
    if (comparison_.highest_peak) show(*comparison_.highest_peak);
    for (const Outlier& outlier : comparison_.outliers) show(outlier.rank);
    for (const RankGroup& group : comparison_.groups) show(group.typical);
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i].error || ranks_[i].facts.failed) show(i);
    }
    return shown;
  }

  [[nodiscard]] std::string result_text(const Rank& rank) const {
    if (rank.error) return words("ranks.result.unreadable");
    const RankFacts& facts = rank.facts;
    if (!facts.failed) return words(facts.complete ? "ranks.result.done" : "ranks.result.cut");
    const char* key = facts.failed_at_us > 0 ? "ranks.result.failed-at" : "ranks.result.failed";
    return words(Phrase{.key = key, .values = {}}
                     .with("bytes", format_mib(facts.request_bytes))
                     .with("time", clock_text(facts.failed_at_us)));
  }

  [[nodiscard]] Table ranks_table() const {
    Table table{.title = words(comparison_.unrelated ? "ranks.recordings.title" : "ranks.ranks.title"),
                .columns = {{.header = words("ranks.ranks.rank"), .may_shrink = true, .keep = Keep::tail},
                            {.header = words("ranks.groups.group"), .align = Align::right},
                            {.header = words("ranks.ranks.allocated"), .align = Align::right},
                            {.header = words("ranks.ranks.reserved"), .align = Align::right},
                            {.header = words("ranks.ranks.against"), .align = Align::right},
                            {.header = words("ranks.ranks.result"), .may_shrink = true}},
                .rows = {},
                .total = std::nullopt,
                .note = ""};
    const std::vector<bool> shown = shown_ranks();
    int64_t others = 0;
    RankFacts rest;
    RankFacts all;
    for (size_t i = 0; i < ranks_.size(); ++i) {
      const RankFacts& facts = ranks_[i].facts;
      all.peak_allocated_bytes += facts.peak_allocated_bytes;
      all.peak_reserved_bytes += facts.peak_reserved_bytes;
      if (shown[i]) {
        table.rows.push_back(rank_row(i));
        continue;
      }
      others += 1;
      rest.peak_allocated_bytes += facts.peak_allocated_bytes;
      rest.peak_reserved_bytes += facts.peak_reserved_bytes;
    }
    if (others > 0) {
      const std::string name =
          words(Phrase{.key = "ranks.ranks.others", .values = {}}.with("count", format_count(others)));
      table.rows.push_back(
          Row{.cells = {name, "", format_mib(rest.peak_allocated_bytes), format_mib(rest.peak_reserved_bytes)},
              .style = Style::dim});
    }
    table.total = Row{.cells = {words("ranks.ranks.total"), "", format_mib(all.peak_allocated_bytes),
                                format_mib(all.peak_reserved_bytes)},
                      .style = Style::bold};
    if (comparison_.unrelated) leave_out(table, {4, 1});  // recordings that have nothing to do with each other
    return table;
  }

  // Columns by their index, the last first.
  static void leave_out(Table& table, std::initializer_list<size_t> columns) {
    for (size_t column : columns) {
      const auto erase_from = [&](auto& cells) {
        if (column < cells.size()) cells.erase(cells.begin() + static_cast<std::ptrdiff_t>(column));
      };
      erase_from(table.columns);
      for (Row& row : table.rows) erase_from(row.cells);
      if (table.total) erase_from(table.total->cells);
    }
  }

  [[nodiscard]] Row rank_row(size_t rank) const {
    const RankFacts& facts = ranks_[rank].facts;
    const std::optional<size_t> group = comparison_.group_of[rank];
    if (!group)
      return Row{.cells = {short_label(rank), "", "", "", "", result_text(ranks_[rank])}, .style = Style::yellow};
    const RankFacts& typical = ranks_[comparison_.groups[*group].typical].facts;
    const int64_t against = facts.peak_allocated_bytes - typical.peak_allocated_bytes;
    return Row{.cells = {short_label(rank), fmt::format("{}", *group + 1), format_mib(facts.peak_allocated_bytes),
                         format_mib(facts.peak_reserved_bytes), format_mib_signed(against), result_text(ranks_[rank])},
               .style = facts.failed ? Style::red : Style::plain};
  }

  [[nodiscard]] Table sites_table(const Outlier& outlier) const {
    Table table{.title = words(Phrase{.key = "ranks.sites.title", .values = {}}
                                   .with("name", label(outlier.rank))
                                   .with("typical", label(outlier.typical))),
                .columns = {{.header = "", .align = Align::right}, {.header = "", .may_shrink = true}},
                .rows = {},
                .total = std::nullopt,
                .note = ""};
    int64_t total = 0;
    int64_t rest = 0;
    for (size_t i = 0; i < outlier.sites.size(); ++i) {
      const SiteDifference& site = outlier.sites[i];
      total += site.bytes;
      if (i < kMostSites) {
        const std::string name = site.site.empty() ? words("ranks.site.unknown") : site.site;
        table.rows.push_back(Row{.cells = {format_mib_signed(site.bytes), name}, .style = Style::plain});
      } else {
        rest += site.bytes;
      }
    }
    if (outlier.sites.size() > kMostSites) {
      const int64_t others = static_cast<int64_t>(outlier.sites.size() - kMostSites);
      const std::string name =
          words(Phrase{.key = "ranks.ranks.others", .values = {}}.with("count", format_count(others)));
      table.rows.push_back(Row{.cells = {format_mib_signed(rest), name}, .style = Style::dim});
    }
    table.total = Row{.cells = {format_mib_signed(total), words("ranks.ranks.total")}, .style = Style::bold};
    return table;
  }

  const RanksReport& report_;
  const std::vector<Rank>& ranks_;
  const RankComparison& comparison_;
  Language language_;
};

// How other parts of the payload refer to a rank: its place in `ranks`, and the number from its name.
Json reference(const RanksReport& report, size_t rank) {
  const Rank& named = report.ranks[rank];
  return {{"index", rank}, {"rank", named.rank ? Json(*named.rank) : Json(nullptr)}};
}

Json optional_number(const std::optional<int64_t>& number) { return number ? Json(*number) : Json(nullptr); }

Json rank_json(const RanksReport& report, size_t index) {
  const Rank& rank = report.ranks[index];
  const std::optional<size_t> group = report.comparison.group_of[index];
  Json json = {{"index", index},
               {"rank", optional_number(rank.rank)},
               {"node", optional_number(rank.node)},
               {"file", rank.path},
               {"error", nullptr}};
  if (rank.error) {
    const SaidError said = say(*rank.error, Language::english);
    json["error"] = {{"code", rank.error->code}, {"what", said.what}, {"where", said.where}};
    return json;
  }
  const RankFacts& facts = rank.facts;
  json["device"] = facts.device;
  json["group"] = group ? Json(*group) : Json(nullptr);
  json["events"] = facts.events;
  json["complete"] = facts.complete;
  json["exact"] = facts.exact;
  json["peak_allocated"] = facts.peak_allocated_bytes;
  json["peak_reserved"] = facts.peak_reserved_bytes;
  json["failed"] = facts.failed;
  json["request"] = facts.failed ? Json(facts.request_bytes) : Json(nullptr);
  json["failed_at_us"] = facts.failed && facts.failed_at_us > 0 ? Json(facts.failed_at_us) : Json(nullptr);
  json["failed_site"] = facts.failed && !facts.failed_site.empty() ? Json(facts.failed_site) : Json(nullptr);
  return json;
}

Json group_json(const RanksReport& report, size_t index) {
  const RankGroup& group = report.comparison.groups[index];
  Json members = Json::array();
  Json numbers = Json::array();
  for (size_t member : group.members) {
    members.push_back(member);
    numbers.push_back(optional_number(report.ranks[member].rank));
  }
  return {
      {"members", std::move(members)}, {"ranks", std::move(numbers)}, {"typical", reference(report, group.typical)}};
}

Json outlier_json(const RanksReport& report, const Outlier& outlier) {
  Json json = reference(report, outlier.rank);
  json["group"] = outlier.group;
  json["typical"] = reference(report, outlier.typical);
  json["bytes"] = outlier.bytes;
  json["sites"] = Json::array();
  for (const SiteDifference& site : outlier.sites) {
    json["sites"].push_back({{"site", site.site.empty() ? Json(nullptr) : Json(site.site)}, {"bytes", site.bytes}});
  }
  return json;
}

Json first_failure_json(const RanksReport& report) {
  const std::optional<size_t>& first = report.comparison.first_failure;
  if (!first) return nullptr;
  const RankFacts& facts = report.ranks[*first].facts;
  Json json = reference(report, *first);
  json["time_us"] = facts.failed_at_us > 0 ? Json(facts.failed_at_us) : Json(nullptr);
  json["request"] = facts.request_bytes;
  return json;
}

}  // namespace

std::string rank_label(const Rank& rank, bool with_device, Language language) {
  std::string name = rank.label;
  if (rank.rank) {
    Phrase phrase{.key = rank.node ? "ranks.label.node" : "ranks.label.rank", .values = {}};
    name = say(std::move(phrase)
                   .with("rank", fmt::format("{}", *rank.rank))
                   .with("node", fmt::format("{}", rank.node.value_or(0))),
               language);
    if (!rank.label.empty()) name = rank.label + " " + name;
  }
  if (!with_device) return name;
  return say(Phrase{.key = "ranks.label.device", .values = {}}
                 .with("name", name)
                 .with("device", fmt::format("{}", rank.facts.device)),
             language);
}

std::vector<Section> ranks_sections(const RanksReport& report, Language language) {
  return RanksWriter(report, language).run();
}

nlohmann::ordered_json ranks_payload(const RanksReport& report, nlohmann::ordered_json explained) {
  const RankComparison& comparison = report.comparison;
  Json payload = {{"schema", "oomscope.why-ranks/1"},
                  {"sentence", RanksWriter(report, Language::english).verdict()},
                  {"failed", comparison.failed},
                  {"unrelated", comparison.unrelated},
                  {"unreadable", comparison.unreadable},
                  {"first_failure", first_failure_json(report)},
                  {"highest_peak", nullptr}};
  if (comparison.highest_peak) {
    payload["highest_peak"] = reference(report, *comparison.highest_peak);
    payload["highest_peak"]["peak_allocated"] = report.ranks[*comparison.highest_peak].facts.peak_allocated_bytes;
  }
  payload["groups"] = Json::array();
  for (size_t i = 0; i < comparison.groups.size(); ++i) payload["groups"].push_back(group_json(report, i));
  payload["outliers"] = Json::array();
  for (const Outlier& outlier : comparison.outliers) payload["outliers"].push_back(outlier_json(report, outlier));
  payload["ranks"] = Json::array();
  for (size_t i = 0; i < report.ranks.size(); ++i) payload["ranks"].push_back(rank_json(report, i));
  // The verdict is that of the rank which is explained.
  for (const char* key : {"kind", "also", "confidence", "phase", "numbers", "balance", "findings"})
    payload[key] = explained.contains(key) ? explained[key] : Json(nullptr);
  payload["explained"] = nullptr;
  if (comparison.chosen) {
    payload["explained"] = reference(report, *comparison.chosen);
    payload["explained"]["why"] = std::move(explained);
  }
  payload["caveats"] = caveats_json(report.caveats);
  return payload;
}

}  // namespace oomscope
