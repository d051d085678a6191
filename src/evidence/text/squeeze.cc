#include "evidence/text/squeeze.h"

#include <algorithm>
#include <array>
#include <utility>

#include "evidence/text/patterns.h"

namespace oomscope {
namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// Their own names are part of what they say.
bool is_of_system(std::string_view program) {
  constexpr std::array<std::string_view, 6> kPrograms = {"kernel", "systemd", "earlyoom",
                                                         "slurm",  "kubelet", "containerd"};
  return std::any_of(kPrograms.begin(), kPrograms.end(),
                     [&](std::string_view each) { return program.starts_with(each); });
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

// What loggers, launchers and mail put before a line. Applied until nothing goes, at most kMostPrefixes times.
const re2::RE2& prefix_pattern() {
  static const re2::RE2 pattern(
      R"(\s*(?:)"
      R"(>+\s?)"                                               // quoted
      R"(|\[(?:rank ?|Rank |default)(\d+)\]:?\s?)"             // torchrun, NCCL
      R"(|\((?:[\w.:*-]+ )?(?:pid|actor_id|ip)=[^)\n]+\)\s?)"  // Ray, vLLM
      R"(|\((?:raylet|autoscaler|main)\)\s)"                   //
      R"(|std(?:out|err) [FP] )"                               // a container's runtime
      R"(|\[pod/[^\]\n]+\]\s?)"                                // kubectl logs --prefix
      R"(|[A-Z][a-z][a-z] [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? [\w.-]+ ([\w.@/-]+)(?:\[\d+\])?:\s)"          // syslog
      R"(|\[(?:\d+,)?\d+\]<std\w+>:\s?)"                                                                 // mpirun
      R"(|\[?\s*\d{4}[-/]\d\d[-/]\d\d[T ,]\s*\d\d:\d\d:\d\d[.,\d]*\s*(?:Z|[+-]\d\d:?\d\d)?\s*\]?:?\s*)"  // a time
      R"(|\[?\d\d:\d\d:\d\d[.,\d]*\]?\s)"                                                                //
      R"(|(?:- (?:[\w.-]+ - )?)?(?:DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b[\s:|-]+)"             // a level
      R"(|\|\s*(?:\w+\s*\|\s*)*))",                                                                      // columns
      bytes_options());
  return pattern;
}

// Of "trainer-1  | " as docker compose puts it before a line, or 0.
size_t service_length(std::string_view line) {
  constexpr size_t kLongestName = 64;
  size_t at = 0;
  while (at < std::min(line.size(), kLongestName) && (is_word(line[at]) || line[at] == '-' || line[at] == '.')) ++at;
  if (at == 0) return 0;
  while (at < line.size() && line[at] == ' ') ++at;
  return line.substr(at).starts_with("| ") ? at + 2 : 0;
}

// Of "3: " as srun --label puts it before a line, or of a service's name, or 0.
size_t label_length(std::string_view line) {
  constexpr size_t kMostDigits = 4;
  if (const size_t service = service_length(line)) return service;
  const size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  const bool is_label = digits > 0 && digits <= kMostDigits && line.substr(digits).starts_with(": ");
  return is_label ? digits + 2 : 0;
}

// Of a name with a number as launchers put it before a line, "gpu07: " or "[trainer-0] ", or 0. What counts progress
// is no name.
size_t name_length(std::string_view line) {
  static const re2::RE2 name(R"(([A-Za-z][\w.-]{0,62}\d[\w.-]{0,20}: |\[[A-Za-z][\w .-]{0,62}\d\]:? ))",
                             bytes_options());
  static const re2::RE2 progress(R"((?i:epoch|step|iter|batch))", bytes_options());
  const char first = line.empty() ? ' ' : line.front();
  if (!is_word(first) && first != '[') return 0;  // most lines of a traceback
  re2::StringPiece rest(line.data(), line.size());
  re2::StringPiece found;
  if (!re2::RE2::Consume(&rest, name, &found) || re2::RE2::PartialMatch(found, progress)) return 0;
  re2::StringPiece known(line.data(), line.size());
  const bool tells_more = re2::RE2::Consume(&known, prefix_pattern()) && known.size() < line.size();
  return tells_more ? 0 : found.size();
}

// With one digit for every number: "gpu07: " and "gpu12: " are the same prefix.
std::string shape_of(std::string_view prefix) {
  std::string shape;
  for (const char c : prefix) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit || shape.empty() || shape.back() != '0') shape += is_digit ? '0' : c;
  }
  return shape;
}

// Labels stand before most lines; a single one is part of a message that was wrapped ("on device\n1: failed").
bool has_labels(std::string_view raw) {
  size_t lines = 0;
  size_t labelled = 0;
  while (!raw.empty()) {
    const std::string_view line = raw.substr(0, raw.find('\n'));
    lines += line.empty() ? 0 : 1;
    labelled += label_length(line) > 0 ? 1 : 0;
    raw.remove_prefix(std::min(line.size() + 1, raw.size()));
  }
  return labelled * 2 > lines;
}

