#include "evidence/text/text_reader.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>

#include "base/bytes_text.h"
#include "evidence/byte_source.h"
#include "evidence/rank_files.h"
#include "evidence/text/byte_scan.h"
#include "evidence/text/cut_literals.h"
#include "evidence/text/frames.h"
#include "evidence/text/matcher.h"
#include "evidence/text/patterns.h"
#include "evidence/text/run_signs.h"
#include "evidence/text/squeeze.h"
#include "evidence/text/surroundings.h"
#include "evidence/text/tables.h"
#include "evidence/text/trigger_scan.h"

namespace oomscope {
namespace {

constexpr char kEscape = '\x1B';
constexpr size_t kChunkBytes = size_t{4} << 20;
constexpr size_t kBehindBytes = size_t{256} << 10;   // kept of what was scanned: context, and the last part at the end
constexpr size_t kAheadBytes = size_t{16} << 10;     // a message may reach so far beyond its head
constexpr size_t kLookedAtBytes = size_t{24} << 10;  // looked at for tracebacks and progress
constexpr size_t kTableBytes = size_t{12} << 10;
constexpr int64_t kMostLooks = 3000;    // at one literal, before the last part of the text
constexpr size_t kMostMessages = 2000;  // kept; more are counted
constexpr size_t kMostContexts = 200;   // messages with frames and progress
constexpr size_t kMostBehind = 2000;    // messages behind which signs of life are looked for
constexpr int64_t kMostCuts = 50000;    // comparisons with the lines behind a break, before the last part

// Literals of the messages, then those of the tables.
const TriggerScan& scanner() {
  static const TriggerScan scan([] {
    std::vector<std::string> all = matcher().literals();
    for (std::string_view trigger : table_triggers()) all.emplace_back(trigger);
    return all;
  }());
  return scan;
}

// The literals of a text in order, those that a line break cuts among them.
class Hits {
 public:
  Hits(std::string_view text, size_t from, int64_t& budget)
      : text_(text),
        from_(from),
        budget_(budget),
        whole_(scanner().next(text, from)),
        line_break_(text.find('\n', from)),
        escape_(text.find(kEscape, from)) {}

  // At npos: no more.
  TriggerScan::Hit next() {
    gather();
    if (!cut_.empty() && cut_.front().at <= whole_.at) {
      const TriggerScan::Hit hit = cut_.front();
      cut_.pop_front();
      return hit;
    }
    const TriggerScan::Hit hit = whole_;
    if (hit.at < text_.size()) whole_ = scanner().next(text_, hit.at + 1);
    return hit;
  }

 private:
  static const CutLiterals& cut_literals() {
    static const CutLiterals all(scanner().literals());
    return all;
  }

  // Of all breaks and colours that may cut a literal which begins before the next whole one.
  void gather() {
    while (std::min(line_break_, escape_) < text_.size()) {
      size_t& next = line_break_ < escape_ ? line_break_ : escape_;
      if (whole_.at < text_.size() && next >= whole_.at + cut_literals_.longest()) return;
      if (cut_literals_.may_cut(text_, next)) {
        for (const TriggerScan::Hit& hit : cut_literals_.at(text_, next, budget_)) {
          if (hit.at >= from_) cut_.push_back(hit);
        }
      }
      next = next_byte(text_, text_[next], behind_run(text_, next));
    }
  }

  std::string_view text_;
  size_t from_;
  int64_t& budget_;
  const CutLiterals& cut_literals_ = cut_literals();
  TriggerScan::Hit whole_;
  std::deque<TriggerScan::Hit> cut_;
  size_t line_break_;  // the next one
  size_t escape_;      // of a colour, likewise
};

// Two bytes a character, by the mark at the start, to UTF-8.
class Utf16Source final : public ByteSource {
 public:
  Utf16Source(ByteSource& source, bool is_big_endian) : source_(source), is_big_endian_(is_big_endian) {}

  Result<size_t> read(std::span<uint8_t> out) override {
    // A unit becomes at most three bytes; half a unit waits for the next call.
    std::vector<uint8_t> units(std::max<size_t>(out.size() / 3, 2));
    while (ready_.empty()) {
      OOM_TRY(const size_t got, source_.read(units));
      if (got == 0) return size_t{0};
      for (size_t i = 0; i < got; ++i) take(units[i]);
    }
    const size_t count = std::min(out.size(), ready_.size());
    std::memcpy(out.data(), ready_.data(), count);
    ready_.erase(0, count);
    return count;
  }

