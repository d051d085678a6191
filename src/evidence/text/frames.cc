#include "evidence/text/frames.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "evidence/text/patterns.h"

namespace oomscope {
namespace {

constexpr size_t kLongestCode = 200;
constexpr size_t kLongestLine = 2000;
constexpr size_t kMostProgress = 12;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_underline(std::string_view text) {
  return !text.empty() && text.find_first_not_of("^~ ") == std::string_view::npos;
}

bool starts_traceback(std::string_view line) {
  return line.find("Traceback (most recent call last)") != std::string_view::npos;
}

bool same_rank(const CleanLine& line, std::optional<int> rank) { return !rank || !line.rank || line.rank == rank; }

// `File "x.py", line 3, in f`, `File x.py:3, in f(args)`, `x.py:3 in f` (rich), `x.py in f(args)` (IPython of old),
// `Cell In[2], line 3`.
bool take_frame(std::string_view line, std::vector<TextFrame>& frames) {
  static const re2::RE2 python(R"re(File \\?"([^"]{1,400}?)\\?", line\s+(\d+)(?:, in ([^\n]{1,120}))?)re",
                               bytes_options());
  static const re2::RE2 ipython(R"(^File (\S{1,400}?):(\d+), in ([\w.<>]{1,120}))", bytes_options());
  static const re2::RE2 rich(R"(^(\S{1,400}\.pyx?):(\d{1,9}) in ([\w.<>]{1,120})$)", bytes_options());
  static const re2::RE2 old_ipython(R"(^(\S{1,400}\.pyc?|<ipython-input-[^>]{1,80}>) in ([\w.<>]{1,120})\()",
                                    bytes_options());
  // "Cell In[12], line 3, in train(x)", "Input In [5], in <cell line: 3>()", "<ipython-input-3-ab> in <cell line:
  // 1>()".
  static const re2::RE2 cell(
      R"(^((?:Cell|Input) In ?\[\d{1,6}\])(?:, line (\d{1,9}))?(?:, in (?:<cell line: (\d{1,9})>\(\)|([\w.<>]{1,120})))?)",
      bytes_options());
  const re2::StringPiece subject = piece(line);
  TextFrame frame;
  std::string of_cell;
  std::string number;
  if (re2::RE2::PartialMatch(subject, python, &frame.file, &number, &frame.function) ||
      re2::RE2::PartialMatch(subject, ipython, &frame.file, &number, &frame.function) ||
      re2::RE2::PartialMatch(subject, rich, &frame.file, &number, &frame.function)) {
    std::from_chars(number.data(), number.data() + number.size(), frame.line);
  } else if (re2::RE2::PartialMatch(subject, cell, &frame.file, &number, &of_cell, &frame.function)) {
    if (number.empty()) number = of_cell;
    if (frame.function.empty()) frame.function = "<module>";
    std::from_chars(number.data(), number.data() + number.size(), frame.line);
  } else if (!re2::RE2::PartialMatch(subject, old_ipython, &frame.file, &frame.function)) {
    return false;
  }
  frames.push_back(std::move(frame));
  if (frames.size() > kMostFrames) frames.erase(frames.begin());
  return true;
}

// A frame of Python names its function; where it does not, the line was wrapped before it. Says how many lines it took.
size_t take_frame_of_lines(std::span<const CleanLine> lines, std::vector<TextFrame>& frames) {
  constexpr size_t kMostLines = 3;
  constexpr std::string_view kNamesFunction = ", in ";
  const std::string_view first = trimmed(lines.front().text);
  const bool is_whole = !first.starts_with("File \"") || first.find(kNamesFunction) != std::string_view::npos;
  for (size_t count = 2; !is_whole && count <= std::min(lines.size(), kMostLines); ++count) {
    for (std::string_view between : {"", " "}) {
      std::string joined = lines.front().text;
      for (const CleanLine& line : lines.subspan(1, count - 1)) joined += std::string(between) + line.text;
      const bool is_frame = joined.find(kNamesFunction) != std::string::npos && take_frame(trimmed(joined), frames);
      if (is_frame && !frames.back().function.empty()) return count;
      if (is_frame) frames.pop_back();
    }
  }
  return take_frame(first, frames) ? 1 : 0;
}

// The line after a frame is its code, unless it is another frame; IPython and rich mark it with an arrow, `---> 72
// code`.
void take_code(std::string_view line, std::vector<TextFrame>& frames, bool expects_code) {
  static const re2::RE2 arrow(R"(^(?:-+>|\xE2\x9D\xB1) *\d+\s(.*))", bytes_options());
  std::string code;
  if (re2::RE2::PartialMatch(piece(line), arrow, &code)) {
    if (frames.empty()) frames.push_back({});
    frames.back().code = std::string(trimmed(code)).substr(0, kLongestCode);
    return;
  }
  if (expects_code && !is_underline(line)) frames.back().code = std::string(trimmed(line)).substr(0, kLongestCode);
}

}  // namespace

std::vector<TextFrame> last_traceback(std::span<const CleanLine> lines, std::optional<int> rank) {
  std::vector<TextFrame> frames;
  bool expects_code = false;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!same_rank(lines[i], rank)) continue;
    const std::string_view text = trimmed(lines[i].text);
    if (starts_traceback(text)) {
      frames.clear();
      expects_code = false;
      continue;
    }
    if (const size_t count = take_frame_of_lines(lines.subspan(i), frames)) {
      i += count - 1;
      expects_code = true;
      continue;
    }
    if (text.empty()) continue;
    take_code(text, frames, expects_code && !frames.empty());
    expects_code = false;
  }
  return frames;
}

