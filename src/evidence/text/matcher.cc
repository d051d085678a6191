#include "evidence/text/matcher.h"
#include "evidence/text/printed_bytes.h"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <span>

namespace oomscope {
namespace {

// "15.75GiB", "1,024bytes", numpy's "926.GiB".
constexpr std::string_view kSize =
    R"((?:\d+\.[KMGTPE]iB|-?\d[\d,]*(?:\.\d+)?(?:[KMGTPEkmgt]i?[Bb]|[Bb]ytes?|[KMGT]|B)?))";
// With the blanks of a line; a letter alone is a unit where the word ends.
constexpr std::string_view kSizeInLine = R"(-?\d[\d,]*(?:\.\d+)?(?i: ?(?:[KMGTPE]i?B|bytes?|[KMGT]|B)\b)?)";
constexpr size_t kLongestExcerpt = 400;
constexpr size_t kLongestHint = 700;

// Without blanks, for squeezed text; {tried} becomes a group that takes a printed size.
std::string expand(std::string_view pattern, bool is_line) {
  std::string out;
  for (size_t at = 0; at < pattern.size(); ++at) {
    const char c = pattern[at];
    if (c == ' ' && !is_line) continue;
    const size_t close = c == '{' ? pattern.find('}', at) : std::string_view::npos;
    if (close != std::string_view::npos && figure_of(pattern.substr(at + 1, close - at - 1))) {
      out += "(?P<" + std::string(pattern.substr(at + 1, close - at - 1)) + ">" +
             std::string(is_line ? kSizeInLine : kSize) + ")";
      at = close;
      continue;
    }
    out += c;
  }
  return out;
}

std::unique_ptr<re2::RE2> compile(const std::string& pattern) {
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);  // any bytes
  options.set_log_errors(false);
  options.set_dot_nl(true);
  options.set_max_mem(int64_t{1} << 20);
  return std::make_unique<re2::RE2>(pattern, options);
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  const std::from_chars_result read = std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string_view view(const re2::StringPiece& piece) { return {piece.data(), piece.size()}; }

// Groups by name: sizes go to the figures, the rest to the message's members.
class GroupTaker {
 public:
  explicit GroupTaker(TextMessage& message) : message_(message) {}

  void take(const std::string& name, std::string_view text) {
    if (const std::optional<Figure> figure = figure_of(name)) {
      if (const std::optional<double> bytes = printed_bytes(text)) message_.figures[*figure] = std::round(*bytes);
      return;
    }
    if (name == "backend") message_.backend = text;
    if (name == "what") message_.what = text;
    if (name == "unit") unit_ = text;
    if (name == "used_unit") used_unit_ = text;
    const std::optional<int64_t> number = whole_number(text);
    if (name == "pid") message_.pid = number;
    constexpr int64_t kMostDevices = 4096;
    if (number && *number < kMostDevices) {
      if (name == "gpu") message_.gpu = static_cast<int>(*number);
      if (name == "rank") message_.rank = static_cast<int>(*number);
    }
    if (name.ends_with("_number")) numbers_.emplace_back(name.substr(0, name.size() - 7), text);
  }

  // Numbers whose unit stands elsewhere: "(59.32/79.15 GiB)"; without any, that of the template.
  void finish(std::string_view plain_unit) {
    for (const auto& [name, digits] : numbers_) {
      std::string unit = name == "used" && !used_unit_.empty() ? used_unit_ : unit_;
      if (unit.empty()) unit = plain_unit;
      const std::optional<Figure> figure = figure_of(name);
      const std::optional<double> bytes = printed_bytes(digits + unit);
      if (figure && bytes) message_.figures[*figure] = std::round(*bytes);
    }
  }

