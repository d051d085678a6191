#include "evidence/text/tables.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "evidence/text/patterns.h"
#include "evidence/text/printed_bytes.h"

namespace oomscope {
namespace {

// The last ones are those of nvidia-smi's rows, for a table whose head was not pasted: "14977MiB / 15360MiB", and the
// end of a process's row.
constexpr size_t kRowTriggers = 3;
constexpr size_t kProcessTable = 0;
constexpr std::array<std::string_view, 10> kTriggers = {"tgid total_vm", "memory summary, device id",
                                                        "nvidia-smi",    "buff/cache",
                                                        "/dev/shm",      "pytorch version",
                                                        "maxrss",        "mib / ",
                                                        "mib |\n",       "mib |\r"};
constexpr size_t kMostRows = 60;
constexpr size_t kMostCards = 1024;

// A cell of a table: "66560 KiB", "0 B".
double cell_value(std::string_view cell) { return printed_bytes(cell).value_or(0); }

double mebibytes(int64_t count) { return static_cast<double>(count) * 1048576; }

// A count of memory_summary(): "763", "880 K", which are thousands.
double count_value(std::string_view cell) {
  const size_t end = std::min(cell.find_first_not_of("0123456789"), cell.size());
  double scale = 1;
  if (cell.find('K', end) != std::string_view::npos) scale = 1e3;
  if (cell.find('M', end) != std::string_view::npos) scale = 1e6;
  return cell_value(cell.substr(0, end)) * scale;
}

// torch.cuda.memory_stats' name of a metric of the table, with those of older releases.
std::string_view metric_of(std::string_view title) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kMetrics = {{
      {"Allocated memory", "allocated_bytes"},
      {"Active memory", "active_bytes"},
      {"Requested memory", "requested_bytes"},
      {"GPU reserved memory", "reserved_bytes"},
      {"Reserved memory", "reserved_bytes"},
      {"Non-releasable memory", "inactive_split_bytes"},
      {"Allocations", "allocation"},
      {"Active allocs", "active"},
      {"GPU reserved segments", "segment"},
      {"Non-releasable allocs", "inactive_split"},
      {"Oversize allocations", "oversize_allocations"},
      {"Oversize GPU segments", "oversize_segments"},
  }};
  for (const auto& [name, metric] : kMetrics) {
    if (title == name) return metric;
  }
  return {};
}

void read_summary_row(const std::string& line, std::string& metric, MemorySummary& summary) {
  static const re2::RE2 row(
      R"(\|\s*([A-Za-z][\w -]*?)\s*\|\s*([\d.]+ *\w*)\s*\|\s*([\d.]+ *\w*)\s*\|\s*([\d.]+ *\w*)\s*\|\s*([\d.]+ *\w*)\s*\|)",
      bytes_options());
  std::string title;
  std::array<std::string, 4> cells;
  if (!re2::RE2::PartialMatch(piece(line), row, &title, &cells[0], &cells[1], &cells[2], &cells[3])) return;
  std::string part = "all";
  if (title == "from large pool") part = "large_pool";
  if (title == "from small pool") part = "small_pool";
  if (part == "all") metric = metric_of(title);
  if (metric.empty()) return;
  SummaryRow out{.metric = metric, .values = {}, .is_count = metric.find("bytes") == std::string::npos};
  if (!metric.starts_with("oversize")) out.metric += "." + part;
  for (size_t i = 0; i < cells.size(); ++i) out.values[i] = out.is_count ? count_value(cells[i]) : cell_value(cells[i]);
  summary.rows.push_back(std::move(out));
}

void read_summary(std::span<const CleanLine> lines, int64_t line_number, TextEvidence& evidence) {
  static const re2::RE2 device(R"(memory summary, device ID (\d{1,4}))", bytes_options());
  static const re2::RE2 events(R"(OOMs: (\d{1,18}).*retries: (\d{1,18}))", bytes_options());
  constexpr size_t kMostSummaries = 256;
  MemorySummary summary{.device = 0, .line = line_number, .rows = {}, .num_ooms = 0, .num_alloc_retries = 0};
  if (lines.empty() || !re2::RE2::PartialMatch(piece(lines.front().text), device, &summary.device)) return;
  std::string metric;
  for (const CleanLine& line : lines.subspan(1, std::min(lines.size() - 1, kMostRows))) {
    const std::string& text = line.text;
    (void)re2::RE2::PartialMatch(piece(text), events, &summary.num_ooms, &summary.num_alloc_retries);
    if (contains(text, "memory summary, device ID")) break;
    read_summary_row(text, metric, summary);
  }
  if (!summary.rows.empty() && evidence.summaries.size() < kMostSummaries)
    evidence.summaries.push_back(std::move(summary));
}

// nvidia-smi: a line with the card's index and name, one with "used / total", then the processes.
class NvidiaSmi {
 public:
  // Without the table's head a row has to look like one: bars on both sides.
  NvidiaSmi(Surroundings& around, bool has_head) : around_(around), has_head_(has_head) {}

