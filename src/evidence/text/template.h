// Templates: one row for each wording of a message. To add a wording, add a row to a table of templates_*.cc.
//
// Patterns are RE2's and are matched against text whose blanks and line breaks are all gone (see squeeze.h), so that a
// message may be wrapped anywhere, inside a number too. They are written with blanks for people; those go before
// compiling. {tried} and the like stand for a printed size that becomes that figure; named groups gpu, rank, pid, what,
// backend and unit become the message's members. A pattern of is_line is matched against single lines with their
// blanks.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "types/text_evidence.h"

namespace oomscope {

// Which fields are looked for behind the match, in any order and each one optional.
enum class Fields : uint8_t { none, allocator };

struct Template {
  std::string_view id;
  std::string_view vintage = {};  // releases that print it, or empty
  Family family = Family::note;
  Kind kind = Kind::no_failure;
  int strength = 0;
  std::string_view triggers = {};  // "of memory|tried to allocate": literals, of which the text holds one near the head
  std::string_view pattern = {};
  std::vector<Kind> also = {};
  Fields fields = Fields::none;
  bool is_line = false;
};

[[nodiscard]] std::span<const Template> gpu_templates();
[[nodiscard]] std::span<const Template> other_backend_templates();
[[nodiscard]] std::span<const Template> host_templates();
[[nodiscard]] std::span<const Template> ending_templates();
[[nodiscard]] std::span<const Template> not_memory_templates();

// A field of an allocator's message: the pattern holds one size.
struct FieldPattern {
  std::string_view pattern;
};
[[nodiscard]] std::span<const FieldPattern> allocator_fields();

}  // namespace oomscope