 private:
  void take(uint8_t byte) {
    if (!has_first_) {
      first_ = byte;
      has_first_ = true;
      return;
    }
    has_first_ = false;
    const uint32_t unit =
        is_big_endian_ ? static_cast<uint32_t>(first_ << 8 | byte) : static_cast<uint32_t>(byte << 8 | first_);
    if (unit < 0x80) {
      ready_ += static_cast<char>(unit);
    } else if (unit < 0x800) {
      ready_ += static_cast<char>(0xC0 | (unit >> 6));
      ready_ += static_cast<char>(0x80 | (unit & 63));
    } else if (unit < 0xD800 || unit > 0xDFFF) {
      ready_ += static_cast<char>(0xE0 | (unit >> 12));
      ready_ += static_cast<char>(0x80 | ((unit >> 6) & 63));
      ready_ += static_cast<char>(0x80 | (unit & 63));
    } else {
      ready_ += '?';  // half of a character beyond the first 65,536: none is in a message
    }
  }

  ByteSource& source_;
  bool is_big_endian_;
  bool has_first_ = false;
  uint8_t first_ = 0;
  std::string ready_;
};

class Reader {
 public:
  Reader(ByteSource& source, const std::string& name) : source_(source) {
    const LogRank named = read_log_rank(name);
    evidence_.name = name;
    evidence_.rank = named.rank;
    evidence_.node = named.node;
  }

  Result<TextEvidence> read() {
    looks_.assign(scanner().literals().size(), 0);
    bool at_end = false;
    while (!at_end) {
      OOM_TRY(at_end, fill());
      // The command line and what a program says of itself at its start.
      if (base_ == 0) look_around({buffer_.data(), std::min(size_, kLookedAtBytes)}, evidence_.surroundings);
      scan(at_end);
      if (!at_end) keep_behind();
    }
    finish();
    return std::move(evidence_);
  }

 private:
  // Reads until a chunk is there; true at the end. What can no longer be unpacked ends the text with a caveat.
  Result<bool> fill() {
    constexpr size_t wanted = kChunkBytes + kBehindBytes + kAheadBytes;
    size_t size = size_;
    if (buffer_.empty()) buffer_.resize(wanted);
    bool at_end = false;
    while (size < wanted && !at_end) {
      Result<size_t> got = source_.read(std::span(reinterpret_cast<uint8_t*>(buffer_.data()) + size, wanted - size));
      if (!got) {
        if (base_ + size == 0) return got.error();
        Values values = {{"reason", got.error().what}};
        for (const auto& value : got.error().values) {
          values.emplace_back(value.first == "reason" ? "system" : value.first, value.second);
        }
        evidence_.caveats.push_back({"text-cut", std::move(values), CaveatSource::recording});
      }
      at_end = !got || *got == 0;
      if (got) size += make_blanks_plain(buffer_.data() + size, *got);
    }
    size_ = size;
    return at_end;
  }

  void scan(bool at_end) {
    const std::string_view text(buffer_.data(), size_);
    const size_t limit = at_end ? text.size() : text.size() - std::min(text.size(), kAheadBytes);
    Hits hits(text, scanned_, cut_budget_);
    for (TriggerScan::Hit hit = hits.next(); hit.at < limit; hit = hits.next()) {
      if (hit.at < message_end_ && hit.at < consumed_until(text, hit.at)) continue;
      if (hit.literal >= matcher().literals().size() && has_listing() &&
          is_row_trigger(hit.literal - matcher().literals().size())) {
        continue;
      }
      if (++looks_[hit.literal] > kMostLooks) {
        has_skipped_ = true;
        continue;
      }
      look_at(text, hit);
    }
    scanned_ = std::max(scanned_, limit);
    has_skipped_ |= cut_budget_ <= 0;
    if (at_end && has_skipped_) scan_last_part(text);
  }

  // What was skipped, once more where it matters most.
  void scan_last_part(std::string_view text) {
    constexpr size_t kLastPart = size_t{64} << 10;
    size_t from = text.size() - std::min(text.size(), kLastPart);
    contexts_ = 0;
    from = std::max(from, last_looked_);
    message_end_ = std::max(message_end_, from);
    cut_budget_ = kMostCuts;
    Hits hits(text, from, cut_budget_);
    for (TriggerScan::Hit hit = hits.next(); hit.at < text.size(); hit = hits.next()) {
      if (hit.at >= message_end_) look_at(text, hit);
    }
    evidence_.caveats.push_back({"text-skipped", {}, CaveatSource::model});
  }