 private:
  TextMessage& message_;
  std::string unit_;
  std::string used_unit_;
  std::vector<std::pair<std::string, std::string>> numbers_;
};

// The unit of numbers that a message prints without one.
std::string_view plain_unit_of(std::string_view id) {
  if (id == "megatron.gpu" || id == "condor.memory") return "MiB";
  return id == "slurm.exceeded" ? "KiB" : "";
}

// Whether the lines from `begin` to `end` were broken at a width and not between words: all but the last are equally
// long.
bool is_broken_at_a_width(const CleanText& clean, size_t begin, size_t end) {
  const CleanLine* const first = clean.line_at(begin);
  const CleanLine* const last = clean.line_at(end - 1);
  return first != nullptr && last != nullptr && last - first > 1 &&
         std::all_of(first, last, [&](const CleanLine& line) { return line.text.size() == first->text.size(); });
}

// One blank for each run of blanks and breaks between words, shortened.
std::string excerpt_of(std::string_view piece, const CleanText& clean, size_t begin, size_t end) {
  std::string text;
  const bool goes_on = is_broken_at_a_width(clean, begin, end);
  const CleanLine* const head = clean.line_at(begin);
  for (const CleanLine& line : clean_lines(piece.substr(begin, std::min(end - begin, kLongestExcerpt)))) {
    if (head != nullptr && is_of_other_rank(line, head->rank)) continue;
    for (char c : line.text) {
      if (c == ' ' && (text.empty() || text.back() == ' ')) continue;
      text += c;
    }
    if (!goes_on && !text.empty() && text.back() != ' ') text += ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// A line, or lines that were one before it was wrapped.
struct WrappedLine {
  std::string text;
  size_t raw_begin = 0;
  size_t raw_end = 0;
  std::vector<size_t> joints;  // in `text`; empty for a line as it stands
  size_t own = 0;              // which of the joined lines was looked at

  // What one line says alone is no finding of several, and what others say is none of the one that was looked at.
  [[nodiscard]] bool is_joined_within(size_t from, size_t to) const {
    if (joints.empty()) return true;
    const size_t own_begin = own == 0 ? 0 : joints[own - 1];
    const size_t own_end = own < joints.size() ? joints[own] : text.size();
    return from < own_end && own_begin < to &&
           std::any_of(joints.begin(), joints.end(), [&](size_t joint) { return from < joint && joint < to; });
  }
};

WrappedLine join_lines(std::span<const CleanLine> lines, size_t own, std::string_view between) {
  WrappedLine joined{
      .text = {}, .raw_begin = lines.front().raw_begin, .raw_end = lines.back().raw_end, .joints = {}, .own = own};
  for (const CleanLine& line : lines) {
    if (!joined.text.empty()) {
      joined.text += between;
      joined.joints.push_back(joined.text.size());
    }
    joined.text += line.text;
  }
  return joined;
}

// The line at `raw` alone, then with those around it that it may have been one with, broken inside words or between.
std::vector<WrappedLine> readings_of_line(const CleanText& clean, size_t raw) {
  constexpr size_t kMostLines = 3;
  std::vector<WrappedLine> readings;
  const CleanLine* line = clean.line_at(raw);
  if (line == nullptr) return readings;
  readings.push_back({.text = line->text, .raw_begin = line->raw_begin, .raw_end = line->raw_end, .joints = {}});
  const auto at = static_cast<size_t>(line - clean.lines.data());
  const std::span<const CleanLine> all(clean.lines);
  for (size_t first : {at, at - 1}) {
    for (size_t count = 2; count <= kMostLines && first + count <= all.size(); ++count) {
      if (first > at || first + count <= at) continue;  // before the first line; lines without this one
      for (std::string_view between : {"", " "})
        readings.push_back(join_lines(all.subspan(first, count), at - first, between));
    }
  }
  return readings;
}

// Which releases print a message like this one, by its wording; `region` is squeezed.
std::string_view allocator_vintage(std::string_view region) {
  const auto has = [&](std::string_view text) { return region.find(text) != std::string_view::npos; };
  if (has("cached)")) return "1.0-1.3";
  if (has("totalcapacty")) return "2.1";
  if (has("PYTORCH_ALLOC_CONF")) return "2.9 or later";
  if (has("totalcapacityof")) return has("allowed;") || has("docs.pytorch.org") ? "2.6 or later" : "2.2-2.8";
  if (has("max_split_size_mb")) return "1.10-2.0";
  if (has("reservedintotal")) return "1.4-1.9";
  return {};
}

std::string_view allocator_hint(std::string_view region) {
  const auto has = [&](std::string_view text) { return region.find(text) != std::string_view::npos; };
  if (has("expandable_segmentsisenabled") || has("expandable-segmentreserve")) return "expandable_segments is enabled";
  if (has("expandable_segments:True")) return "expandable_segments:True";
  if (has("max_split_size_mb")) return "max_split_size_mb";
  return {};
}

// Behind the head of an allocator's message: to the end of its parenthesis (old layout) or of its last sentence with a
// figure (2.1 on); at most to the next message.
std::string_view allocator_region(std::string_view text) {
  constexpr size_t kLongest = 4000;    // squeezed; a process takes some 40 characters
  constexpr size_t kLongestCut = 700;  // a message that was cut
  constexpr std::string_view kEnd = "unallocated";
  if (text.starts_with("(GPU") || text.starts_with("(NPU"))
    return text.substr(0, std::min(text.find(')'), kLongestCut) + 1);
  if (text.starts_with("totalcapacity;")) return text.substr(0, std::min(text.find(')'), kLongestCut) + 1);
  const bool has_sentences = text.starts_with(".GPU") || text.starts_with("GPU") || text.starts_with("ofwhich");
  if (!has_sentences) return text.substr(0, 0);
  std::string_view region = text.substr(0, kLongest);
  region = region.substr(0, region.find("outofmemory.Tried"));
  const size_t end = region.find(kEnd);
  return region.substr(0, end == std::string_view::npos ? kLongestCut : end + kEnd.size());
}

void take_field(std::string_view region, const re2::RE2& pattern, const std::string& name, GroupTaker& taker,
                const TextMessage& message) {
  const std::optional<Figure> figure = figure_of(name);
  re2::StringPiece size;
  if (!figure || message.figures[*figure]) return;
  if (re2::RE2::PartialMatch(re2::StringPiece(region.data(), region.size()), pattern, &size))
    taker.take(name, view(size));
}

void take_processes(std::string_view region, const re2::RE2& pattern, TextMessage& message) {
  re2::StringPiece rest(region.data(), region.size());
  re2::StringPiece pid;
  re2::StringPiece size;
  while (re2::RE2::FindAndConsume(&rest, pattern, &pid, &size)) {
    const std::optional<double> bytes = printed_bytes(view(size));
    if (bytes) message.processes.emplace_back(whole_number(view(pid)).value_or(-1), std::round(*bytes));
  }
}

// "(GPU 0;" or ". GPU 0 has".
void take_device(std::string_view region, TextMessage& message) {
  const size_t at = region.find("PU");
  if (at == std::string_view::npos || at > 4) return;
  const std::string_view digits = region.substr(at + 2);
  const size_t end = std::min(digits.find_first_not_of("0123456789"), digits.size());
  const std::optional<int64_t> number = whole_number(digits.substr(0, end));
  if (number && *number < 4096) message.gpu = static_cast<int>(*number);
}

}  // namespace

struct Matcher::Compiled {
  const Template* row = nullptr;
  std::unique_ptr<re2::RE2> pattern;
  std::vector<std::string> names;  // of the groups, "" for those without
};

Matcher::Matcher() {
  std::map<std::string, size_t, std::less<>> index;
  for (const std::span<const Template> table :
       {gpu_templates(), other_backend_templates(), host_templates(), ending_templates(), not_memory_templates()}) {
    for (const Template& row : table) {
      Compiled compiled{.row = &row, .pattern = compile(expand(row.pattern, row.is_line)), .names = {}};
      compiled.names.resize(static_cast<size_t>(std::max(compiled.pattern->NumberOfCapturingGroups(), 0)) + 1);
      for (const auto& [name, group] : compiled.pattern->NamedCapturingGroups())
        compiled.names[static_cast<size_t>(group)] = name;
      std::string_view rest = row.triggers;
      while (!rest.empty()) {
        const size_t bar = std::min(rest.find('|'), rest.size());
        const auto [at, is_new] = index.emplace(std::string(rest.substr(0, bar)), literals_.size());
        if (is_new) {
          literals_.push_back(at->first);
          by_literal_.emplace_back();
        }
        by_literal_[at->second].push_back(static_cast<uint16_t>(templates_.size()));
        rest.remove_prefix(std::min(bar + 1, rest.size()));
      }
      templates_.push_back(std::move(compiled));
    }
  }
  share_prefixes();
  for (const FieldPattern& field : allocator_fields()) {
    fields_.push_back(compile(expand(field.pattern, false)));
    const auto& names = fields_.back()->NamedCapturingGroups();
    field_names_.push_back(names.empty() ? "" : names.begin()->first);
  }
  process_ = compile(expand(R"(Process (\d+) has (?P<process>)", false) + std::string(kSize) + ")memoryinuse");
}

// The scan names one literal of those that stand at a place, so literals that begin alike share their templates.
void Matcher::share_prefixes() {
  std::vector<std::vector<uint16_t>> shared = by_literal_;
  for (size_t a = 0; a < literals_.size(); ++a) {
    for (size_t b = 0; b < literals_.size(); ++b) {
      if (a == b || !(literals_[a].starts_with(literals_[b]) || literals_[b].starts_with(literals_[a]))) continue;
      shared[a].insert(shared[a].end(), by_literal_[b].begin(), by_literal_[b].end());
    }
    std::sort(shared[a].begin(), shared[a].end());
    shared[a].erase(std::unique(shared[a].begin(), shared[a].end()), shared[a].end());
  }
  by_literal_ = std::move(shared);
}

Matcher::~Matcher() = default;

const Matcher& matcher() {
  static const Matcher all;
  return all;
}

bool Matcher::ok() const {
  return std::all_of(templates_.begin(), templates_.end(), [](const Compiled& each) { return each.pattern->ok(); }) &&
         std::all_of(fields_.begin(), fields_.end(), [](const auto& field) { return field->ok(); }) && process_->ok() &&
         std::all_of(literals_.begin(), literals_.end(), [](const std::string& each) { return each.size() >= 6; });
}

TextMessage Matcher::message_of(const Template& row) {
  TextMessage message;
  message.id = row.id;
  message.vintage = row.vintage;
  message.family = row.family;
  message.kind = row.kind;
  message.also = row.also;
  message.strength = row.strength;
  return message;
}

std::optional<Matcher::Found> Matcher::match_squeezed(const Compiled& compiled, std::string_view piece,
                                                      const CleanText& clean, size_t raw) const {
  constexpr size_t kLongestHead = 1500;
  const size_t at = clean.squeezed_at(raw);
  const std::string_view text = clean.squeezed;
  const size_t end = std::min(text.size(), at + kLongestHead);
  std::vector<re2::StringPiece> groups(compiled.names.size());
  const re2::StringPiece subject(text.data(), text.size());
  if (!compiled.pattern->Match(subject, 0, end, re2::RE2::UNANCHORED, groups.data(), static_cast<int>(groups.size())))
    return std::nullopt;
  const size_t from = static_cast<size_t>(groups[0].data() - text.data());
  const size_t to = from + groups[0].size();
  if (from > at || to <= at) return std::nullopt;
  Found found{.message = message_of(*compiled.row)};
  TextMessage& message = found.message;
  GroupTaker taker(message);
  for (size_t i = 1; i < groups.size(); ++i) {
    if (groups[i].data() == nullptr) continue;
    taker.take(compiled.names[i], view(groups[i]));
    // For people: the words as they were printed, with their blanks.
    if (compiled.names[i] != "what" || groups[i].empty()) continue;
    const size_t first = clean.raw_offsets[static_cast<size_t>(groups[i].data() - text.data())];
    const size_t last = clean.raw_offsets[static_cast<size_t>(groups[i].data() - text.data()) + groups[i].size() - 1];
    message.what = excerpt_of(piece, clean, first, last + 1);
  }
  size_t region_end = to;
  if (compiled.row->fields == Fields::allocator) {
    const std::string_view region = allocator_region(text.substr(to));
    for (size_t i = 0; i < fields_.size(); ++i) take_field(region, *fields_[i], field_names_[i], taker, message);
    take_processes(region, *process_, message);
    take_device(region, message);
    const std::string_view with_hint = text.substr(from, to - from + region.size() + kLongestHint);
    if (const std::string_view vintage = allocator_vintage(with_hint); !vintage.empty()) message.vintage = vintage;
    message.hint = allocator_hint(with_hint);
    region_end += region.size();
  }
  taker.finish(plain_unit_of(compiled.row->id));
  found.begin = clean.raw_offsets[from];
  found.end = static_cast<size_t>(clean.raw_offsets[region_end - 1]) + 1;
  return found;
}

std::optional<Matcher::Found> Matcher::match_lines(const Compiled& compiled, const CleanText& clean, size_t raw) const {
  for (const WrappedLine& line : readings_of_line(clean, raw)) {
    std::vector<re2::StringPiece> groups(compiled.names.size());
    const re2::StringPiece subject(line.text.data(), line.text.size());
    if (!compiled.pattern->Match(subject, 0, subject.size(), re2::RE2::UNANCHORED, groups.data(),
                                 static_cast<int>(groups.size())))
      continue;
    const size_t from = static_cast<size_t>(groups[0].data() - line.text.data());
    if (!line.is_joined_within(from, from + groups[0].size())) continue;
    Found found{.message = message_of(*compiled.row)};
    GroupTaker taker(found.message);
    for (size_t i = 1; i < groups.size(); ++i) {
      if (groups[i].data() != nullptr) taker.take(compiled.names[i], view(groups[i]));
    }
    taker.finish({});
    // A line of megabytes is quoted from what was found on.
    found.begin = from < kLongestExcerpt / 2 ? line.raw_begin : raw;
    found.end = std::max(line.raw_end, raw + 1);
    return found;
  }
  return std::nullopt;
}

std::optional<Matcher::Found> Matcher::match(std::string_view piece, const CleanText& clean, size_t raw,
                                             size_t literal) const {
  for (uint16_t id : by_literal_[literal]) {
    const Compiled& compiled = templates_[id];
    std::optional<Found> found =
        compiled.row->is_line ? match_lines(compiled, clean, raw) : match_squeezed(compiled, piece, clean, raw);
    if (!found) continue;
    TextMessage& message = found->message;
    const CleanLine* head = clean.line_at(found->begin);
    if (!message.rank && head != nullptr) message.rank = head->rank;
    message.excerpt = excerpt_of(piece, clean, found->begin, std::max(found->end, found->begin + 1));
    return found;
  }
  return std::nullopt;
}

}  // namespace oomscope
