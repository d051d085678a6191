#include "report/diff_document.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

using Json = nlohmann::ordered_json;

class DiffWriter {
 public:
  DiffWriter(const Diff& diff, Language language) : diff_(diff), language_(language) {
    for (const DiffRow& row : diff.rows) add(row, sum_);
  }

  [[nodiscard]] std::string sentence() const {
    const DiffRow* most = nullptr;  // of those that explain the sum: in its direction
    for (const DiffRow& row : diff_.rows) {
      const int64_t toward = sum_.delta() < 0 ? -row.delta() : row.delta();
      const int64_t best = most == nullptr ? 0 : sum_.delta() < 0 ? -most->delta() : most->delta();
      if (toward > best) most = &row;
    }
    const char* key = sum_.delta() > 0 ? "diff.more" : sum_.delta() < 0 ? "diff.less" : "diff.same";
    return words(Phrase{.key = key, .values = {}}
                     .with("delta", format_bytes(std::abs(sum_.delta())))
                     .with("a", format_bytes(sum_.bytes_a))
                     .with("b", format_bytes(sum_.bytes_b))
                     .with("site", most == nullptr ? "" : name_of(*most))
                     .with("site_delta", most == nullptr ? "" : format_bytes_signed(most->delta())));
  }

  std::vector<Section> sections(const std::string& path_a, const std::string& path_b, int64_t top) const {
    std::vector<Section> all;
    all.push_back({.body = Sentence{.text = sentence(), .style = Style::bold}, .joined = false});
    all.push_back({.body = files_table(path_a, path_b), .joined = true});
    if (diff_.settings.empty()) {
      all.push_back({.body = Sentence{.text = words("diff.settings.same")}, .joined = false});
    } else {
      all.push_back({.body = settings_table(), .joined = false});
    }
    all.push_back({.body = totals_table(), .joined = false});
    all.push_back({.body = rows_table(top), .joined = false});
    add_caveats("diff.trust-a", diff_.a.caveats, all);
    add_caveats("diff.trust-b", diff_.b.caveats, all);
    return all;
  }

 private:
  [[nodiscard]] std::string words(const Phrase& phrase) const { return say(phrase, language_); }
  [[nodiscard]] std::string words(const char* key) const { return say(key, language_); }

  void add_caveats(const char* title, const Caveats& caveats, std::vector<Section>& to) const {
    if (caveats.empty()) return;
    List list = caveat_list(caveats, language_);
    list.title = words(title);
    to.push_back({.body = std::move(list), .joined = false});
  }

  [[nodiscard]] std::string name_of(const DiffRow& row) const {
    return row.site.empty() ? words("diff.unattributed") : row.site;
  }

  static void add(const DiffRow& row, DiffRow& to) {
    to.bytes_a += row.bytes_a;
    to.bytes_b += row.bytes_b;
    to.count_a += row.count_a;
    to.count_b += row.count_b;
  }

  [[nodiscard]] Table files_table(const std::string& path_a, const std::string& path_b) const {
    return Table{.title = "",
                 .columns = {{.header = ""}, {.header = "", .may_shrink = true, .keep = Keep::tail}, {.header = ""}},
                 .rows = {Row{.cells = {"A", path_a, words(diff_.a.at)}, .style = Style::plain},
                          Row{.cells = {"B", path_b, words(diff_.b.at)}, .style = Style::plain}},
                 .total = std::nullopt,
                 .note = ""};
  }

  [[nodiscard]] std::string value(const Phrase& phrase) const {
    return phrase.empty() ? words("diff.value.not-recorded") : words(phrase);
  }

  [[nodiscard]] Table settings_table() const {
    Table table{.title = words("diff.settings.title"),
                .columns = {{.header = ""}, {.header = "A", .may_shrink = true}, {.header = "B", .may_shrink = true}},
                .rows = {},
                .total = std::nullopt,
                .note = ""};
    for (const SettingDifference& setting : diff_.settings) {
      const std::string key = "diff.setting." + setting.id;
      table.rows.push_back(
          Row{.cells = {words(key.c_str()), value(setting.a), value(setting.b)}, .style = Style::plain});
    }
    return table;
  }

  [[nodiscard]] Table numbers_table(const std::string& title, const std::string& last) const {
    return Table{.title = title,
                 .columns = {{.header = words("diff.change"), .align = Align::right},
                             {.header = "A", .align = Align::right},
                             {.header = "B", .align = Align::right},
                             {.header = last, .may_shrink = true}},
                 .rows = {},
                 .total = std::nullopt,
                 .note = ""};
  }

  static Row numbers_row(int64_t a, int64_t b, std::string name, Style style = Style::plain) {
    return Row{.cells = {format_mib_signed(b - a), format_mib(a), format_mib(b), std::move(name)}, .style = style};
  }

  [[nodiscard]] Table totals_table() const {
    Table table = numbers_table(words("diff.totals.title"), "");
    const ShowTotals& a = diff_.a.totals;
    const ShowTotals& b = diff_.b.totals;
    table.rows.push_back(numbers_row(a.requested, b.requested, words("diff.totals.requested")));
    table.rows.push_back(numbers_row(a.allocated, b.allocated, words("diff.totals.allocated")));
    table.rows.push_back(numbers_row(a.reserved, b.reserved, words("diff.totals.reserved")));
    table.rows.push_back(numbers_row(a.peak_reserved, b.peak_reserved, words("diff.totals.peak-reserved")));
    return table;
  }