  void look_at(std::string_view text, const TriggerScan::Hit& hit) {
    last_looked_ = hit.at + 1;
    if (hit.literal >= matcher().literals().size())
      return look_at_table(text, hit.at, hit.literal - matcher().literals().size());
    const size_t begin = std::max(consumed_until(text, hit.at), piece_begin(text, hit.at));
    constexpr size_t kAheadOfHead = 1600;
    constexpr size_t kAheadAtMost = size_t{8} << 10;  // an allocator's message with some hundred processes
    std::string_view piece = text.substr(begin, hit.at - begin + kAheadOfHead);
    std::optional<Matcher::Found> found =
        matcher().match(piece, clean_text_at(piece, hit.at - begin), hit.at - begin, hit.literal);
    if (!found) return;
    if (found->message.family == Family::allocator) {
      piece = text.substr(begin, hit.at - begin + kAheadAtMost);
      found = matcher().match(piece, clean_text_at(piece, hit.at - begin), hit.at - begin, hit.literal);
      if (!found) return;  // with more text in sight it reads otherwise
    }
    const size_t head = begin + found->begin;
    if (is_of_a_test(text, head) || (!found->message.figures[Figure::tried] && is_mention(text, head))) return;
    message_end_ = std::max(message_end_, begin + found->end);
    if (!follows_any_failure(found->message)) failure_end_ = std::max(failure_end_, begin + found->end);
    (found->message.rank ? rank_ends_[*found->message.rank] : rankless_end_) = begin + found->end;
    ++evidence_.seen[std::string(found->message.id)];
    TextMessage& message = keep(std::move(found->message));
    message.offset_bytes = static_cast<int64_t>(base_ + head);
    message.line = line_of(text, head);
    if (contexts_++ < kMostContexts) {
      add_context(text, head, message);
      look_around(text.substr(head, kAheadAtMost), evidence_.surroundings);
    }
    if (contexts_ <= kMostBehind && message.strength > 0) add_what_follows(text, head, begin + found->end, message);
  }

  // A launcher's words about its processes: of the failure itself they tell nothing.
  static bool follows_any_failure(const TextMessage& message) {
    return message.id == "launcher.cleaning" || message.id == "launcher.failed" || message.id == "ended.cancelled" ||
           message.id == "slurm.killed";
  }

  // "No CUDA out of memory errors", "to avoid CUDA out of memory": words about a failure, and none.
  static bool is_mention(std::string_view text, size_t head) {
    static const re2::RE2 mention(
        R"((?i:\b(?:no|without(?: any)?|never|avoid(?:s|ing)?|prevent(?:s|ing)?|against|in case of|risk of)\s+)"
        R"((?:an? |more )?(?:possible |potential )?["'`]?(?:[\w.]{1,30}: ?)?$))",
        bytes_options());
    // Source that prints it or waits for it, and the help of an option.
    static const re2::RE2 source(R"((?:\bprint|\bwarnings?\.warn|\blog(?:ger|ging)?\.\w+|\bmatch=)\(?[rf]?["'][^"']*$|)"
                                 R"(^\s*(?:usage: |-{1,2}[a-zA-Z][\w-]*[ ,=]).*["'`]$)",
                                 bytes_options());
    constexpr size_t kNear = 80;
    std::string_view before = text.substr(head - std::min(head, kNear), std::min(head, kNear));
    before.remove_prefix(before.find_last_of('\n') + 1);
    const re2::StringPiece words(before.data(), before.size());
    return re2::RE2::PartialMatch(words, mention) || re2::RE2::PartialMatch(words, source);
  }

  // A test's name and its verdict: "test_oom.py::test_raises[CUDA out of memory] PASSED".
  static bool is_of_a_test(std::string_view text, size_t head) {
    static const re2::RE2 verdict(R"(^\S*::.* (?:PASSED|SKIPPED|XFAIL)\b)", bytes_options());
    constexpr size_t kNear = 400;
    const size_t near = head - std::min(head, kNear);
    const size_t begin = near + text.substr(near, head - near).find_last_of('\n') + 1;
    const std::string_view line = text.substr(begin, std::min(text.substr(begin, 2 * kNear).find('\n'), 2 * kNear));
    return re2::RE2::PartialMatch({line.data(), line.size()}, verdict);
  }