  void read(const CleanLine& line) {
    static const re2::RE2 name(R"(^\|?\s*(\d{1,3})\s+([A-Za-z][\w ./-]*?)\s{2,}.*\|)", bytes_options());
    static const re2::RE2 memory(R"((\d{1,9})\s?MiB\s*/\s*(\d{1,9})\s?MiB)", bytes_options());
    static const re2::RE2 row_memory(R"(\|[^|]*?(\d{1,9})\s?MiB\s*/\s*(\d{1,9})\s?MiB\s*\|)", bytes_options());
    static const re2::RE2 process(
        R"(^\|?\s*(\d{1,3})\s+(?:\S+\s+\S+\s+)?(\d{1,9})\s+[CGM+]{1,5}\s+(.{1,200}?)\s+(\d{1,9})\s?MiB)",
        bytes_options());
    int64_t used = 0;
    int64_t total = 0;
    ListedProcess entry;
    if (re2::RE2::PartialMatch(piece(line.text), process, &entry.gpu, &entry.pid, &entry.name, &used)) {
      entry.used_bytes = mebibytes(used);
      if (around_.gpu_processes.size() < kMostCards) around_.gpu_processes.push_back(entry);
    } else if (re2::RE2::PartialMatch(piece(line.text), has_head_ ? memory : row_memory, &used, &total)) {
      gpu_.used_bytes = mebibytes(used);
      gpu_.total_bytes = mebibytes(total);
      if (around_.gpus.size() < kMostCards) around_.gpus.push_back(gpu_);
    } else {
      (void)re2::RE2::PartialMatch(piece(line.text), name, &gpu_.index, &gpu_.name);
    }
  }

 private:
  Surroundings& around_;
  bool has_head_;
  ListedGpu gpu_;
};

void read_nvidia_smi(std::span<const CleanLine> lines, Surroundings& around) {
  around.gpus.clear();
  around.gpu_processes.clear();
  NvidiaSmi table(around, true);
  for (const CleanLine& line : lines.first(std::min<size_t>(lines.size(), 300))) table.read(line);
}

// Cells of a table, each under its title.
class Columns {
 public:
  // The widths are those of the dashes below the titles; empty: bars part the cells.
  Columns(std::string_view titles, std::string_view dashes) {
    for (size_t at = dashes.find('-'); at != std::string_view::npos; at = dashes.find('-', widths_.back().second))
      widths_.emplace_back(at, std::min(dashes.find_first_not_of('-', at), dashes.size()));
    titles_ = cells(titles);
  }

  // Of the column whose title holds `name`; empty: there is none.
  [[nodiscard]] std::string_view cell(std::string_view line, std::string_view name) const {
    const std::vector<std::string_view> all = cells(line);
    for (size_t i = 0; i < std::min(all.size(), titles_.size()); ++i) {
      if (contains(titles_[i], name)) return all[i];
    }
    return {};
  }

 private:
  [[nodiscard]] std::vector<std::string_view> cells(std::string_view line) const {
    return widths_.empty() ? cells_by_bars(line) : cells_by_widths(line);
  }

  static std::vector<std::string_view> cells_by_bars(std::string_view line) {
    std::vector<std::string_view> all;
    for (size_t at = 0; at <= line.size();) {
      const size_t bar = std::min(line.find('|', at), line.size());
      all.push_back(line.substr(at, bar - at));
      at = bar + 1;
    }
    return all;
  }

  // A word belongs to the column that it lies in for the most part.
  [[nodiscard]] std::vector<std::string_view> cells_by_widths(std::string_view line) const {
    std::vector<std::string_view> all(widths_.size());
    for (size_t at = line.find_first_not_of(' '); at < line.size(); at = line.find_first_not_of(' ', at)) {
      const size_t end = std::min(line.find(' ', at), line.size());
      const size_t middle = at + (end - at) / 2;
      for (size_t i = 0; i < widths_.size(); ++i) {
        if (middle >= widths_[i].first && middle < widths_[i].second) all[i] = line.substr(at, end - at);
      }
      at = end;
    }
    return all;
  }

