#include "evidence/text/limits.h"

#include "evidence/text/patterns.h"
#include "types/limits.h"

namespace oomscope {
namespace {

constexpr int kMostLooks = 100;
constexpr int64_t kMostCount = int64_t{1} << 40;

// "96", "g": in bytes. Schedulers and containers count in powers of 1024; without a unit, `plain`.
std::optional<int64_t> bytes_of(double number, std::string_view unit, double plain) {
  double scale = plain;
  switch (unit.empty() ? ' ' : unit.front() | 0x20) {
    case 'k': scale = 1024.0; break;
    case 'm': scale = 1024.0 * 1024; break;
    case 'g': scale = 1024.0 * 1024 * 1024; break;
    case 't': scale = 1024.0 * 1024 * 1024 * 1024; break;
    default: break;
  }
  const double bytes = number * scale;
  if (bytes < 1 || bytes > static_cast<double>(kMaxSizeBytes)) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

void raise(std::optional<int64_t> value, std::optional<int64_t>& most) {
  if (value && (!most || *value > *most)) most = value;
}

void find_sizes(re2::StringPiece text, const re2::RE2& pattern, double plain, std::optional<int64_t>& most) {
  double number = 0;
  std::string unit;
  for (int i = 0; i < kMostLooks && re2::RE2::FindAndConsume(&text, pattern, &number, &unit); ++i)
    raise(bytes_of(number, unit, plain), most);
}

void find_counts(re2::StringPiece text, const re2::RE2& pattern, std::optional<int64_t>& most) {
  int64_t number = 0;
  for (int i = 0; i < kMostLooks && re2::RE2::FindAndConsume(&text, pattern, &number); ++i) {
    if (number > 0 && number <= kMostCount) raise(number, most);
  }
}

}  // namespace

void find_limits(std::string_view raw, LimitsInForce& limits) {
  static const re2::RE2 memory(
      R"(\bdocker (?:run|create|update)\b[^\n]*?\s(?:--memory|-m)[= ](\d+(?:\.\d+)?)([bkmgBKMG]?)\b)", bytes_options());
  static const re2::RE2 of_pod(R"((?i:limits?"?:\s*\{?[^}]{0,60}?"?memory"?:\s*"?)(\d+(?:\.\d+)?)([KkMGT]i?)\b)",
                               bytes_options());
  static const re2::RE2 of_job(
      R"((?:--mem[= ]|-l\s+[\w=:,.]{0,80}?\b(?:mem|h_vmem)=|\bReqMem=|\brequest_memory\s*=\s*)(\d+(?:\.\d+)?)\s?([KMGTkmgt]?)[bBnc]?\b)",
      bytes_options());
  static const re2::RE2 shm(R"(\bshm[-_]size["']?\s*[:= ]\s*["']?(\d+(?:\.\d+)?)([bkmgBKMG]?))", bytes_options());
  static const re2::RE2 files(
      R"((?:\bulimit\s+(?:-[SH]+\s*)?-[SH]?n\s+|(?i:open files)\s+(?:\(-n\)\s+)?|\bnofile[=:]\s*)(\d{1,12})\b)",
      bytes_options());
  static const re2::RE2 mappings(R"(\bmax_map_count\s*[=:]\s*(\d{1,12})\b)", bytes_options());
  static const re2::RE2 share(R"(\bgpu[-_]memory[-_]utilization["']?\s*[:= ]\s*(0?\.\d{1,6}|1(?:\.0+)?)\b)",
                              bytes_options());
  static const re2::RE2 tokens(R"(\bmax[-_](?:model|seq)[-_]len["']?\s*[:= ]\s*(\d{1,9})\b)", bytes_options());
  static const re2::RE2 sequences(R"(\bmax[-_]num[-_]seqs["']?\s*[:= ]\s*(\d{1,9})\b)", bytes_options());
  static const re2::RE2 cards(
      R"(\b(?:CUDA|HIP|ROCR)_VISIBLE_DEVICES["']?\]?\s*[:= ]\s*["']?(\d{1,3}(?:,\d{1,3}){0,63}))", bytes_options());
  const re2::StringPiece text(raw.data(), raw.size());
  constexpr double kMiB = 1024.0 * 1024;
  find_sizes(text, memory, 1, limits.memory_bytes);
  find_sizes(text, of_pod, 1, limits.memory_bytes);
  find_sizes(text, of_job, kMiB, limits.memory_bytes);
  find_sizes(text, shm, 1, limits.shm_bytes);
  find_counts(text, files, limits.open_files);
  find_counts(text, mappings, limits.mappings);
  static const re2::RE2 host_shm(R"(--ipc[= ]host\b|\b(?:hostIPC|ipc):\s*["']?(?:true|host)\b)", bytes_options());
  limits.is_host_shm |= re2::RE2::PartialMatch(text, host_shm);
  double number = 0;
  if (!limits.engine_share && re2::RE2::PartialMatch(text, share, &number)) limits.engine_share = number;
  int64_t count = 0;
  if (!limits.engine_tokens && re2::RE2::PartialMatch(text, tokens, &count)) limits.engine_tokens = count;
  if (!limits.engine_sequences && re2::RE2::PartialMatch(text, sequences, &count)) limits.engine_sequences = count;
  if (limits.visible_cards.empty()) (void)re2::RE2::PartialMatch(text, cards, &limits.visible_cards);
}

}  // namespace oomscope
