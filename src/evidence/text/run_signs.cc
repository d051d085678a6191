#include "evidence/text/run_signs.h"

#include <algorithm>

#include "evidence/text/patterns.h"

namespace oomscope {
namespace {

constexpr size_t kLongestText = 120;

// "step 12 ... loss", "{'loss': 1.2, 'epoch': 0.35}": a counter, and something measured beside it.
bool take_step(const re2::StringPiece& text, RunSign& sign) {
  static const re2::RE2 counter(
      R"(\b((?i:epochs?|(?:global[_ ]?)?steps?|iter(?:ation)?s?|(?:num[_ ])?updates?|batch(?:es)?))\b["']?(?:\s*[:=#\[(])*\s*["']?(\d{1,12}(?:\.\d{1,6})?)\b)"
      R"(|(\[) *(\d{1,12})/\d{1,12} *\])",
      bytes_options());
  static const re2::RE2 measured(
      R"((?i:loss|\bacc|\blr\b|it/s|s/it|\bppl\b|reward|accuracy|\btime\b|elapsed|\beta\b|tokens|samples/s|\d+%|\[\d+/\d+\]|\b(?:epoch|step|iteration) \d+/\d+))",
      bytes_options());
  if (!re2::RE2::PartialMatch(text, measured)) return false;
  re2::StringPiece rest = text;
  std::string name;
  std::string number;
  std::string bracket;  // "Epoch: [0][20/500]"
  std::string of_bracket;
  while (re2::RE2::FindAndConsume(&rest, counter, &name, &number, &bracket, &of_bracket)) {  // "epoch 1 step 12"
    sign.series += name + bracket + " ";
    sign.number += number + of_bracket + " ";
  }
  return !sign.series.empty();
}

// "12%|#2   | 12/100 [00:03<00:30". Two bars have two series, told by their totals; one bar an epoch is one series.
bool take_bar(const re2::StringPiece& text, RunSign& sign) {
  static const re2::RE2 bar(R"((?:\b(?i:epoch) *(\d{1,12})\b.{0,80})?(\d{1,12})(/\d{1,12}) \[\d+:\d\d)",
                            bytes_options());
  std::string epoch;
  if (!re2::RE2::PartialMatch(text, bar, &epoch, &sign.number, &sign.series)) return false;
  sign.number = epoch + " " + sign.number;
  return true;
}

bool is_finish(const re2::StringPiece& text) {
  static const re2::RE2 finish(
      R"((?i:\b(?:training|train|job|fit(?:ting)?|fine-?tuning|evaluation|experiment|all epochs)\b.{0,40}\b(?:completed?|finished|done|succeeded)\b|)"
      R"(\b(?:finished|completed|done)\b.{0,12}\b(?:training|successfully|fitting|fine-?tuning)\b|)"
      R"(^\W*(?:done|finished|completed|success)\W*$|\bexit(?:ed)?(?: with)?(?: code| status)? ?[:=]? ?0\b|\btrain_runtime\b)|)"
      R"(`Trainer\.fit` stopped: `max_|(?i:\ball (?:\d+ )?tests passed\b|^[= ]*\d+ passed in [\d.]+ ?s|)"
      R"(\b(?:saved (?:the |final |best ){0,2}model|model (?:was )?saved)\b))",
      bytes_options());
  static const re2::RE2 contrary(
      R"((?i:error|fail|exception|\bnot\b|\bwithout\b|\bif\b|\bwhen\b|code:? [1-9-]|emergency|crash|interrupt))",
      bytes_options());
  return re2::RE2::PartialMatch(text, finish) && !re2::RE2::PartialMatch(text, contrary);
}

std::optional<RunSign> sign_of(std::string_view line) {
  const re2::StringPiece text = piece(line);
  RunSign sign;
  if (line.find_first_not_of(" \t") == std::string_view::npos) return std::nullopt;
  sign.is_finish = is_finish(text);
  if (!sign.is_finish && !take_bar(text, sign) && !take_step(text, sign)) return std::nullopt;
  const size_t begin = line.find_first_not_of(" \t");
  sign.text = std::string(line.substr(begin, kLongestText));
  return sign;
}

}  // namespace

std::vector<RunSign> run_signs(std::span<const CleanLine> lines, std::optional<int> rank) {
  std::vector<RunSign> signs;
  for (const CleanLine& line : lines) {
    std::optional<RunSign> sign = line.rank == rank ? sign_of(line.text) : std::nullopt;
    if (!sign) continue;
    sign->offset_bytes = static_cast<int64_t>(line.raw_begin);
    if (signs.size() == kMostSigns) signs.erase(signs.begin() + kMostSigns / 2);
    signs.push_back(*std::move(sign));
  }
  return signs;
}

bool may_be_overtaken(std::span<const CleanLine> lines) {
  constexpr std::string_view kHead = "Traceback (most recent call last)";
  bool has_sign = false;
  bool is_overtaken = false;
  for (const CleanLine& line : lines) {
    const size_t head = line.text.find(kHead);
    if (head != std::string::npos) {
      is_overtaken = !has_sign || line.text.find_first_not_of(' ') != head;
    } else {
      has_sign = has_sign || sign_of(line.text).has_value();
    }
  }
  return is_overtaken;
}

bool ends_by_launcher(std::span<const CleanLine> lines) {
  static const re2::RE2 launcher(
      R"(ChildFailedError|torch\.distributed\.elastic|Process(?:Raised|Exited)Exception|SpawnException|)"
      R"(Sending process \d+ closing signal|(?i:exitcode|exit code|return code) *[:=]? *-?[1-9]|non-zero exit|)"
      R"(core dumped|^Aborted|srun: error|slurmstepd: error|CalledProcessError|mpirun (?:noticed|detected))",
      bytes_options());
  constexpr size_t kMostLines = 60;
  const std::span<const CleanLine> last = lines.last(std::min(lines.size(), kMostLines));
  // What a run says of its own end behind a launcher's line makes that line one of something earlier.
  for (auto line = last.rbegin(); line != last.rend(); ++line) {
    if (is_finish(piece(line->text))) return false;
    if (re2::RE2::PartialMatch(piece(line->text), launcher)) return true;
  }
  return false;
}

Handling handling_of(std::span<const CleanLine> lines, std::optional<int> rank) {
  static const re2::RE2 ignored(R"((?i:ignoring this choice|\bnot a failure\b|non-fatal|not fatal))", bytes_options());
  static const re2::RE2 handled(
      R"((?i:\bskip(?:ping|ped)\b|\bretry(?:ing)?\b|\btry(?:ing)? again\b|\brecover(?:ed|ing)?\b|\bfall(?:ing|s)? ?back\b|)"
      R"(\btrying (?:a |with )?(?:a )?(?:smaller |lower )?batch|\b(?:reduc|decreas|halv|lower)(?:e|ed|ing)\b.{0,20}\bbatch|)"
      R"(\bcontinuing\b|\bwill continue\b|\b(?:empty|clear)ing (?:the )?(?:cuda |gpu )?cache\b))",
      bytes_options());
  constexpr size_t kNear = 5;  // lines with anything on them
  Handling found = Handling::none;
  size_t seen = 0;
  for (const CleanLine& line : lines) {
    if (is_of_other_rank(line, rank) || line.text.find_first_not_of(' ') == std::string::npos) continue;
    if (++seen > kNear) break;
    const re2::StringPiece text = piece(line.text);
    if (re2::RE2::PartialMatch(text, ignored)) return Handling::ignored;
    if (re2::RE2::PartialMatch(text, handled)) found = Handling::taken;
  }
  return found;
}

}  // namespace oomscope
