#include "report/html.h"

#include <fmt/format.h>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

std::string_view class_of(Style style) {
  switch (style) {
    case Style::plain: return "";
    case Style::bold: return "strong";
    case Style::dim: return "dim";
    case Style::red: return "bad";
    case Style::yellow: return "warn";
    case Style::green: return "good";
    case Style::cyan: return "file";
  }
  return "";
}

std::string attribute(std::string_view css_class) {
  return css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class);
}

std::string title_of(const std::string& title) { return title.empty() ? "" : html_element("h3", "", title) + "\n"; }

std::string cells_of(const Table& table, const Row& row, std::string_view tag) {
  std::string html = fmt::format("<tr{}>", attribute(class_of(row.style)));
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const std::string_view css = table.columns[c].align == Align::right ? "number" : "";
    const bool has_exact = c < row.exact_bytes.size() && row.exact_bytes[c] != kNoBytes;
    const std::string title = has_exact ? fmt::format(" title=\"{} B\"", format_count(row.exact_bytes[c])) : "";
    html += fmt::format("<{0}{1}{2}>{3}</{0}>", tag, attribute(css), title,
                        html_text(c < row.cells.size() ? row.cells[c] : ""));
  }
  return html + "</tr>\n";
}

std::string render(const Sentence& sentence) {
  return html_element("p", class_of(sentence.style), sentence.text) + "\n";
}

std::string render(const Table& table) {
  Row header;
  bool has_header = false;
  for (const Column& column : table.columns) {
    header.cells.push_back(column.header);
    has_header |= !column.header.empty();
  }
  std::string html = title_of(table.title) + "<div class=\"scroll\"><table>\n";
  if (has_header) html += "<thead>" + cells_of(table, header, "th") + "</thead>\n";
  html += "<tbody>\n";
  for (const Row& row : table.rows) html += cells_of(table, row, "td");
  html += "</tbody>\n";
  if (table.total) html += "<tfoot>" + cells_of(table, *table.total, "td") + "</tfoot>\n";
  html += "</table></div>\n";
  return html + (table.note.empty() ? "" : html_element("p", "dim", table.note) + "\n");
}

std::string render(const Lines& lines) {
  if (lines.lines.empty()) return "";
  std::string html = title_of(lines.title) + "<pre>";
  for (const std::string& line : lines.lines) html += html_text(line) + "\n";
  return html + "</pre>\n";
}

// The page draws the timeline itself.
std::string render(const Curve& curve) { return curve.values.empty() ? "" : title_of(curve.title); }

std::string render(const List& list) {
  if (list.entries.empty()) return "";
  std::string html = title_of(list.title) + "<ul>\n";
  for (const std::string& entry : list.entries) html += html_element("li", "", entry) + "\n";
  return html + "</ul>\n";
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string html;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    for (char c : printable(text.substr(0, end))) {
      switch (c) {
        case '&': html += "&amp;"; break;
        case '<': html += "&lt;"; break;
        case '>': html += "&gt;"; break;
        case '"': html += "&quot;"; break;
        case '\'': html += "&#39;"; break;
        default: html += c;
      }
    }
    if (end == text.size()) break;
    html += '\n';
    text.remove_prefix(end + 1);
  }
  return html;
}

std::string html_element(std::string_view tag, std::string_view css_class, std::string_view text) {
  return fmt::format("<{0}{1}>{2}</{0}>", tag, attribute(css_class), html_text(text));
}

std::string html_section(const Section& section) {
  return std::visit([](const auto& body) { return render(body); }, section.body);
}

std::string html_sections(const std::vector<Section>& sections) {
  std::string html;
  for (const Section& section : sections) html += html_section(section);
  return html;
}

}  // namespace oomscope
