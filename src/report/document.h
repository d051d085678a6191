// Document: what a command has to say, before anybody decides how it looks.
//
// A list of sections for people and one JSON payload for programs. Renderers see the document alone. Sections are
// rendered one by one, so a command can show its first sentence while it still computes the rest (src/cli/output.h).
// Strings in sections are finished text; what came from outside is passed through printable() by the renderer.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/caveat.h"
#include "report/terminal.h"
#include "words/words.h"

namespace oomscope {

// A paragraph, wrapped to the width.
struct Sentence {
  std::string text;
  Style style = Style::plain;
  int indent_columns = 0;
};

enum class Align { left, right };

struct Column {
  std::string header;
  Align align = Align::left;
  bool may_shrink = false;  // cut to what is left of the width
  Keep keep = Keep::head;   // which end survives when cut
  bool may_wrap = false;    // over several lines, where dropping columns is not enough
  bool may_drop = false;    // left out where even shrinking is not enough, the rightmost first
};

inline constexpr int64_t kNoBytes = std::numeric_limits<int64_t>::min();

struct Row {
  std::vector<std::string> cells;  // one a column; missing ones are empty
  Style style = Style::plain;
  std::vector<int64_t> exact_bytes = {};  // one a column, for who points at it; kNoBytes: the cell is no size
};

// The rows add up to the total row; what is cut is a row "[12 others]", what is unknown a row "[unattributed]".
struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<Row> rows;
  std::optional<Row> total;
  std::string note;  // one sentence below, or empty
};

// Lines to be taken as they are: a proof, a command to paste. Never wrapped or cut.
struct Lines {
  std::string title;
  std::vector<std::string> lines;
  Style style = Style::plain;
};

// A value over time, drawn as one line between its labels.
struct Curve {
  std::string title;
  std::vector<double> values;
  std::string left_label;   // below the left end
  std::string right_label;  // below the right end
};

// Sentences, each behind a dash.
struct List {
  std::string title;
  std::vector<std::string> entries;
};

struct Section {
  std::variant<Sentence, Table, Lines, Curve, List> body;
  bool joined = false;  // no blank line before it
};

struct Document {
  std::vector<Section> sections;
  nlohmann::ordered_json payload;  // begins with "schema"; sizes are integers, in bytes
};

// One section, lines ended by newlines, no blank line before it. Empty for an empty section.
[[nodiscard]] std::string render_section(const Section& section, const TerminalOptions& options);
[[nodiscard]] std::string render_terminal(const Document& document, const TerminalOptions& options);
// Two blanks of indent; bytes that are not UTF-8 become U+FFFD, so that it is always valid JSON.
[[nodiscard]] std::string render_json(const Document& document);

// "How far to trust this": the list that stands below every answer, empty where there are no caveats.
[[nodiscard]] List caveat_list(const Caveats& caveats, Language language = Language::english);
[[nodiscard]] std::string caveat_text(const Caveat& caveat, Language language);
// [{code, text, source}], as every payload carries it under "caveats".
[[nodiscard]] nlohmann::ordered_json caveats_json(const Caveats& caveats);

template <class T>
[[nodiscard]] nlohmann::ordered_json or_null(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace oomscope
