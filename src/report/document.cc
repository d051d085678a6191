#include "report/document.h"

#include <algorithm>

namespace oomscope {
namespace {

constexpr int kTableIndent = 2;
constexpr int kColumnGap = 2;
constexpr int kNarrowestShrunk = 8;
constexpr int kWidestProse = 100;

std::string indent(int columns) { return std::string(static_cast<size_t>(columns), ' '); }

void trim_right(std::string& line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
}

// A title or other single line in a style, or nothing.
std::string title_line(const std::string& title, const TerminalOptions& options) {
  return title.empty() ? "" : styled(printable(title), Style::bold, options) + "\n";
}

// Newlines split paragraphs and survive; everything else from outside is made safe.
std::string printable_prose(std::string_view text) {
  std::string safe;
  while (true) {
    const size_t at = text.find('\n');
    safe += printable(text.substr(0, at));
    if (at == std::string_view::npos) return safe;
    safe += '\n';
    text.remove_prefix(at + 1);
  }
}

std::string prose(std::string_view text, Style style, int indent_columns, const TerminalOptions& options) {
  const int width = std::min(options.width_columns, kWidestProse) - indent_columns;
  std::string result;
  for (const std::string& line : wrap(printable_prose(text), width)) {
    result += (line.empty() ? "" : indent(indent_columns) + styled(line, style, options)) + "\n";
  }
  return result;
}

std::string cell_text(const Row& row, size_t column) {
  return column < row.cells.size() ? printable(row.cells[column]) : "";
}

struct Layout {
  std::vector<size_t> shown;  // indices into Table::columns
  std::vector<int> widths;    // of the shown ones
};

std::vector<int> natural_widths(const Table& table) {
  std::vector<int> widths;
  for (size_t c = 0; c < table.columns.size(); ++c) {
    int width = display_width(printable(table.columns[c].header));
    for (const Row& row : table.rows) width = std::max(width, display_width(cell_text(row, c)));
    if (table.total) width = std::max(width, display_width(cell_text(*table.total, c)));
    widths.push_back(width);
  }
  return widths;
}

int total_width(const Layout& layout) {
  int width = kTableIndent;
  for (size_t i = 0; i < layout.widths.size(); ++i) width += layout.widths[i] + (i == 0 ? 0 : kColumnGap);
  return width;
}

// Narrows the widest column that may be cut (or wrapped), by one at a time, until the table fits or none is left.
void narrow(const Table& table, int width_columns, bool Column::*may, Layout& layout) {
  while (total_width(layout) > width_columns) {
    int* widest = nullptr;
    for (size_t i = 0; i < layout.shown.size(); ++i) {
      if (!(table.columns[layout.shown[i]].*may) || layout.widths[i] <= kNarrowestShrunk) continue;
      if (widest == nullptr || layout.widths[i] > *widest) widest = &layout.widths[i];
    }
    if (widest == nullptr) return;
    --*widest;
  }
}

Layout lay_out(const Table& table, int width_columns) {
  const std::vector<int> natural = natural_widths(table);
  std::vector<size_t> shown;
  for (size_t c = 0; c < table.columns.size(); ++c) shown.push_back(c);
  while (true) {
    Layout layout{.shown = shown, .widths = {}};
    for (size_t c : shown) layout.widths.push_back(natural[c]);
    narrow(table, width_columns, &Column::may_shrink, layout);
    const auto droppable =
        std::find_if(shown.rbegin(), shown.rend(), [&](size_t c) { return table.columns[c].may_drop; });
    if (total_width(layout) <= width_columns) return layout;
    if (droppable == shown.rend()) {
      narrow(table, width_columns, &Column::may_wrap, layout);
      return layout;
    }
    shown.erase(std::next(droppable).base());
  }
}

std::vector<std::string> cell_lines(const Column& column, const std::string& text, int width,
                                    const TerminalOptions& options) {
  if (!column.may_wrap) return {shorten(text, width, column.keep, options)};
  std::vector<std::string> lines = wrap(text, width);
  for (std::string& line : lines) line = shorten(line, width, column.keep, options);
  return lines;
}

// One line, or as many as the cell that is wrapped most often takes.
std::string row_lines(const Table& table, const Layout& layout, const Row& row, const TerminalOptions& options) {
  std::vector<std::vector<std::string>> cells;
  size_t height = 1;
  for (size_t i = 0; i < layout.shown.size(); ++i) {
    const size_t c = layout.shown[i];
    cells.push_back(cell_lines(table.columns[c], cell_text(row, c), layout.widths[i], options));
    height = std::max(height, cells.back().size());
  }
  std::string text;
  for (size_t k = 0; k < height; ++k) {
    std::string line = indent(kTableIndent);
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string cell = k < cells[i].size() ? cells[i][k] : "";
      const bool right = table.columns[layout.shown[i]].align == Align::right;
      if (i > 0) line += indent(kColumnGap);
      line += right ? pad_left(cell, layout.widths[i]) : pad_right(cell, layout.widths[i]);
    }
    trim_right(line);
    text += styled(line, row.style, options) + "\n";
  }
  return text;
}

std::string render(const Sentence& sentence, const TerminalOptions& options) {
  return prose(sentence.text, sentence.style, sentence.indent_columns, options);
}

std::string render(const Table& table, const TerminalOptions& options) {
  const Layout layout = lay_out(table, options.width_columns);
  std::string text = title_line(table.title, options);
  Row header{.cells = {}, .style = Style::dim};
  bool has_header = false;
  for (const Column& column : table.columns) {
    header.cells.push_back(column.header);
    has_header |= !column.header.empty();
  }
  if (has_header) text += row_lines(table, layout, header, options);
  for (const Row& row : table.rows) text += row_lines(table, layout, row, options);
  if (table.total) {
    const int width = std::max(0, total_width(layout) - kTableIndent);
    text += indent(kTableIndent) + styled(std::string(static_cast<size_t>(width), '-'), Style::dim, options) + "\n";
    text += row_lines(table, layout, *table.total, options);
  }
  if (!table.note.empty()) text += prose(table.note, Style::dim, kTableIndent, options);
  return text;
}

std::string render(const Lines& lines, const TerminalOptions& options) {
  std::string text = title_line(lines.title, options);
  for (const std::string& line : lines.lines) text += indent(2) + styled(printable(line), lines.style, options) + "\n";
  return text;
}

std::string render(const Curve& curve, const TerminalOptions& options) {
  if (curve.values.empty()) return "";
  const int width = std::max(8, std::min(options.width_columns, kWidestProse) - 2 * kTableIndent);
  const std::vector<double> points = downsample_max(curve.values, static_cast<size_t>(width));
  std::string text = title_line(curve.title, options);
  text += indent(kTableIndent) + styled(sparkline(points, options), Style::cyan, options) + "\n";
  if (curve.left_label.empty() && curve.right_label.empty()) return text;
  const std::string left = printable(curve.left_label);
  const std::string right = printable(curve.right_label);
  const int room = std::max(display_width(left) + 1 + display_width(right), static_cast<int>(points.size()));
  std::string labels = indent(kTableIndent) + left + pad_left(right, room - display_width(left));
  trim_right(labels);
  return text + styled(labels, Style::dim, options) + "\n";
}

std::string render(const List& list, const TerminalOptions& options) {
  if (list.entries.empty()) return "";
  std::string text = title_line(list.title, options);
  for (const std::string& entry : list.entries) {
    const int width = std::min(options.width_columns, kWidestProse) - 4;
    std::string mark = "  - ";
    for (const std::string& line : wrap(printable(entry), width)) {
      text += mark + line + "\n";
      mark = "    ";
    }
  }
  return text;
}

}  // namespace

std::string caveat_text(const Caveat& caveat, Language language) {
  return say("caveat." + caveat.code, caveat.values, language);
}

std::string render_section(const Section& section, const TerminalOptions& options) {
  return std::visit([&](const auto& body) { return render(body, options); }, section.body);
}

std::string render_terminal(const Document& document, const TerminalOptions& options) {
  std::string text;
  for (const Section& section : document.sections) {
    const std::string rendered = render_section(section, options);
    if (!text.empty() && !rendered.empty() && !section.joined) text += "\n";
    text += rendered;
  }
  return text;
}

std::string render_json(const Document& document) {
  return document.payload.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

List caveat_list(const Caveats& caveats, Language language) {
  List list{.title = say("document.caveats", language), .entries = {}};
  for (const Caveat& caveat : caveats) list.entries.push_back(caveat_text(caveat, language));
  return list;
}

nlohmann::ordered_json caveats_json(const Caveats& caveats) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Caveat& caveat : caveats) {
    list.push_back({{"code", caveat.code},
                    {"text", caveat_text(caveat, Language::english)},
                    {"source", caveat.source == CaveatSource::recording ? "recording" : "model"}});
  }
  return list;
}

}  // namespace oomscope
