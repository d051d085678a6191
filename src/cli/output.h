// Output: where a command puts what it has to say.
//
// On a terminal each section is shown as soon as it is added, so that the first sentence stands there while the rest is
// computed. With --json nothing is shown until the end, and then the payload alone. The whole document is kept for
// tests and for other renderers.
#pragma once

#include <cstdio>

#include "base/result.h"
#include "cli/progress.h"
#include "report/document.h"

namespace oomscope {

class Output {
 public:
  Output(std::FILE* out, bool json, TerminalOptions terminal, Progress* progress)
      : out_(out), json_(json), terminal_(terminal), progress_(progress) {}

  void add(Section section);
  void add_sentence(std::string text, Style style = Style::plain) {
    add({.body = Sentence{.text = std::move(text), .style = style}});
  }

  // Some of the evidence was missing or damaged, so with --strict the exit code is 3.
  void set_incomplete() { is_complete_ = false; }
  [[nodiscard]] bool is_complete() const { return is_complete_; }

  [[nodiscard]] nlohmann::ordered_json& payload() { return document_.payload; }
  [[nodiscard]] const Document& document() const { return document_; }
  [[nodiscard]] Progress& progress() { return *progress_; }
  [[nodiscard]] bool is_json() const { return json_; }

  // Writes the JSON payload where it was asked for; an error if standard output could not be written (a full disk).
  [[nodiscard]] Result<Done> finish();

 private:
  void write(const std::string& text);

  std::FILE* out_;
  bool json_;
  TerminalOptions terminal_;
  Progress* progress_;
  Document document_;
  bool is_complete_ = true;
  bool has_written_ = false;
  int failure_ = 0;  // errno of the first write that failed
};

}  // namespace oomscope
