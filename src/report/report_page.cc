#include "report/report_page.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "report/chart.h"
#include "report/embedded_files.h"
#include "report/html.h"
#include "report/view_payload.h"

namespace oomscope {
namespace {

constexpr size_t kSitesShown = 15;
constexpr size_t kStepsShown = 24;
constexpr size_t kCaveatsInBox = 3;
constexpr ChartSize kInlineChart{.width = 1200, .height = 360, .columns = 240};

// What lives is strong; what is free is lighter, by how hard it is to use; what is not ours is grey.
std::string_view balance_colour(std::string_view id) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kColours = {{
      {"balance.live-tensors", "#4477aa"},
      {"balance.tails", "#777777"},
      {"balance.pending", "#aa3377"},
      {"balance.too-small", "#ee7733"},
      {"balance.oversize", "#ccbb44"},
      {"balance.free-in-large-pool", "#88ccee"},
      {"balance.free-in-small-pool", "#44bb99"},
      {"balance.other-streams", "#ee99aa"},
      {"balance.private-pools", "#7766cc"},
      {"balance.free-on-card", "#cfd8e3"},
      {"balance.cached", "#88ccee"},
  }};
  for (const auto& [name, colour] : kColours) {
    if (name == id) return colour;
  }
  return "#aaaaaa";
}

class PageWriter {
 public:
  explicit PageWriter(const Page& page) : page_(page), language_(page.language) {}

  std::string body() {
    std::string html = header() + "<main>\n";
    if (page_.answer) {
      html += ranks();
      html += answer(*page_.answer);
    } else {
      html += block("answer", "", lead(page_.before, differences()));
    }
    html += views();
    if (page_.answer) {
      const std::string details = html_sections(page_.answer->details);
      html += block("details", word("details"), details);
    }
    if (!page_.after.empty()) html += block("log", word("log"), html_sections(page_.after));
    return html + "</main>\n" + footer();
  }

  // The labels of the viewer, and the recordings.
  std::string data() {
    std::string html = "<script type=\"application/json\" id=\"words\">" + words_json() + "</script>\n";
    for (const PageRecording& recording : page_.recordings) {
      html += "<script type=\"application/octet-stream\" class=\"recording\">" +
              base64(view_payload(recording.view, {.name = recording.name, .language = language_})) + "</script>\n";
    }
    return html;
  }

 private:
  [[nodiscard]] std::string word(std::string_view key) const { return say("page." + std::string(key), language_); }

  static std::string block(std::string_view id, const std::string& title, const std::string& content) {
    if (content.empty()) return "";
    const std::string heading = title.empty() ? "" : html_element("h2", "", title) + "\n";
    return fmt::format("<section id=\"{}\" class=\"block\">\n{}{}</section>\n", id, heading, content);
  }

  // The first sentence is what the page says.
  static std::string lead(const std::vector<Section>& sections, const std::string& below = "") {
    std::string html;
    for (const Section& section : sections) {
      const Sentence* sentence = std::get_if<Sentence>(&section.body);
      const bool is_first = html.empty() && sentence != nullptr;
      html += is_first ? html_element("h1", "", sentence->text) + "\n" + below : html_section(section);
    }
    return html;
  }

  // The headline, then what makes it up.
  std::string differences() const {
    if (page_.differences.empty()) return "";
    const std::string title = word("differences");
    return "<div class=\"still wide\">" + svg_of(draw_differences(page_.differences, title), true) + "</div>\n";
  }

  // What is said of all ranks, their charts, then the tables.
  std::string ranks() const {
    if (page_.before.empty()) return "";
    const auto table = std::find_if(page_.before.begin(), page_.before.end(), [](const Section& section) {
      return !std::holds_alternative<Sentence>(section.body);
    });
    std::string html = lead({page_.before.begin(), table});
    if (page_.ranks) html += rank_charts();
    return block("ranks", "", html + html_sections({table, page_.before.end()}));
  }

  std::string header() const {
    return fmt::format(
        "<header class=\"top\"><span class=\"brand\">oomscope</span>{}<button type=\"button\" id=\"theme\" hidden>{}"
        "</button></header>\n",
        html_element("span", "file", page_.title), html_text(word("theme")));
  }

  std::string footer() const { return "<footer>" + html_element("p", "dim", word("footer")) + "</footer>\n"; }

  std::string answer(const Answer& answer) const {
    std::string html = "<section id=\"answer\" class=\"answer\">\n<div class=\"verdict\">\n<p class=\"tags\">" +
                       html_element("span", "tag", answer.kind);
    if (!answer.instant.empty()) html += html_element("span", "tag quiet", answer.instant);
    html += "</p>\n" + html_element(page_.before.empty() ? "h1" : "h2", "claim", answer.verdict) + "\n";
    if (!answer.outlook.empty()) html += html_element("p", "outlook", answer.outlook) + "\n";
    html += html_element("p", "proof", answer.proof) + "\n</div>\n";
    return html + balance(answer) + changes(answer) + trust(answer) + "</section>\n";
  }