// Takes the prefix off, behind a label of that length, and says how many characters that were.
size_t strip_prefix(std::string_view line, size_t label, std::optional<int>& rank) {
  constexpr int kMostPrefixes = 6;
  constexpr size_t kLongestPrefix = 300;
  re2::StringPiece rest(line.data(), std::min(line.size(), kLongestPrefix));
  const char* const start = rest.data();
  rest.remove_prefix(label);
  for (int i = 0; i < kMostPrefixes; ++i) {
    std::string number;
    std::string program;
    const re2::StringPiece before = rest;
    if (!re2::RE2::Consume(&rest, prefix_pattern(), &number, &program) || rest.data() == before.data()) break;
    if (is_of_system(program)) {
      rest = before;
      break;
    }
    if (!rank && !number.empty() && number.size() < 7) rank = std::stoi(number);  // the launcher stands first
  }
  return static_cast<size_t>(rest.data() - start);
}

// Characters that stand for nothing: colours, box drawings, invisible ones. Their length at `at`, or 0.
size_t ornament_at(std::string_view raw, size_t at) {
  const auto byte = [&](size_t i) { return i < raw.size() ? static_cast<unsigned char>(raw[i]) : 0U; };
  size_t bracket = at;
  if (byte(at) == 0x1B) bracket = at + 1;
  if (byte(bracket) == '[') {
    size_t end = bracket + 1;
    while (end < raw.size() && end - bracket < 16 && ((byte(end) >= '0' && byte(end) <= '9') || byte(end) == ';'))
      ++end;
    const bool is_colour = byte(end) == 'm' && (bracket > at || end > bracket + 1);
    if (is_colour) return end + 1 - at;
    const bool is_control =
        bracket > at && ((byte(end) >= 'A' && byte(end) <= 'Z') || (byte(end) >= 'a' && byte(end) <= 'z'));
    if (is_control) return end + 1 - at;
  }
  if (byte(at) == 0x1B) return 1;
  if (byte(at) == 0) return 1;
  if (byte(at) == 0xC2 && byte(at + 1) == 0xA0) return 2;                            // no-break space
  if (byte(at) == 0xE2 && (byte(at + 1) == 0x94 || byte(at + 1) == 0x95)) return 3;  // box drawings
  if (byte(at) == 0xE2 && byte(at + 1) == 0x80 && byte(at + 2) == 0x8B) return 3;    // zero-width space
  if (byte(at) == 0xEF && byte(at + 1) == 0xBB && byte(at + 2) == 0xBF) return 3;    // byte order mark
  return 0;
}

constexpr std::array<std::pair<std::string_view, char>, 14> kWritten = {{{"&nbsp;", ' '},
                                                                         {"&quot;", '"'},
                                                                         {"&#34;", '"'},
                                                                         {"&#39;", '\''},
                                                                         {"&#x27;", '\''},
                                                                         {"&lt;", '<'},
                                                                         {"&gt;", '>'},
                                                                         {"&amp;", '&'},
                                                                         {"\u3000", ' '},
                                                                         {"\u3002", '.'},
                                                                         {"\u2018", '\''},
                                                                         {"\u2019", '\''},
                                                                         {"\u201C", '"'},
                                                                         {"\u201D", '"'}}};

// A character as it is meant, and how many bytes it takes; 0: it stands as it is. Web pages escape some, and what was
// typed or translated in East Asia has wide punctuation.
struct Folded {
  char as = 0;
  size_t size = 0;
};
Folded folded_at(std::string_view raw, size_t at) {
  const auto byte = [&](size_t i) { return i < raw.size() ? static_cast<unsigned char>(raw[i]) : 0U; };
  const unsigned first = byte(at);
  if (first != '&' && first != 0xE2 && first != 0xE3 && first != 0xEF) return {};  // most text
  if (first == 0xEF && byte(at + 1) == 0xBC && byte(at + 2) > 0x80) return {static_cast<char>(byte(at + 2) - 0x60), 3};
  if (first == 0xEF && byte(at + 1) == 0xBD && byte(at + 2) >= 0x80 && byte(at + 2) < 0x9F)
    return {static_cast<char>(byte(at + 2) - 0x20), 3};
  for (const auto& [written, as] : kWritten) {
    if (raw.substr(at).starts_with(written)) return {as, written.size()};
  }
  return {};
}

// JSON, Python's repr and some loggers write line breaks as two characters. One such pair may be a path ("C:\new").
bool has_escaped_breaks(std::string_view raw) {
  size_t breaks = 0;
  for (size_t at = raw.find("\\n"); at != std::string_view::npos && breaks < 2; at = raw.find("\\n", at + 2)) ++breaks;
  return breaks >= 2;
}

struct RawLine {
  std::string text;
  std::vector<uint32_t> offsets;
  size_t begin = 0;
  size_t end = 0;
};