std::optional<LastError> last_error(std::span<const CleanLine> lines) {
  static const re2::RE2 error(R"(^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception|Failed|Interrupt))(?::.*)?$)",
                              bytes_options());
  static const re2::RE2 memory(R"((?i:memor|alloc|\boom\b|killed|resource))", bytes_options());
  static const re2::RE2 ran_out(R"((?i:out of memory|outofmemory|\boom\b|memory ?error|cannot allocate|\bkilled\b))",
                                bytes_options());
  static const re2::RE2 task(R"(^srun: error: .{1,100}: tasks? )", bytes_options());  // ended behind another one
  constexpr size_t kMostBehind = 20;  // lines of a launcher, a shell, a clean-up
  constexpr size_t kShort = 5;        // lines of an error that was pasted alone
  bool in_traceback = lines.size() <= kShort;
  size_t behind = 0;
  bool names_memory = false;  // since the traceback began
  std::optional<LastError> found;
  for (const CleanLine& line : lines) {
    const std::string_view text = trimmed(line.text);
    if (text.empty()) continue;
    ++behind;
    if (starts_traceback(text)) {
      in_traceback = true;
      names_memory = false;
      found.reset();
    }
    const bool tells = re2::RE2::PartialMatch(piece(text), ran_out) && !re2::RE2::PartialMatch(piece(text), task);
    names_memory |= in_traceback && tells;
    LastError candidate;
    if (!in_traceback || found || !re2::RE2::PartialMatch(piece(text), error, &candidate.name)) continue;
    candidate.text = std::string(text.substr(0, kLongestCode));
    candidate.raw_begin = line.raw_begin;
    found = std::move(candidate);
    behind = 0;
  }
  const bool is_last = found && behind <= kMostBehind;
  if (!is_last || names_memory || re2::RE2::PartialMatch(found->text, memory)) return std::nullopt;
  return found;
}

std::vector<std::string> progress_lines(std::span<const CleanLine> lines) {
  static const re2::RE2 progress(
      R"((?i:\bepochs?\b|\biter(?:ation)?s?\b|\bsteps?\b|\bbatch(?:es)?\b|\bvalid(?:at(?:e|ing|ion))?\b|\beval(?:uat(?:e|ing|ion))?\b|)"
      R"(\btest(?:ing)?\b|\bsav(?:e|ing|ed)\b|\bcheckpoint|\bload(?:ing|ed)?\b|\bresum(?:e|ing|ed)\b)|\d+%\|| \d+/\d+ |)"
      R"((?i:\b(?:fold|trial|config|run|experiment|model)[ #:]{1,2}(?:\d+|[b-z])\b))",
      bytes_options());
  std::vector<std::string> found;
  for (auto line = lines.rbegin(); line != lines.rend() && found.size() < kMostProgress; ++line) {
    const std::string_view text = trimmed(line->text);
    if (text.empty() || text.size() > kLongestLine || text.starts_with("File ")) continue;
    if (re2::RE2::PartialMatch(piece(text), progress)) found.emplace_back(text.substr(0, kLongestCode));
  }
  std::reverse(found.begin(), found.end());
  return found;
}

std::string last_line(std::span<const CleanLine> lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const std::string_view text = trimmed(line->text);
    if (!text.empty() && !is_underline(text)) return std::string(text.substr(0, kLongestCode));
  }
  return {};
}

std::optional<PrintedTime> last_time(std::string_view raw) {
  static const re2::RE2 stamp(R"((\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?)"
                              R"((?: ?(Z\b|UTC\b|GMT\b)| ?([+-])([01]\d):?([0-5]\d)\b)?)",
                              bytes_options());
  constexpr size_t kNear = 2000;
  const std::string_view near = raw.substr(raw.size() - std::min(raw.size(), kNear));
  re2::StringPiece rest(near.data(), near.size());
  std::optional<PrintedTime> found;
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  std::string fraction;
  std::string utc;
  std::string sign;
  std::string hours;  // of the offset
  std::string minutes;
  while (re2::RE2::FindAndConsume(&rest, stamp, &year, &month, &day, &hour, &minute, &second, &fraction, &utc, &sign,
                                  &hours, &minutes)) {
    if (month < 1 || month > 12 || day < 1 || day > 31) continue;
    const std::chrono::sys_days date = std::chrono::year(year) / month / day;
    PrintedTime time;
    time.seconds = static_cast<double>(date.time_since_epoch().count()) * 86400 + hour * 3600 + minute * 60 + second;
    for (char digit : fraction) time.seconds += (digit - '0') * (time.resolution /= 10);
    time.has_zone = !utc.empty() || !sign.empty();
    if (!sign.empty()) time.seconds -= (sign == "-" ? -60 : 60) * (std::stoi(hours) * 60 + std::stoi(minutes));
    found = time;
  }
  return found;
}

}  // namespace oomscope