  // Widths are bytes. What does not belong to this process's allocator is left out of the second bar.
  std::string bar(const Answer& answer, bool is_own_alone) const {
    std::string parts;
    for (const Answer::BalancePart& part : answer.balance) {
      if (part.bytes.value_or(0) <= 0 || (is_own_alone && part.is_outside)) continue;
      parts += fmt::format("<i style=\"flex-grow:{};background:{}\" title=\"{}: {} B\"></i>", *part.bytes,
                           balance_colour(part.id), html_text(part.name), format_count(*part.bytes));
    }
    return fmt::format("<div class=\"bar{}\" role=\"img\" aria-label=\"{}\">{}</div>\n", is_own_alone ? " part" : "",
                       html_text(word(is_own_alone ? "balance-own" : "balance")), parts);
  }

  std::string balance(const Answer& answer) const {
    std::string rows;
    int64_t outside = 0;
    for (const Answer::BalancePart& part : answer.balance) {
      const int64_t bytes = part.bytes.value_or(0);
      if (part.is_outside) outside += bytes;
      rows += fmt::format(
          "<tr><td><b class=\"key\" style=\"background:{}\"></b>{}</td><td class=\"number\" title=\"{}\">{}"
          "</td><td class=\"dim\">{}</td></tr>\n",
          balance_colour(part.id), html_text(part.name), part.bytes ? format_count(bytes) + " B" : "?",
          part.bytes ? html_text(format_bytes(bytes)) : "?", html_text(part.source));
    }
    std::string html =
        "<div class=\"balance\">\n" + html_element("h2", "", word("balance")) + "\n" + bar(answer, false);
    const bool hides_own = outside * 2 > answer.balance_total;
    if (hides_own) html += bar(answer, true) + html_element("p", "dim", word("balance-own")) + "\n";
    return html + fmt::format(
                      "<table><tbody>\n{}</tbody><tfoot><tr><td>{}</td><td class=\"number\" title=\"{} B\">{}"
                      "</td><td></td></tr></tfoot></table>\n</div>\n",
                      rows, html_text(say("balance.total", language_)), format_count(answer.balance_total),
                      html_text(format_bytes(answer.balance_total)));
  }

  std::string changes(const Answer& answer) const {
    if (answer.changes.empty()) return "";
    std::string items;
    for (const Answer::Change& change : answer.changes) {
      items += "<li>" + html_text(change.text) + html_element("strong", "good", change.effect);
      items += commands(change, &change == &answer.changes.front()) + "</li>\n";
    }
    return "<div class=\"changes\">\n" + html_element("h2", "", word("changes")) + "\n<ol>\n" + items +
           "</ol>\n</div>\n";
  }

  // Lines to paste: those of the first change at once, the others folded, so that all changes are on the first screen.
  [[nodiscard]] std::string commands(const Answer::Change& change, bool is_open) const {
    if (change.commands.empty()) return "";
    const std::string lines = "<pre>" + html_text(change.commands.front()) + "</pre>";
    if (is_open) return lines;
    return "<details><summary>" + html_text(word("paste")) + "</summary>" + lines + "</details>";
  }

  std::string trust(const Answer& answer) const {
    std::string items;
    for (size_t i = 0; i < std::min(answer.caveats.size(), kCaveatsInBox); ++i) {
      items += html_element("li", "", answer.caveats[i]) + "\n";
    }
    if (answer.caveats.size() > kCaveatsInBox) {
      const Phrase more =
          Phrase{.key = "page.more-caveats"}.with("count", std::to_string(answer.caveats.size() - kCaveatsInBox));
      items += "<li><a href=\"#details\">" + html_text(say(more, language_)) + "</a></li>\n";
    }
    return "<aside class=\"trust\">\n" + html_element("p", "", answer.trust) +
           (items.empty() ? "" : "\n<ul>\n" + items + "</ul>") + "\n</aside>\n";
  }

  // A static picture each, until the viewer replaces it.
  std::string views() const {
    std::string html;
    for (size_t i = 0; i < page_.recordings.size(); ++i) {
      const PageRecording& recording = page_.recordings[i];
      if (recording.view.events == 0) continue;
      const std::string title = page_.recordings.size() > 1 ? recording.name : word("timeline");
      const StackedTimeline timeline =
          timeline_of(recording.view, Layers::category, title, kInlineChart.columns, language_);
      html += fmt::format(
          "<section class=\"block view\" data-recording=\"{}\">\n<h2>{}</h2>\n<div class=\"still\">{}</div>\n"
          "</section>\n",
          i, html_text(title), svg_of(draw_timeline(timeline, kInlineChart), true));
    }
    if (page_.recordings.size() != 1) return html;
    const RecordingView& view = page_.recordings.front().view;
    if (!view.lives.empty()) {
      html += block("sites", sites_title(view, language_),
                    html_section({.body = sites_table(view, kSitesShown, language_)}));
    }
    if (!view.steps.steps.empty()) {
      html += block("steps", word(view.steps.are_passes ? "passes-title" : "steps-title"),
                    html_section({.body = steps_table(view, kStepsShown, language_)}));
    }
    return html;
  }