  [[nodiscard]] Table rows_table(int64_t top) const {
    Table table = numbers_table(words("diff.rows.title"), "");
    DiffRow rest;
    DiffRow unchanged;
    int64_t others = 0;
    int64_t same = 0;
    int64_t moved = 0;
    const DiffRow* unattributed = nullptr;
    for (const DiffRow& row : diff_.rows) {
      if (row.site.empty()) {
        unattributed = &row;
      } else if (row.delta() == 0) {
        add(row, unchanged);
        same += 1;
        moved += row.moved() ? 1 : 0;
      } else if (static_cast<int64_t>(table.rows.size()) < std::max<int64_t>(top, 1)) {
        table.rows.push_back(numbers_row(row.bytes_a, row.bytes_b, row.site));
      } else {
        add(row, rest);
        others += 1;
      }
    }
    if (others > 0) table.rows.push_back(counted_row(rest, "diff.rows.others", others));
    if (same > 0) {
      table.rows.push_back(counted_row(unchanged, moved > 0 ? "diff.rows.moved" : "diff.rows.unchanged", same, moved));
    }
    if (unattributed != nullptr) {
      table.rows.push_back(numbers_row(unattributed->bytes_a, unattributed->bytes_b, words("diff.unattributed")));
    }
    table.total = numbers_row(sum_.bytes_a, sum_.bytes_b, words("diff.rows.total"), Style::bold);
    return table;
  }

  [[nodiscard]] Row counted_row(const DiffRow& sum, const char* key, int64_t count, int64_t moved = 0) const {
    return numbers_row(
        sum.bytes_a, sum.bytes_b,
        words(Phrase{.key = key, .values = {}}.with("count", format_count(count)).with("moved", format_count(moved))),
        Style::dim);
  }

  const Diff& diff_;
  Language language_;
  DiffRow sum_;
};

Json pair_json(int64_t a, int64_t b) { return {{"a", a}, {"b", b}, {"delta", b - a}}; }

Json phrase_json(const Phrase& phrase) { return phrase.empty() ? Json(nullptr) : Json(say(phrase, Language::english)); }

Json side_json(const Shown& shown, const std::string& path) {
  return {{"file", path},
          {"at", say(shown.at, Language::english)},
          {"event", shown.event == kNoEvent ? Json(nullptr) : Json(shown.event)},
          {"events", shown.totals.events}};
}

Json row_json(const DiffRow& row) {
  return {{"site", row.site.empty() ? Json("[unattributed]") : Json(row.site)},
          {"bytes_a", row.bytes_a},
          {"bytes_b", row.bytes_b},
          {"delta", row.delta()},
          {"count_a", row.count_a},
          {"count_b", row.count_b},
          {"line_a", row.line_a == 0 ? Json(nullptr) : Json(row.line_a)},
          {"line_b", row.line_b == 0 ? Json(nullptr) : Json(row.line_b)},
          {"moved", row.moved()},
          {"user_code", row.user_code}};
}

Json payload_of(const Diff& diff, const std::string& path_a, const std::string& path_b) {
  const ShowTotals& a = diff.a.totals;
  const ShowTotals& b = diff.b.totals;
  Json payload = {{"schema", "oomscope.diff/1"},
                  {"sentence", DiffWriter(diff, Language::english).sentence()},
                  {"a", side_json(diff.a, path_a)},
                  {"b", side_json(diff.b, path_b)}};
  payload["settings"] = Json::array();
  for (const SettingDifference& setting : diff.settings) {
    payload["settings"].push_back({{"name", setting.id}, {"a", phrase_json(setting.a)}, {"b", phrase_json(setting.b)}});
  }
  payload["totals"] = {{"bytes_a", a.active},
                       {"bytes_b", b.active},
                       {"delta", b.active - a.active},
                       {"requested", pair_json(a.requested, b.requested)},
                       {"allocated", pair_json(a.allocated, b.allocated)},
                       {"reserved", pair_json(a.reserved, b.reserved)},
                       {"peak_requested", pair_json(a.peak_requested, b.peak_requested)},
                       {"peak_allocated", pair_json(a.peak_allocated, b.peak_allocated)},
                       {"peak_reserved", pair_json(a.peak_reserved, b.peak_reserved)}};
  payload["rows"] = Json::array();
  for (const DiffRow& row : diff.rows) payload["rows"].push_back(row_json(row));
  payload["caveats"] = {{"a", caveats_json(diff.a.caveats)}, {"b", caveats_json(diff.b.caveats)}};
  return payload;
}

}  // namespace

std::vector<SignedPart> largest_differences(const Diff& diff, Language language) {
  constexpr size_t kMost = 12;
  std::vector<SignedPart> parts;
  for (const DiffRow& row : diff.rows) {
    if (row.delta() == 0) continue;
    parts.push_back({.name = row.site.empty() ? say("site.none", language) : row.site, .bytes = row.delta()});
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const SignedPart& a, const SignedPart& b) { return std::abs(a.bytes) > std::abs(b.bytes); });
  parts.resize(std::min(parts.size(), kMost));
  return parts;
}

Document diff_document(const Diff& diff, const std::string& path_a, const std::string& path_b, int64_t top,
                       Language language) {
  return Document{.sections = DiffWriter(diff, language).sections(path_a, path_b, top),
                  .payload = payload_of(diff, path_a, path_b)};
}

}  // namespace oomscope