  std::vector<std::pair<size_t, size_t>> widths_;
  std::vector<std::string_view> titles_;
};

// sacct: what a job asked for ("16G", "16Gn" a node), and the most that one of its steps used.
void read_sacct(std::span<const CleanLine> lines, Surroundings& around) {
  static const re2::RE2 size(R"(^\s*(\d+(?:\.\d+)?[KMGT])n?\s*$)", bytes_options());
  constexpr size_t kMostLines = 64;
  if (lines.size() < 2) return;
  const bool has_bars = contains(lines[0].text, "|");
  if (!has_bars && !contains(lines[1].text, "---")) return;
  const Columns columns(lines[0].text, has_bars ? std::string_view{} : std::string_view(lines[1].text));
  const auto take = [](std::string_view cell, std::optional<double>& most) {
    std::string text;
    if (re2::RE2::PartialMatch(piece(cell), size, &text)) most = std::max(most.value_or(0), cell_value(text));
  };
  for (const CleanLine& line : lines.subspan(1, std::min(lines.size() - 1, kMostLines))) {
    take(columns.cell(line.text, "ReqMem"), around.job_limit_bytes);
    take(columns.cell(line.text, "MaxRSS"), around.job_used_bytes);
  }
}

// Bytes of the unit that an option of free asks for: "-m", "-tg", "--giga"; 0: of none.
double unit_of_option(std::string_view option) {
  constexpr auto kLong = std::to_array<std::pair<std::string_view, double>>({{"--bytes", 1},
                                                                             {"--kilo", 1e3},
                                                                             {"--mega", 1e6},
                                                                             {"--giga", 1e9},
                                                                             {"--tera", 1e12},
                                                                             {"--kibi", 0x1p10},
                                                                             {"--mebi", 0x1p20},
                                                                             {"--gibi", 0x1p30},
                                                                             {"--tebi", 0x1p40}});
  for (const auto& [name, bytes] : kLong) {
    if (option == name) return bytes;
  }
  if (option.starts_with("--")) return 0;
  for (const char letter : option) {
    const size_t power = std::string_view("bkmg").find(letter);
    if (power != std::string_view::npos) return std::pow(1024, power);
  }
  return 0;
}

// Bytes of the unit of a table that this command printed; empty: it is no call of free.
std::optional<double> unit_of_free(std::string_view command) {
  static const re2::RE2 call(R"((?:^|[\s;&|$#>%])free((?:\s+-\S+)*)(?:\s+\d+)?\s*(?:$|[|;&>]))", bytes_options());
  std::string options;
  if (!re2::RE2::PartialMatch(piece(command), call, &options)) return std::nullopt;
  constexpr double kWithoutOption = 1024;
  double unit = 0;
  for (size_t at = options.find('-'); at < options.size() && unit == 0;) {
    const size_t end = std::min(options.find(' ', at), options.size());
    unit = unit_of_option(std::string_view(options).substr(at, end - at));
    at = options.find('-', end);
  }
  return unit == 0 ? kWithoutOption : unit;
}

// A number of free whose command is not shown, where its size leaves no doubt: a machine that trains has gigabytes,
// and less than a million of them.
std::optional<double> unit_by_size(double total) {
  constexpr double kSmallestInKib = 1 << 20;
  constexpr double kSmallestInMib = 4 << 10;
  if (total >= kSmallestInKib) return 1024;
  return total >= kSmallestInMib ? std::optional<double>(1 << 20) : std::nullopt;
}

// "Mem:" of free, with units in its cells (-h) or in the one that `command`, the line before the table, asks for.
void read_free(std::span<const CleanLine> lines, std::string_view command, Surroundings& around) {
  static const re2::RE2 row(
      R"(^\S{2,12}[:：]\s+([\d.]+\w*)\s+([\d.]+\w*)\s+([\d.]+\w*)\s+([\d.]+\w*)\s+([\d.]+\w*)(?:\s+([\d.]+\w*))?)",
      bytes_options());
  for (const CleanLine& line : lines.first(std::min<size_t>(lines.size(), 4))) {
    std::array<std::string, 6> cells;
    if (!re2::RE2::PartialMatch(piece(line.text), row, &cells[0], &cells[1], &cells[2], &cells[3], &cells[4],
                                &cells[5]))
      continue;
    const bool has_unit = cells[0].find_first_not_of("0123456789.") != std::string::npos;
    const double total = cell_value(cells[0]);
    const std::optional<double> told = has_unit ? 1 : unit_of_free(command);
    const std::optional<double> unit = told ? told : unit_by_size(total);
    if (!unit) return;
    around.host_total_bytes = total * *unit;
    if (!cells[5].empty()) around.host_available_bytes = cell_value(cells[5]) * *unit;
    return;
  }
}

// A row of df whose mount is /dev/shm: "shm 64M 64M 0 100% /dev/shm", in KiB without units.
void read_df(const CleanLine& line, Surroundings& around) {
  static const re2::RE2 row(
      R"((?:shm|tmpfs)\s+([\d.]+[KMGT]?)i?\s+([\d.]+[KMGT]?)i?\s+([\d.]+[KMGT]?)i?\s+\d+%\s+/dev/shm)",
      bytes_options());
  std::string total;
  std::string used;
  if (!re2::RE2::PartialMatch(piece(line.text), row, &total, &used)) return;
  const double scale = total.find_first_not_of("0123456789.") == std::string::npos ? 1024 : 1;
  around.shm_total_bytes = cell_value(total) * scale;
  around.shm_used_bytes = cell_value(used) * (used == "0" ? 1 : scale);
}

// How many words stand before `word`.
size_t words_before(std::string_view text, std::string_view word) {
  const std::string_view before = text.substr(0, text.find(word));
  size_t words = 0;
  for (size_t i = 0; i < before.size(); ++i) words += before[i] != ' ' && (i == 0 || before[i - 1] == ' ') ? 1 : 0;
  return words;
}

// The number that stands at `index`, or 0.
double word_at(std::string_view numbers, size_t index) {
  for (size_t at = numbers.find_first_not_of(' '); at < numbers.size(); at = numbers.find_first_not_of(' ', at)) {
    const size_t end = std::min(numbers.find(' ', at), numbers.size());
    if (index-- == 0) return cell_value(numbers.substr(at, end - at));
    at = end;
  }
  return 0;
}

}  // namespace