  // Small multiples: one scale for all, those that stand out marked.
  std::string rank_charts() const {
    int64_t most = 1;
    for (const Rank& rank : page_.ranks->ranks) most = std::max(most, rank.facts.peak_reserved_bytes);
    std::string html;
    for (size_t i = 0; i < page_.ranks->ranks.size(); ++i) {
      const Rank& rank = page_.ranks->ranks[i];
      if (rank.error || rank.facts.curve.empty()) continue;
      const std::vector<Outlier>& outliers = page_.ranks->comparison.outliers;
      const bool stands_out =
          std::any_of(outliers.begin(), outliers.end(), [&](const Outlier& outlier) { return outlier.rank == i; });
      html += rank_chart(rank, most, stands_out);
    }
    return html.empty() ? "" : "<div class=\"multiples\">\n" + html + "</div>\n";
  }

  std::string rank_chart(const Rank& rank, int64_t most, bool stands_out) const {
    constexpr double kWidth = 240;
    constexpr double kHeight = 90;
    Drawing drawing{.width = kWidth, .height = kHeight, .title = rank_label(rank, false, language_), .shapes = {}};
    const auto y = [&](int64_t bytes) {
      return kHeight - 2 - (kHeight - 6) * static_cast<double>(bytes) / static_cast<double>(most);
    };
    Polygon area{.points = {{0, y(0)}}, .colour = stands_out ? "#ee7733" : "#4477aa"};
    const std::vector<int64_t>& curve = rank.facts.curve;
    for (size_t k = 0; k < curve.size(); ++k) {
      const double x = kWidth * static_cast<double>(k) / static_cast<double>(curve.size());
      area.points.push_back({x, y(curve[k])});
      area.points.push_back({kWidth * static_cast<double>(k + 1) / static_cast<double>(curve.size()), y(curve[k])});
    }
    area.points.push_back({kWidth, y(0)});
    drawing.shapes.emplace_back(std::move(area));
    const double reserved = y(rank.facts.peak_reserved_bytes);
    drawing.shapes.emplace_back(Path{.points = {{0, reserved}, {kWidth, reserved}}, .colour = kInk, .dashed = true});
    const std::string numbers = say(Phrase{.key = rank.facts.failed ? "page.rank-failed" : "page.rank-peak"}
                                        .with("allocated", format_bytes(rank.facts.peak_allocated_bytes))
                                        .with("reserved", format_bytes(rank.facts.peak_reserved_bytes)),
                                    language_);
    const char* css = rank.facts.failed ? "rank failed" : stands_out ? "rank apart" : "rank";
    return fmt::format("<figure class=\"{}\"><figcaption>{}<span class=\"dim\">{}</span></figcaption>{}</figure>\n",
                       css, html_text(drawing.title), html_text(numbers), svg_of(drawing, true));
  }

  // Script text: "</" must not end it early.
  [[nodiscard]] std::string words_json() const {
    nlohmann::ordered_json words;
    constexpr std::string_view kPrefix = "page.ui.";
    for (const std::string& key : word_keys(language_)) {
      if (key.starts_with(kPrefix)) words[key.substr(kPrefix.size())] = say(key, language_);
    }
    words["no-frames"] = say("site.none", language_);
    std::string text = words.dump();
    for (size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3) text.insert(at + 1, "\\");
    return text;
  }

  const Page& page_;
  Language language_;
};

void replace(std::string& text, std::string_view mark, const std::string& with) {
  const size_t at = text.find(mark);
  if (at != std::string::npos) text.replace(at, mark.size(), with);
}

}  // namespace

std::string render_page(const Page& page) {
  PageWriter writer(page);
  std::string html(embedded_page());
  replace(html, "<html lang=\"en\"", page.language == Language::chinese ? "<html lang=\"zh\"" : "<html lang=\"en\"");
  replace(html, "oomscope:title", html_text(page.title) + " - oomscope");
  // The last first: what is put in may hold anything.
  replace(html, "<!--oomscope:data-->", writer.data());
  replace(html, "<!--oomscope:body-->", writer.body());
  return html;
}

Drawing picture_of(const Page& page, Language language) {
  Drawing drawing{.width = 1200, .height = 0, .title = page.title, .shapes = {}};
  if (!page.recordings.empty() && page.recordings.front().view.events > 0) {
    const ChartSize size;
    drawing = draw_timeline(
        timeline_of(page.recordings.front().view, Layers::category, page.title, size.columns, language), size);
  }
  if (!page.answer) return drawing;
  std::vector<BalancePart> parts;
  for (const Answer::BalancePart& part : page.answer->balance) {
    if (part.bytes) {
      parts.push_back({.name = part.name, .colour = std::string(balance_colour(part.id)), .bytes = *part.bytes});
    }
  }
  add_balance(parts, say("page.balance", language), drawing);
  return drawing;
}

}  // namespace oomscope