  // What the program says and does behind a failure.
  void add_what_follows(std::string_view text, size_t head, size_t end, TextMessage& message) {
    constexpr size_t kFar = size_t{14} << 10;
    constexpr size_t kNear = size_t{3} << 10;
    constexpr size_t kLongestLine = 4000;  // to both sides of what was matched
    const size_t line_end =
        end + std::min(text.substr(end, kLongestLine).find('\n'), std::min(kLongestLine, text.size() - end));
    const std::string_view behind = text.substr(line_end, contexts_ <= kMostContexts ? kFar : kNear);
    const std::vector<CleanLine> lines = clean_lines(behind);
    message.after = placed_signs(text, run_signs(lines, message.rank), line_end);
    message.handling = handling_of(lines, message.rank);
    // Its own line may say so too, behind what was matched or before it.
    const size_t near = head - std::min(head, kLongestLine);
    const size_t line = near + text.substr(near, head - near).find_last_of('\n') + 1;
    const std::string_view own = text.substr(line, line_end - line);
    message.handling = std::max(message.handling, handling_of(clean_lines(own), std::nullopt));
  }

  // With their places in the whole text, `begin` being that of the text they were found in.
  std::vector<RunSign> placed_signs(std::string_view text, std::vector<RunSign> signs, size_t begin) {
    for (RunSign& sign : signs) {
      const size_t at = begin + static_cast<size_t>(sign.offset_bytes);
      sign.line = line_of(text, at);
      sign.offset_bytes = static_cast<int64_t>(base_ + at);
    }
    return signs;
  }

  // Up to where the text is part of messages, as far as the rank of the line at `at` is concerned: the wrapped lines of
  // several ranks may stand between each other.
  size_t consumed_until(std::string_view text, size_t at) const {
    if (at >= message_end_ || rank_ends_.empty()) return message_end_;
    constexpr size_t kLongestPrefix = 300;
    constexpr size_t kLongestLine = 4000;
    const size_t near = at - std::min(at, kLongestLine);
    const size_t line = near + text.substr(near, at - near).find_last_of('\n') + 1;
    const std::optional<int> rank = clean_lines(text.substr(line, std::min(at - line, kLongestPrefix))).front().rank;
    if (!rank) return message_end_;
    const auto own = rank_ends_.find(*rank);
    return std::max(rankless_end_, own == rank_ends_.end() ? size_t{0} : own->second);
  }

  // The first and the last ones: they are worth more than those in the middle.
  TextMessage& keep(TextMessage message) {
    constexpr size_t kHalf = kMostMessages / 2;
    if (evidence_.messages.size() < kHalf) return evidence_.messages.emplace_back(std::move(message));
    if (last_messages_.size() == kHalf) last_messages_.pop_front();
    return last_messages_.emplace_back(std::move(message));
  }

  // Some lines up, since a head may be wrapped, and at most kHeadBytes.
  static size_t piece_begin(std::string_view text, size_t at) {
    constexpr size_t kHeadBytes = 400;
    constexpr int kHeadLines = 8;
    const size_t least = at - std::min(at, kHeadBytes);
    size_t begin = at;
    for (int lines = 0; begin > least; --begin) {
      if (text[begin - 1] == '\n' && ++lines > kHeadLines) break;
    }
    return begin;
  }

  // The last lines as printed, without those of other ranks: their stamps are of other moments.
  static std::string lines_of_rank(std::string_view raw, std::span<const CleanLine> lines, std::optional<int> rank) {
    constexpr size_t kMostLines = 200;
    std::string own;
    for (const CleanLine& line : lines.last(std::min(lines.size(), kMostLines))) {
      if (!rank || !line.rank || line.rank == rank) own += raw.substr(line.raw_begin, line.raw_end - line.raw_begin);
    }
    return own;
  }

  // Behind its last break; one that is written as two characters counts where there are others of that kind.
  static size_t end_of_last_line(std::string_view text) {
    const size_t plain = text.find_last_of('\n') + 1;
    const size_t escaped = text.rfind("\\n");
    const bool is_escaped = escaped != std::string_view::npos && escaped >= plain && text.find("\\n", plain) < escaped;
    return is_escaped ? escaped + 2 : plain;
  }