std::vector<RawLine> split_lines(std::string_view raw) {
  const bool unescape = has_escaped_breaks(raw);
  std::vector<RawLine> lines;
  RawLine line;
  auto finish = [&](size_t next) {
    line.end = next;
    lines.push_back(std::move(line));
    line = RawLine{.text = {}, .offsets = {}, .begin = next, .end = next};
  };
  for (size_t at = 0; at < raw.size();) {
    const char c = raw[at];
    if (c == '\n' || c == '\r') {
      finish(at + 1);
      ++at;
      continue;
    }
    if (unescape && c == '\\' && at + 1 < raw.size()) {
      const char next = raw[at + 1];
      if (next == 'n' || next == 'r') {
        finish(at + 2);
        at += 2;
        continue;
      }
      if (next == 't' || next == '"' || next == '\'') {
        line.text += next == 't' ? ' ' : next;
        line.offsets.push_back(static_cast<uint32_t>(at));
        at += 2;
        continue;
      }
    }
    if (const size_t length = ornament_at(raw, at)) {
      at += length;
      continue;
    }
    const Folded folded = folded_at(raw, at);
    line.text += folded.size > 0 ? folded.as : c == '\t' ? ' ' : c;
    line.offsets.push_back(static_cast<uint32_t>(at));
    at += std::max<size_t>(folded.size, 1);
  }
  finish(raw.size());
  return lines;
}

// How many characters of each line are a label. A name is one where the line before or behind has its like.
std::vector<size_t> label_lengths(std::string_view raw, const std::vector<RawLine>& lines) {
  std::vector<size_t> lengths(lines.size(), 0);
  if (has_labels(raw)) {
    std::transform(lines.begin(), lines.end(), lengths.begin(),
                   [](const RawLine& line) { return label_length(line.text); });
    return lengths;
  }
  size_t last_length = 0;
  std::string last_shape;
  size_t last = 0;
  for (size_t at = 0; at < lines.size(); ++at) {
    const std::string_view text = lines[at].text;
    if (text.empty()) continue;  // "\r\n" has one in between
    const size_t length = name_length(text);
    const std::string shape = shape_of(text.substr(0, length));
    if (length > 0 && shape == last_shape) {
      lengths[last] = last_length;
      lengths[at] = length;
    }
    last_length = length;
    last_shape = shape;
    last = at;
  }
  return lengths;
}

}  // namespace

size_t CleanText::squeezed_at(size_t raw) const {
  const auto at = std::lower_bound(raw_offsets.begin(), raw_offsets.end(), raw);
  return static_cast<size_t>(at - raw_offsets.begin());
}

const CleanLine* CleanText::line_at(size_t raw) const {
  for (const CleanLine& line : lines) {
    if (raw >= line.raw_begin && raw < line.raw_end) return &line;
  }
  return nullptr;
}

std::vector<CleanLine> clean_lines(std::string_view raw) {
  std::vector<CleanLine> lines;
  const std::vector<RawLine> all = split_lines(raw);
  const std::vector<size_t> labels = label_lengths(raw, all);
  for (size_t at = 0; at < all.size(); ++at) {
    const RawLine& line = all[at];
    CleanLine clean{.text = {}, .raw_begin = line.begin, .raw_end = line.end, .rank = std::nullopt};
    clean.text = line.text.substr(strip_prefix(line.text, labels[at], clean.rank));
    lines.push_back(std::move(clean));
  }
  return lines;
}

std::vector<CleanLine> plain_lines(std::string_view raw) {
  std::vector<CleanLine> lines;
  for (RawLine& line : split_lines(raw)) {
    lines.push_back({.text = std::move(line.text), .raw_begin = line.begin, .raw_end = line.end, .rank = std::nullopt});
  }
  return lines;
}

bool is_of_other_rank(const CleanLine& line, std::optional<int> rank) { return rank && line.rank && line.rank != rank; }

CleanText clean_text(std::string_view raw, std::optional<int> rank) {
  CleanText clean;
  clean.squeezed.reserve(raw.size());
  clean.raw_offsets.reserve(raw.size());
  const std::vector<RawLine> all = split_lines(raw);
  const std::vector<size_t> labels = label_lengths(raw, all);
  for (size_t at = 0; at < all.size(); ++at) {
    const RawLine& line = all[at];
    CleanLine out{.text = {}, .raw_begin = line.begin, .raw_end = line.end, .rank = std::nullopt};
    const size_t skipped = strip_prefix(line.text, labels[at], out.rank);
    if (is_of_other_rank(out, rank)) continue;
    out.text = line.text.substr(skipped);
    for (size_t i = skipped; i < line.text.size(); ++i) {
      if (is_blank(line.text[i])) continue;
      clean.squeezed += line.text[i];
      clean.raw_offsets.push_back(line.offsets[i]);
    }
    clean.lines.push_back(std::move(out));
  }
  return clean;
}

CleanText clean_text_at(std::string_view raw, size_t at) {
  CleanText all = clean_text(raw);
  const CleanLine* const own = all.line_at(at);
  const bool is_mixed = own != nullptr && std::any_of(all.lines.begin(), all.lines.end(), [&](const CleanLine& line) {
                          return is_of_other_rank(line, own->rank);
                        });
  return is_mixed ? clean_text(raw, own->rank) : all;
}

}  // namespace oomscope
