// The templates, compiled: which message stands at a place of the text, and what it says.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/text/squeeze.h"
#include "evidence/text/template.h"
#include "types/text_evidence.h"

namespace re2 {
class RE2;
}

namespace oomscope {

// What a template became of. Built once a process; shared by threads.
class Matcher {
 public:
  Matcher();
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  // Literals that any message holds, in lower case; index = the literal of TriggerScan.
  [[nodiscard]] const std::vector<std::string>& literals() const { return literals_; }

  struct Found {
    TextMessage message;
    size_t begin = 0;  // raw offsets in the piece
    size_t end = 0;
  };
  // The message whose head covers the literal found at `raw` of `piece`; templates are asked in the order of their
  // tables.
  [[nodiscard]] std::optional<Found> match(std::string_view piece, const CleanText& clean, size_t raw,
                                           size_t literal) const;
  // Whether all templates compiled; for tests.
  [[nodiscard]] bool ok() const;

 private:
  struct Compiled;
  void share_prefixes();
  [[nodiscard]] static TextMessage message_of(const Template& row);
  [[nodiscard]] std::optional<Found> match_squeezed(const Compiled& compiled, std::string_view piece,
                                                    const CleanText& clean, size_t raw) const;
  [[nodiscard]] std::optional<Found> match_lines(const Compiled& compiled, const CleanText& clean, size_t raw) const;

  std::vector<Compiled> templates_;
  std::vector<std::string> literals_;
  std::vector<std::vector<uint16_t>> by_literal_;  // templates of each literal, in order
  std::vector<std::unique_ptr<re2::RE2>> fields_;
  std::vector<std::string> field_names_;
  std::unique_ptr<re2::RE2> process_;
};

[[nodiscard]] const Matcher& matcher();

}  // namespace oomscope