  void add_context(std::string_view text, size_t head, TextMessage& message) {
    const size_t begin = head - std::min(head, kLookedAtBytes);
    // Whole lines: what stands before the head on its own line ("RuntimeError: ") is part of the message.
    const std::string_view before = text.substr(begin, head - begin);
    const std::string_view raw = before.substr(0, end_of_last_line(before));
    const std::vector<CleanLine> lines = clean_lines(raw);
    message.frames = last_traceback(lines, message.rank);
    message.before = progress_lines(lines);
    message.previous_line = last_line(lines);
    message.stands_in_order = !may_be_overtaken(lines);
    constexpr size_t kLongestPrefix = 100;
    const std::string_view own_line = text.substr(begin + raw.size(), before.size() - raw.size() + kLongestPrefix);
    message.time = last_time(lines_of_rank(raw, lines, message.rank) + std::string(own_line));
    look_around(raw, evidence_.surroundings);
    evidence_.surroundings.is_windows |= contains(own_line, "\\c10\\");  // its source as Windows' builds name it
  }

  [[nodiscard]] bool has_listing() const {
    return !evidence_.surroundings.gpus.empty() || !evidence_.surroundings.gpu_processes.empty();
  }

  void look_at_table(std::string_view text, size_t at, size_t trigger) {
    constexpr size_t kLongestLine = 2000;
    const auto line_begin = [&](size_t from) {
      size_t begin = from;
      while (begin > 0 && from - begin < kLongestLine && text[begin - 1] != '\n') --begin;
      return begin;
    };
    const size_t begin = line_begin(at);
    const size_t before = line_begin(begin - std::min<size_t>(begin, 1));
    Surroundings& around = evidence_.surroundings;
    if (is_row_trigger(trigger)) {
      constexpr size_t kRowBytes = size_t{6} << 10;
      if (!has_listing()) read_rows(plain_lines(text.substr(before, kRowBytes)), around);
      return;
    }
    if (is_process_table(trigger)) {
      constexpr size_t kProcessTableBytes = size_t{128} << 10;  // of a thousand processes
      return read_process_table(text.substr(begin, kProcessTableBytes), around.host_processes);
    }
    const std::string_view piece = text.substr(begin, kTableBytes);
    const std::string_view line_before = text.substr(before, begin - before);
    read_table(plain_lines(piece), line_of(text, begin), line_before, evidence_);
    look_around(piece, around);
  }

  // From 1. Counted onwards from the last one asked for.
  int64_t line_of(std::string_view text, size_t at) {
    if (at < counted_) return lines_ + 1 - line_breaks(text.substr(at, counted_ - at));
    lines_ += line_breaks(text.substr(counted_, at - counted_));
    counted_ = at;
    return lines_ + 1;
  }

  void keep_behind() {
    const size_t drop = scanned_ - std::min(scanned_, kBehindBytes);
    (void)line_of({buffer_.data(), size_}, std::max(drop, counted_));
    std::memmove(buffer_.data(), buffer_.data() + drop, size_ - drop);
    size_ -= drop;
    base_ += drop;
    scanned_ -= drop;
    counted_ -= drop;
    message_end_ -= std::min(message_end_, drop);
    failure_end_ -= std::min(failure_end_, drop);
    rankless_end_ -= std::min(rankless_end_, drop);
    for (auto& [rank, end] : rank_ends_) end -= std::min(end, drop);
    std::erase_if(rank_ends_, [](const auto& each) { return each.second == 0; });
    last_looked_ -= std::min(last_looked_, drop);
  }

  void finish() {
    std::move(last_messages_.begin(), last_messages_.end(), std::back_inserter(evidence_.messages));
    const std::string_view text(buffer_.data(), size_);
    evidence_.size_bytes = static_cast<int64_t>(base_ + text.size());
    evidence_.lines = line_of(text, text.size()) - (text.empty() || text.back() == '\n' ? 1 : 0);
    const std::string_view last = text.substr(text.size() - std::min(text.size(), kLookedAtBytes));
    const std::vector<CleanLine> lines = clean_lines(last);
    evidence_.last_signs = placed_signs(text, run_signs(lines, std::nullopt), text.size() - last.size());
    evidence_.ends_by_launcher = ends_by_launcher(lines);
    if (evidence_.messages.empty()) look_around(last, evidence_.surroundings);
    take_last_error(text, last, lines);
    take_interrupt_mark(text, lines);
  }