std::span<const std::string_view> table_triggers() { return kTriggers; }

bool is_row_trigger(size_t index) { return index + kRowTriggers >= kTriggers.size(); }

bool is_process_table(size_t trigger) { return trigger == kProcessTable; }

void read_process_table(std::string_view text, std::vector<HostProcess>& processes) {
  static const re2::RE2 row(R"(\[ *(\d{1,9})\] +(\d[\d -]*) ([^\d\s-].{0,63}?)\s*$)", bytes_options());
  constexpr size_t kMostProcesses = 4096;
  constexpr double kPageBytes = 4096;
  if (!processes.empty()) return;
  const std::string_view head = text.substr(0, text.find('\n'));
  const std::string_view columns = head.substr(std::min(head.find("uid"), head.size()));
  const size_t rss = words_before(columns, " rss ");
  for (std::string_view rest = text.substr(std::min(head.size() + 1, text.size()));
       !rest.empty() && processes.size() < kMostProcesses;) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    HostProcess process;
    std::string numbers;
    if (!re2::RE2::PartialMatch(piece(line), row, &process.pid, &numbers, &process.name)) break;
    process.rss_bytes = word_at(numbers, rss) * kPageBytes;
    processes.push_back(std::move(process));
  }
}

void read_rows(std::span<const CleanLine> lines, Surroundings& around) {
  NvidiaSmi table(around, false);
  for (const CleanLine& line : lines) table.read(line);
}

void read_gpustat(std::string_view raw, Surroundings& around) {
  static const re2::RE2 row(R"(\[(\d{1,3})\] ([\w ().-]{2,60}?)\s*\|\s*\d+'C,.{0,40}?\|\s*(\d{1,9}) / (\d{1,9}) MB)",
                            bytes_options());
  re2::StringPiece text(raw.data(), raw.size());
  std::vector<ListedGpu> found;
  ListedGpu gpu;
  int64_t used = 0;
  int64_t total = 0;
  while (found.size() < kMostCards && re2::RE2::FindAndConsume(&text, row, &gpu.index, &gpu.name, &used, &total)) {
    gpu.used_bytes = mebibytes(used);
    gpu.total_bytes = mebibytes(total);
    found.push_back(gpu);
  }
  if (!found.empty()) around.gpus = std::move(found);
}

void read_table(std::span<const CleanLine> lines, int64_t line_number, std::string_view line_before,
                TextEvidence& evidence) {
  if (lines.empty()) return;
  const std::string& first = lines.front().text;
  if (contains(first, "memory summary, device ID")) return read_summary(lines, line_number, evidence);
  if (contains(first, "MaxRSS")) return read_sacct(lines, evidence.surroundings);
  if (contains(first, "NVIDIA-SMI")) return read_nvidia_smi(lines, evidence.surroundings);
  if (contains(first, "buff/cache")) return read_free(lines, line_before, evidence.surroundings);
  if (contains(first, "/dev/shm")) read_df(lines.front(), evidence.surroundings);
}

}  // namespace oomscope
