#include "evidence/text/frames.h"

#include <re2/re2.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "types/gpu_names.h"

namespace oomscope {
namespace {

constexpr size_t kLongestCode = 200;
constexpr size_t kLongestLine = 2000;
constexpr size_t kMostProgress = 12;

re2::RE2::Options bytes_options() {
  re2::RE2::Options options;
  options.set_encoding(re2::RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  return options;
}

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

// `File "x.py", line 3, in f`, `File x.py:3, in f(args)`, `x.py in f(args)` (IPython of old), `---> 72     code`.
bool take_frame(std::string_view line, std::vector<TextFrame>& frames) {
  static const re2::RE2 python(R"re(File "([^"]{1,400})", line\s+(\d+)(?:, in ([^\n]{1,120}))?)re", bytes_options());
  static const re2::RE2 ipython(R"(^File (\S{1,400}?):(\d+), in ([\w.<>]{1,120}))", bytes_options());
  static const re2::RE2 old_ipython(R"(^(\S{1,400}\.pyc?|<ipython-input-[^>]{1,80}>) in ([\w.<>]{1,120})\()",
                                    bytes_options());
  const re2::StringPiece subject(line.data(), std::min(line.size(), kLongestLine));
  TextFrame frame;
  std::string number;
  if (re2::RE2::PartialMatch(subject, python, &frame.file, &number, &frame.function) ||
      re2::RE2::PartialMatch(subject, ipython, &frame.file, &number, &frame.function)) {
    std::from_chars(number.data(), number.data() + number.size(), frame.line);
  } else if (!re2::RE2::PartialMatch(subject, old_ipython, &frame.file, &frame.function)) {
    return false;
  }
  frames.push_back(std::move(frame));
  if (frames.size() > kMostFrames) frames.erase(frames.begin());
  return true;
}

// The line after a frame is its code, unless it is another frame; IPython marks it with an arrow.
void take_code(std::string_view line, std::vector<TextFrame>& frames, bool expects_code) {
  static const re2::RE2 arrow(R"(^-+> ?\d+\s(.*))", bytes_options());
  std::string code;
  if (re2::RE2::PartialMatch(re2::StringPiece(line.data(), std::min(line.size(), kLongestLine)), arrow, &code)) {
    if (frames.empty()) frames.push_back({});
    frames.back().code = std::string(trimmed(code)).substr(0, kLongestCode);
    return;
  }
  if (expects_code && !is_underline(line)) frames.back().code = std::string(trimmed(line)).substr(0, kLongestCode);
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

std::vector<TextFrame> last_traceback(std::span<const CleanLine> lines, std::optional<int> rank) {
  std::vector<TextFrame> frames;
  bool expects_code = false;
  for (const CleanLine& line : lines) {
    if (!same_rank(line, rank)) continue;
    const std::string_view text = trimmed(line.text);
    if (starts_traceback(text)) {
      frames.clear();
      expects_code = false;
      continue;
    }
    if (take_frame(text, frames)) {
      expects_code = true;
      continue;
    }
    if (text.empty()) continue;
    take_code(text, frames, expects_code && !frames.empty());
    expects_code = false;
  }
  return frames;
}

std::vector<std::string> progress_lines(std::span<const CleanLine> lines) {
  static const re2::RE2 progress(
      R"((?i:\bepochs?\b|\biter(?:ation)?s?\b|\bsteps?\b|\bbatch(?:es)?\b|\bvalid(?:at(?:e|ing|ion))?\b|\beval(?:uat(?:e|ing|ion))?\b|)"
      R"(\btest(?:ing)?\b|\bsav(?:e|ing|ed)\b|\bcheckpoint|\bload(?:ing|ed)?\b|\bresum(?:e|ing|ed)\b)|\d+%\|| \d+/\d+ )",
      bytes_options());
  std::vector<std::string> found;
  for (auto line = lines.rbegin(); line != lines.rend() && found.size() < kMostProgress; ++line) {
    const std::string_view text = trimmed(line->text);
    if (text.empty() || text.size() > kLongestLine || text.starts_with("File ")) continue;
    if (re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), progress))
      found.emplace_back(text.substr(0, kLongestCode));
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

std::optional<double> last_time(std::string_view raw) {
  static const re2::RE2 stamp(R"((\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?)",
                              bytes_options());
  constexpr size_t kNear = 2000;
  const std::string_view near = raw.substr(raw.size() - std::min(raw.size(), kNear));
  re2::StringPiece rest(near.data(), near.size());
  std::optional<double> found;
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  std::string fraction;
  while (re2::RE2::FindAndConsume(&rest, stamp, &year, &month, &day, &hour, &minute, &second, &fraction)) {
    if (month < 1 || month > 12 || day < 1 || day > 31) continue;
    const std::chrono::sys_days date = std::chrono::year(year) / month / day;
    double value = static_cast<double>(date.time_since_epoch().count()) * 86400 + hour * 3600 + minute * 60 + second;
    double scale = 1;
    for (char digit : fraction) value += (digit - '0') * (scale /= 10);
    found = value;
  }
  return found;
}

// gpustat: "[0] Tesla V100 | 44'C, 0 % | 15836 / 16130 MB |".
void read_gpustat(re2::StringPiece text, Surroundings& around) {
  static const re2::RE2 row(R"(\[(\d{1,3})\] ([\w ().-]{2,60}?)\s*\|\s*\d+'C,.{0,40}?\|\s*(\d{1,9}) / (\d{1,9}) MB)",
                            bytes_options());
  std::vector<ListedGpu> found;
  ListedGpu gpu;
  int64_t used = 0;
  int64_t total = 0;
  while (found.size() < 1024 && re2::RE2::FindAndConsume(&text, row, &gpu.index, &gpu.name, &used, &total)) {
    gpu.used_bytes = static_cast<double>(used) * 1048576;
    gpu.total_bytes = static_cast<double>(total) * 1048576;
    found.push_back(gpu);
  }
  if (!found.empty()) around.gpus = std::move(found);
}

// A setting that is in force: in the command line, the environment, a file of variables or in code. PyTorch's own hint
// ("try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid ...") is none.
bool sets_expandable_segments(re2::StringPiece text) {
  static const re2::RE2 setting(
      R"re((try\s*setting\s*PYTORCH_(?:CUDA_|HIP_)?)?(?:ALLOC_CONF["'\\\])]*\s*[=:,]?\s*(?:value\s*:\s*)?|allocator_settings\()["'\\]*)re"
      R"re([\w:.,\[\]>|-]*?expandable_segments\s?:\s?True([^\n"']{0,40}\s*to\s*avoid|\s*to\s*avoid)?)re",
      bytes_options());
  re2::StringPiece hint;
  re2::StringPiece purpose;
  while (re2::RE2::FindAndConsume(&text, setting, &hint, &purpose)) {
    if (hint.empty() && purpose.empty()) return true;
  }
  return false;
}

// The first name of a card that tells its compute capability.
void find_gpu_name(re2::StringPiece text, Surroundings& around) {
  static const re2::RE2 named(R"(((?:NVIDIA|Tesla|GeForce|Quadro|TITAN)[ -][\w -]{2,40}|\b[VAHP]100\b))",
                              bytes_options());
  constexpr int kMostLooks = 100;
  std::string name;
  for (int i = 0; i < kMostLooks && re2::RE2::FindAndConsume(&text, named, &name); ++i) {
    if (!compute_capability(name)) continue;
    around.gpu_name = name;
    return;
  }
}

// The loader's arguments in code, a configuration or a command line.
void read_loader(re2::StringPiece text, Surroundings& around) {
  static const re2::RE2 workers(R"((?:\bnum[_-]|_num_|--)workers["']?\s*[:= ]\s*(\d{1,4})\b)", bytes_options());
  static const re2::RE2 prefetch(R"(\bprefetch[_-]factor["']?\s*[:= ]\s*(\d{1,4})\b)", bytes_options());
  static const re2::RE2 batch(R"(batch[_-]size["']?\s*[:= ]\s*(\d{1,6})\b)", bytes_options());
  static const re2::RE2 pinned(R"(\bpin[_-]memory["']?\s*[:= ]\s*(True|False)\b)", bytes_options());
  int number = 0;
  std::string word;
  if (!around.num_workers && re2::RE2::PartialMatch(text, workers, &number)) around.num_workers = number;
  if (!around.prefetch_factor && re2::RE2::PartialMatch(text, prefetch, &number)) around.prefetch_factor = number;
  if (!around.batch_size && re2::RE2::PartialMatch(text, batch, &number)) around.batch_size = number;
  if (!around.pin_memory && re2::RE2::PartialMatch(text, pinned, &word)) around.pin_memory = word == "True";
}

void look_around(std::string_view raw, Surroundings& around) {
  static const re2::RE2 version(
      R"((?i:pytorch version|torch version|torch\.__version__|torch\s*==|torch\s*:)\s*[:=]?\s*v?(\d\.\d{1,2}(?:\.\d+)?(?:[.+\w]{0,40}))|)"
      R"(\btorch[ -](\d\.\d{1,2}\.\d+(?:\+\w+)?))",
      bytes_options());
  static const re2::RE2 cuda(R"((?i:CUDA used to build PyTorch|CUDA version)\s*:\s*(\d+\.\d+))", bytes_options());
  const re2::StringPiece subject(raw.data(), raw.size());
  std::string first;
  std::string second;
  if (around.torch_version.empty() && re2::RE2::PartialMatch(subject, version, &first, &second))
    around.torch_version = first.empty() ? second : first;
  if (around.cuda_version.empty()) (void)re2::RE2::PartialMatch(subject, cuda, &around.cuda_version);
  read_gpustat(subject, around);
  read_loader(subject, around);
  around.is_windows |=
      contains(raw, ":\\") && (contains(raw, ".py\"") || contains(raw, ".dll") || contains(raw, "WinError"));
  around.is_wsl |= contains(raw, "WSL") || contains(raw, "/mnt/c/") || contains(raw, "microsoft-standard");
  around.is_notebook |= contains(raw, "ipykernel") || contains(raw, "<ipython-input") || contains(raw, "/content/") ||
                        contains(raw, "----> ") || contains(raw, "/kaggle/");
  around.is_container |= contains(raw, "docker") || contains(raw, "kubepods") || contains(raw, "/.dockerenv") ||
                         contains(raw, "OOMKilled") || contains(raw, "containerd");
  around.is_slurm |= contains(raw, "slurm") || contains(raw, "srun:");
  around.expandable_segments |= sets_expandable_segments(subject) || contains(raw, "expandable_segments is enabled");
  if (around.gpu_name.empty()) find_gpu_name(subject, around);
  if (around.framework.empty()) {
    for (std::string_view name : {"deepspeed", "lightning", "accelerate", "transformers"}) {
      if (contains(raw, std::string("/") + std::string(name)) && around.framework.empty()) around.framework = name;
    }
  }
}

}  // namespace oomscope
