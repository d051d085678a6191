// What the page's first screen says of one recording, and the tables below it.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "report/findings_document.h"
#include "report/proposed_changes.h"
#include "report/report_page.h"
#include "report/step_picture.h"
#include "report/view_payload.h"
#include "report/why_document.h"

namespace oomscope {
namespace {

std::string page_word(std::string_view key, Language language) { return say("page." + std::string(key), language); }

struct SiteRow {
  uint32_t site = 0;
  int64_t bytes = 0;
  int64_t count = 0;
  std::map<uint8_t, int64_t> categories;  // requested bytes
};

// By bytes, the user's own lines first, as `show` lists them.
std::vector<SiteRow> rows_at(const RecordingView& view, uint32_t event) {
  std::vector<SiteRow> rows(view.sites.size());
  for (const Life& life : view.lives) {
    if (!holds_after(life, event)) continue;
    const LifeKind& kind = view.kinds[life.kind];
    SiteRow& row = rows[kind.site];
    row.site = kind.site;
    row.bytes += kind.size;
    row.count += 1;
    row.categories[kind.category] += kind.requested;
  }
  std::erase_if(rows, [](const SiteRow& row) { return row.count == 0; });
  std::stable_sort(rows.begin(), rows.end(), [&](const SiteRow& a, const SiteRow& b) {
    const bool own_a = view.sites[a.site].user_code;
    const bool own_b = view.sites[b.site].user_code;
    return own_a != own_b ? own_a : a.bytes > b.bytes;
  });
  return rows;
}

std::string main_category(const RecordingView& view, const SiteRow& row, Language language) {
  const auto most = std::max_element(row.categories.begin(), row.categories.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return category_name(view, most->first, language);
}

}  // namespace

Answer answer_of(const Diagnosis& diagnosis, const Changes& changes, std::vector<Finding> findings,
                 const std::string& path, Language language) {
  const Phrase& verdict = findings.empty() ? diagnosis.sentence : findings.front().claim;
  Answer answer{.kind = std::string(name_of(diagnosis.kind)),
                .instant = findings.empty() ? "" : instant_text(findings.front().instant, language),
                .verdict = say(verdict, language),
                .outlook = outlook_text(changes, findings, language),
                .balance = {},
                .balance_total = diagnosis.balance_total_bytes,
                .changes = {},
                .proof = proof_line(*diagnosis.verification, changes.rules, language),
                .trust = trust_line(diagnosis, language),
                .caveats = caveat_list(all_caveats(diagnosis, changes), language).entries,
                .details = detail_sections(diagnosis, changes, findings, path, language),
                .step = {}};
  for (const BalanceRow& row : diagnosis.balance) {
    answer.balance.push_back({.id = row.name.key,
                              .name = say(row.name, language),
                              .bytes = row.bytes,
                              .source = say(row.source, language),
                              .is_outside = row.is_outside});
  }
  if (!changes.step.columns.empty()) {
    StepPicture picture{.before = changes.step, .after = changes.step_after, .capacity_bytes = changes.cap_bytes};
    if (changes.step_after) picture.measure = say(changes.step_measure, language);
    answer.step = draw(picture, language);
  }
  add_measures(findings, changes);
  add_best_setting(findings, diagnosis, changes);
  if (findings.empty()) return answer;
  for (const Change& change : findings.front().changes) {
    answer.changes.push_back({.text = say(change.text, language),
                              .effect = change.predicted ? effect_text(*change.predicted, language) : "",
                              .commands = change.commands});
  }
  return answer;
}

std::string sites_title(const RecordingView& view, Language language) {
  if (view.events == 0) return page_word("sites-at-end", language);
  const Phrase title{.key = view.instant.failed ? "page.sites-at-failure" : "page.sites-at-peak"};
  const std::string event = view.instant.event == kNever ? "0" : format_count(view.instant.event);
  return say(Phrase(title).with("event", event), language);
}

Table sites_table(const RecordingView& view, size_t most, Language language) {
  const std::vector<SiteRow> rows = rows_at(view, view.instant.event);
  int64_t total = 0;
  int64_t blocks = 0;
  for (const SiteRow& row : rows) total += row.bytes, blocks += row.count;
  const auto number = [](std::string header) { return Column{.header = std::move(header), .align = Align::right}; };
  Table table{.title = "",
              .columns = {number(page_word("bytes", language)),
                          number(page_word("share", language)),
                          number(page_word("blocks", language)),
                          number(page_word("mean", language)),
                          {.header = page_word("category", language)},
                          {.header = page_word("site", language)}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  SiteRow rest;
  size_t others = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const SiteRow& row = rows[i];
    if (i >= most && rows.size() > most + 1) {
      rest.bytes += row.bytes, rest.count += row.count, others += 1;
      continue;
    }
    const ViewSite& site = view.sites[row.site];
    table.rows.push_back(
        Row{.cells = {format_bytes(row.bytes), format_percent(row.bytes, total), format_count(row.count),
                      format_bytes(row.bytes / row.count), main_category(view, row, language),
                      site.text.empty() ? say("site.none", language) : site.text},
            .style = site.user_code ? Style::plain : Style::dim,
            .exact_bytes = {row.bytes}});
  }
  if (others > 0) {
    const std::string name = say(Phrase{.key = "balance.others"}.with("count", std::to_string(others)), language);
    table.rows.push_back(Row{
        .cells = {format_bytes(rest.bytes), format_percent(rest.bytes, total), format_count(rest.count), "", "", name},
        .style = Style::dim});
  }
  table.total = Row{.cells = {format_bytes(total), "", format_count(blocks), "", "", page_word("live-total", language)},
                    .style = Style::bold,
                    .exact_bytes = {total}};
  return table;
}

Table steps_table(const RecordingView& view, size_t most, Language language) {
  const std::vector<StepUse>& steps = view.steps.steps;
  const auto number = [](std::string header) { return Column{.header = std::move(header), .align = Align::right}; };
  Table table{.title = "",
              .columns = {number(page_word(view.steps.are_passes ? "pass" : "step", language)),
                          number(page_word("events", language)),
                          number(page_word("step-peak", language)),
                          number(page_word("step-left", language)),
                          number(page_word("step-change", language)),
                          {.header = ""}},
              .rows = {},
              .total = std::nullopt,
              .note = ""};
  // The first ones, those around the first bad one, and the last.
  const size_t bad = view.steps.first_bad.value_or(0);
  size_t cut = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const bool is_near_bad = view.steps.first_bad && i + 2 >= bad && i <= bad + 2;
    if (steps.size() > most && i >= most / 2 && i + most / 2 < steps.size() && !is_near_bad) {
      cut += 1;
      continue;
    }
    if (cut > 0) {
      const Phrase others = Phrase{.key = "balance.others"}.with("count", std::to_string(cut));
      table.rows.push_back(Row{.cells = {say(others, language)}, .style = Style::dim});
      cut = 0;
    }
    const StepUse& step = steps[i];
    const bool is_bad = view.steps.first_bad == i;
    const int64_t grown = i == 0 ? kNoBytes : step.left_bytes - steps[i - 1].left_bytes;
    std::string note = is_bad ? page_word("first-bad", language) : "";
    if (!step.finished) note += page_word("unfinished", language);
    table.rows.push_back(
        Row{.cells = {format_count(step.number), format_count(step.begin) + "-" + format_count(step.end - 1),
                      format_bytes(step.peak_allocated), format_bytes(step.left_bytes),
                      i == 0 ? "" : format_bytes_signed(grown), note},
            .style = is_bad ? Style::red : Style::plain,
            .exact_bytes = {kNoBytes, kNoBytes, step.peak_allocated, step.left_bytes, grown}});
  }
  return table;
}

}  // namespace oomscope