  // A person's ^C, or the mark that a notebook shows of a process that was ended for its memory.
  void take_interrupt_mark(std::string_view text, const std::vector<CleanLine>& lines) {
    const auto line = std::find_if(lines.rbegin(), lines.rend(), [](const CleanLine& each) {
      return each.text.find_first_not_of(' ') != std::string::npos;
    });
    const bool tells_nothing = std::all_of(evidence_.messages.begin(), evidence_.messages.end(),
                                           [](const TextMessage& message) { return message.strength == 0; });
    if (!tells_nothing || line == lines.rend() ||
        !std::string_view(line->text).substr(0, line->text.find_last_not_of(' ') + 1).ends_with("^C"))
      return;
    TextMessage message;
    message.id = "ended.interrupt-mark";
    message.family = Family::by_hand;
    message.kind = Kind::not_memory;
    message.also = {Kind::host_oom_killed};
    message.strength = 1;
    message.excerpt = "^C";
    message.offset_bytes = static_cast<int64_t>(base_ + text.size());
    message.line = evidence_.lines;
    message.before = progress_lines(lines);
    ++evidence_.seen["ended.interrupt-mark"];
    evidence_.messages.push_back(std::move(message));
  }

  // A program that died of an error of its own, where nothing else tells of a failure.
  void take_last_error(std::string_view text, std::string_view last, const std::vector<CleanLine>& lines) {
    // Behind a failure that the run outlived there may be another one.
    const bool fails =
        std::any_of(evidence_.messages.begin(), evidence_.messages.end(), [](const TextMessage& message) {
          return message.strength > 0 && message.after.empty() && message.handling == Handling::none &&
                 !follows_any_failure(message);
        });
    const std::optional<LastError> error = fails ? std::nullopt : last_error(lines);
    const size_t of_error = error ? text.size() - last.size() + error->raw_begin : 0;
    if (!error || of_error < failure_end_) return;
    TextMessage message;
    message.id = "program.error";
    message.family = Family::program;
    message.kind = Kind::not_memory;
    message.strength = 1;
    message.what = error->name;
    message.excerpt = error->text;
    message.offset_bytes = static_cast<int64_t>(base_ + of_error);
    message.line = line_of(text, of_error);
    message.frames = last_traceback(lines, std::nullopt);
    ++evidence_.seen["program.error"];
    const auto behind = std::find_if(evidence_.messages.begin(), evidence_.messages.end(),
                                     [&](const TextMessage& each) { return each.offset_bytes > message.offset_bytes; });
    evidence_.messages.insert(behind, std::move(message));
  }

  ByteSource& source_;
  TextEvidence evidence_;
  std::deque<TextMessage> last_messages_;  // behind those in evidence_
  std::vector<char> buffer_;               // its size never changes
  size_t size_ = 0;                        // of what was read into it
  size_t base_ = 0;                        // of the text, of buffer_[0]
  size_t scanned_ = 0;                     // in buffer_, as those below
  size_t counted_ = 0;                     // line breaks are counted up to here
  size_t message_end_ = 0;                 // of the last message
  size_t failure_end_ = 0;                 // of the last one that may tell of the failure itself
  size_t rankless_end_ = 0;                // of the last one whose line names no rank
  std::map<int, size_t> rank_ends_;        // of each rank's last one
  size_t last_looked_ = 0;
  int64_t lines_ = 0;
  size_t contexts_ = 0;
  bool has_skipped_ = false;
  int64_t cut_budget_ = kMostCuts;
  std::vector<int64_t> looks_;
};

}  // namespace

Result<TextEvidence> read_text_source(std::unique_ptr<ByteSource> source, const std::string& name) {
  OOM_TRY(const std::vector<uint8_t> front, peek_source(source));
  const bool is_little = front.size() >= 2 && front[0] == 0xFF && front[1] == 0xFE;
  const bool is_big = front.size() >= 2 && front[0] == 0xFE && front[1] == 0xFF;
  if (!is_little && !is_big) return Reader(*source, name).read();
  Utf16Source utf16(*source, is_big);
  return Reader(utf16, name).read();
}

TextEvidence read_text(std::string_view text, const std::string& name) {
  Result<TextEvidence> evidence =
      read_text_source(memory_source(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size())), name);
  return evidence ? *std::move(evidence) : TextEvidence{};
}

bool looks_like_message(std::string_view text) {
  const TextEvidence evidence = read_text(text, "argument");
  return !evidence.messages.empty() || !evidence.summaries.empty();
}

}  // namespace oomscope
