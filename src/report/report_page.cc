#include "report/report_page.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/bytes_text.h"
#include "report/chart.h"
#include "report/embedded_files.h"
#include "report/html.h"
#include "report/picture.h"
#include "report/view_payload.h"

namespace oomscope {
namespace {

constexpr size_t kSitesShown = 15;
constexpr size_t kStepsShown = 24;
constexpr size_t kCaveatsInBox = 3;
constexpr ChartSize kInlineChart{.width = 1200, .height = 360, .columns = 240};

class PageWriter {
 public:
  explicit PageWriter(const Page& page) : page_(page), language_(page.language) {}

  std::string body() {
    std::string html = header() + "<main>\n";
    if (page_.answer) {
      html += ranks_lead();
      html += answer(*page_.answer);
      html += ranks();
    } else {
      html += block("answer", "", lead(page_.before, differences()));
    }
    html += views();
    if (page_.answer) {
      const Drawing& step = page_.answer->step;
      if (step.height > 0)
        html += block("step", word("step-picture"), "<div class=\"still wide\">" + svg_of(step, true) + "</div>\n");
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

  static bool is_sentence(const Section& section) { return std::holds_alternative<Sentence>(section.body); }

  // What is said of all ranks. The sentences around the tables stand together, so that the answer follows at once.
  std::string ranks_lead() const {
    std::vector<Section> sentences;
    std::copy_if(page_.before.begin(), page_.before.end(), std::back_inserter(sentences), is_sentence);
    return block("ranks", "", lead(sentences));
  }

  // Their charts, then the tables.
  std::string ranks() const {
    std::vector<Section> tables;
    std::remove_copy_if(page_.before.begin(), page_.before.end(), std::back_inserter(tables), is_sentence);
    return block("rank-tables", "", (page_.ranks ? rank_charts() : "") + html_sections(tables));
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
      if (recording.view.events == 0) {  // no history: the viewer shows its one state
        if (!recording.view.lives.empty()) {
          html += fmt::format("<section class=\"block view\" data-recording=\"{}\"></section>\n", i);
        }
        continue;
      }
      const std::string title = page_.recordings.size() > 1 ? recording.name : word("timeline");
      StackedTimeline timeline = timeline_of(recording.view, Layers::category, title, kInlineChart.columns, language_);
      timeline.room_bytes = common_scale(page_);
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

  std::string rank_charts() const {
    std::string html;
    for (const RankPicture& rank : rank_pictures(*page_.ranks, language_)) {
      html += fmt::format("<figure class=\"{}\"><figcaption>{}<span class=\"dim\">{}</span></figcaption>{}</figure>\n",
                          rank.failed       ? "rank failed"
                          : rank.stands_out ? "rank apart"
                                            : "rank",
                          html_text(rank.chart.title), html_text(rank.numbers), svg_of(rank.chart, true));
    }
    return html.empty() ? "" : "<div class=\"multiples\">\n" + html + "</div>\n";
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

}  // namespace oomscope
