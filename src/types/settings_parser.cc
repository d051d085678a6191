// parse_allocator_settings: PyTorch's two settings parsers, message for message.
//
// The string is cut into tokens at `,` `:` `[` `]`, which are tokens themselves, and read with an index that each key
// moves past its value. Torch 2.10 on reads it twice (common keys, then CUDA's; each skips the other's) and looks at
// separators without enforcing them; 2.0 to 2.9 read it once and enforce them. We keep these walks as they are, since
// what a slip does ("max_split_size_mb:64;expandable_segments:True") follows from the walk and from nothing else.
#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>
#include <vector>

#include "base/bytes_text.h"
#include "base/did_you_mean.h"
#include "types/allocator_settings.h"
#include "types/limits.h"
#include "types/settings_warnings.h"

namespace oomscope {
namespace {

constexpr size_t kLongestConf = 65536;
constexpr size_t kMostWarnings = 32;
constexpr uint64_t kMostMib = kMaxSizeBytes / kMiB;  // more behaves as this does: no request comes near
constexpr std::string_view kOutOfBounds = "Index out of bounds in ConfigTokenizer";

struct Token {
  std::string text;
  size_t offset = 0;  // byte in the conf string, for the error's `where`
};

enum class KeyId {
  large_segment_size_mb,
  max_split_size_mb,
  max_non_split_rounding_mb,
  garbage_collection_threshold,
  roundup_power2_divisions,
  expandable_segments,
  pinned_use_background_threads,
  pinned_max_round_threshold_mb,
  pinned_max_cached_size_mb,
  backend,
  release_lock_on_cudamalloc,
  pinned_use_cuda_host_register,
  pinned_num_register_threads,
  pinned_reserve_segment_size_mb,
  graph_capture_record_stream_reuse,
  per_process_memory_fraction,
  pinned_free_catch_all,
  throw_on_cudamalloc_oom,
  expandable_segments_reserve,
  expandable_segments_reserve_by_class,
};

struct Key {
  std::string_view name;
  KeyId id;
  bool is_common;     // unified: read by AcceleratorAllocatorConfig; else by CUDAAllocatorConfig
  bool in_torch_2_0;  // known to some release of 2.0 to 2.9
};

constexpr std::array<Key, 22> kKeys = {{
    {"max_split_size_mb", KeyId::max_split_size_mb, true, true},
    {"garbage_collection_threshold", KeyId::garbage_collection_threshold, true, true},
    {"roundup_power2_divisions", KeyId::roundup_power2_divisions, true, true},
    {"expandable_segments", KeyId::expandable_segments, true, true},
    {"max_non_split_rounding_mb", KeyId::max_non_split_rounding_mb, true, true},
    {"large_segment_size_mb", KeyId::large_segment_size_mb, true, false},
    {"pinned_use_background_threads", KeyId::pinned_use_background_threads, true, true},
    {"pinned_max_round_threshold_mb", KeyId::pinned_max_round_threshold_mb, true, false},
    {"pinned_max_cached_size_mb", KeyId::pinned_max_cached_size_mb, true, false},
    {"backend", KeyId::backend, false, true},
    {"release_lock_on_cudamalloc", KeyId::release_lock_on_cudamalloc, false, true},
    {"release_lock_on_hipmalloc", KeyId::release_lock_on_cudamalloc, false, true},
    {"pinned_use_cuda_host_register", KeyId::pinned_use_cuda_host_register, false, true},
    {"pinned_use_hip_host_register", KeyId::pinned_use_cuda_host_register, false, true},
    {"pinned_num_register_threads", KeyId::pinned_num_register_threads, false, true},
    {"pinned_reserve_segment_size_mb", KeyId::pinned_reserve_segment_size_mb, false, false},
    {"graph_capture_record_stream_reuse", KeyId::graph_capture_record_stream_reuse, false, true},
    {"per_process_memory_fraction", KeyId::per_process_memory_fraction, false, false},
    {"pinned_free_catch_all", KeyId::pinned_free_catch_all, false, false},
    {"throw_on_cudamalloc_oom", KeyId::throw_on_cudamalloc_oom, false, false},
    {"expandable_segments_reserve", KeyId::expandable_segments_reserve, false, false},
    {"expandable_segments_reserve_by_class", KeyId::expandable_segments_reserve_by_class, false, false},
}};

// One run over one string.
struct Reader {
  std::string_view conf;
  SettingsParser parser;
  std::vector<Token> tokens;
  AllocatorSettings settings;
  SettingsFacts facts;
  Caveats warnings;
  std::vector<KeyId> seen;

  [[nodiscard]] bool is_unified() const { return parser == SettingsParser::unified; }
};

std::vector<Token> tokenize(std::string_view conf, SettingsParser parser) {
  std::vector<Token> tokens;
  std::string buffer;
  size_t start = 0;
  const auto flush = [&] {
    if (!buffer.empty()) tokens.push_back({buffer, start});
    buffer.clear();
  };
  for (size_t i = 0; i < conf.size(); ++i) {
    const char c = conf[i];
    if (c == ',' || c == ':' || c == '[' || c == ']') {
      flush();
      tokens.push_back({std::string(1, c), i});
    } else if (parser == SettingsParser::unified ? !(c == ' ' || (c >= '\t' && c <= '\r')) : c != ' ') {
      if (buffer.empty()) start = i;
      buffer += c;
    }
  }
  flush();
  return tokens;
}

// `what` is PyTorch's own message, `hint` ours: "error.settings.HINT".
Error settings_error(const Reader& reader, size_t i, std::string code, std::string what, std::string_view hint,
                     Values values = {}) {
  const size_t offset = i < reader.tokens.size() ? reader.tokens[i].offset : reader.conf.size();
  values.emplace_back("byte", std::to_string(offset));
  values.emplace_back("conf", std::string(reader.conf.substr(0, 200)));
  return Error{.code = std::move(code),
               .what = std::move(what),
               .where = "error.settings.where",
               .hint = "error.settings." + std::string(hint),
               .values = std::move(values)};
}

Error bad_value(const Reader& reader, size_t i, std::string what, std::string_view hint, Values values = {}) {
  return settings_error(reader, i, "settings-bad-value", std::move(what), hint, std::move(values));
}

Values of_key(std::string_view key) { return {{"key", std::string(key)}}; }

void warn(Reader& reader, Caveat caveat) {
  caveat.source = CaveatSource::model;
  if (reader.warnings.size() >= kMostWarnings) return;
  if (std::find(reader.warnings.begin(), reader.warnings.end(), caveat) != reader.warnings.end()) return;
  reader.warnings.push_back(std::move(caveat));
}

const Key* find_key(const Reader& reader, std::string_view name) {
  const Key* key = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& k) { return k.name == name; });
  if (key == kKeys.end() || (!reader.is_unified() && !key->in_torch_2_0)) return nullptr;
  return key;
}

// The key of the hint and its values.
std::pair<std::string_view, Values> unknown_key_hint(const Reader& reader, std::string_view name) {
  constexpr std::string_view kVariable = "_ALLOC_CONF=";
  if (name.find(kVariable) != std::string_view::npos) {
    return {"variable", {{"value", std::string(reader.conf.substr(reader.conf.find(kVariable) + kVariable.size()))}}};
  }
  const size_t slip = name.find_first_of("=;");
  if (slip != std::string_view::npos && find_key(reader, name.substr(0, slip)) != nullptr) {
    return {"slip", {{"key", std::string(name.substr(0, slip))}, {"value", std::string(name.substr(slip + 1))}}};
  }
  if (name == "True" || name == "False" || name.empty() || (name[0] >= '0' && name[0] <= '9')) {
    return {"pair-open", {}};
  }
  std::vector<std::string_view> names;
  for (const Key& key : kKeys) {
    if (reader.is_unified() || key.in_torch_2_0) names.push_back(key.name);
  }
  const std::string_view near = did_you_mean(name, names);
  if (!near.empty()) return {"near", {{"near", std::string(near)}}};
  for (const Key& key : kKeys) {
    if (key.name == name) return {"key-since", of_key(name)};
  }
  if (name == "roundup_bypass_threshold_mb") return {"key-of-1-13", {}};
  if (name == "expandable_segments_page_size") return {"key-of-none", {}};
  std::string list;
  for (const std::string_view each : names) list += (list.empty() ? "" : ", ") + std::string(each);
  return {"keys-are", {{"list", list}}};
}

// checkToken of the unified parser looks and goes on; consumeToken of the old one stops.
std::optional<Error> separator(Reader& reader, size_t i, char expected) {
  const bool present = i < reader.tokens.size();
  if (present && reader.tokens[i].text == std::string(1, expected)) return {};
  if (!reader.is_unified()) {
    return settings_error(reader, i, "settings-syntax",
                          std::string("Error parsing CachingAllocator settings, expected ") + expected, "pairs");
  }
  if (!present) {
    return settings_error(reader, i, "settings-syntax", std::string(kOutOfBounds), "ends-early");
  }
  warn(reader, {.code = "settings-separator-ignored",
                .values = {{"found", reader.tokens[i].text.substr(0, 40)}, {"expected", std::string(1, expected)}}});
  return {};
}

// The value token, or what PyTorch says when the string ends before it.
Result<size_t> value_at(const Reader& reader, size_t i, std::string_view key) {
  if (i < reader.tokens.size()) return i;
  const std::string what =
      reader.is_unified() ? std::string(kOutOfBounds) : "Error, expecting " + std::string(key) + " value";
  return settings_error(reader, i, "settings-syntax", what, "give-value", of_key(key));
}

// std::stoull (unified) or std::stoi (old) as PyTorch calls them: leading digits are enough, a minus wraps around.
Result<uint64_t> to_unsigned(Reader& reader, size_t i, bool as_int) {
  const std::string& text = reader.tokens[i].text;
  const std::string name = as_int ? "stoi" : "stoull";
  const bool negative = text[0] == '-';
  const char* first = text.data() + (negative || text[0] == '+' ? 1 : 0);
  const char* last = text.data() + text.size();
  uint64_t value = 0;
  const std::from_chars_result read = std::from_chars(first, last, value);
  if (read.ec == std::errc::invalid_argument) {
    return bad_value(reader, i, name, "no-number", {{"text", text}, {"message", name}});
  }
  const uint64_t most = negative ? uint64_t{1} << 31 : (uint64_t{1} << 31) - 1;
  if (read.ec != std::errc{} || (as_int && value > most)) {
    return bad_value(reader, i, name, "too-large", {{"text", text}, {"message", name}});
  }
  if (read.ptr != last) {
    warn(reader, {.code = "settings-number-cut", .values = {{"text", text.substr(0, 40)}}});
  }
  if (negative && value != 0) {
    warn(reader, {.code = "settings-number-negative", .values = {{"text", text.substr(0, 40)}}});
  }
  return negative ? ~value + 1 : value;
}

Result<uint64_t> to_size(Reader& reader, size_t i) { return to_unsigned(reader, i, !reader.is_unified()); }

Result<double> to_double(Reader& reader, size_t i) {
  const std::string& text = reader.tokens[i].text;
  const char* first = text.data() + (text[0] == '+' ? 1 : 0);
  const char* last = text.data() + text.size();
  double value = 0;
  const std::from_chars_result read = std::from_chars(first, last, value);
  if (read.ec != std::errc{}) {
    return bad_value(reader, i, "stod", "no-number", {{"text", text}, {"message", "stod"}});
  }
  if (read.ptr != last) {
    warn(reader, {.code = "settings-number-cut", .values = {{"text", text.substr(0, 40)}}});
  }
  return value;
}

Result<bool> to_bool(const Reader& reader, size_t i, std::string_view key) {
  const std::string_view text = i < reader.tokens.size() ? std::string_view(reader.tokens[i].text) : "";
  if (text == "True" || text == "False") return text == "True";
  if (!reader.is_unified()) {
    return bad_value(reader, i, "Expected a single True/False argument for " + std::string(key), "true-or-false",
                     of_key(key));
  }
  if (i >= reader.tokens.size()) {
    return settings_error(reader, i, "settings-syntax", std::string(kOutOfBounds), "true-or-false", of_key(key));
  }
  return bad_value(reader, i,
                   "Expected 'True' or 'False' at index " + std::to_string(i) + " in ConfigTokenizer but got '" +
                       std::string(text) + "'",
                   "true-or-false", of_key(key));
}

// MiB as PyTorch keeps it, cut to what int64_t holds. The result stays below kUnlimitedBytes: a huge limit is still
// one.
int64_t mib_to_bytes(uint64_t mib) { return static_cast<int64_t>(std::min(mib, kMostMib)) * kMiB; }

Result<size_t> read_mib(Reader& reader, size_t i, std::string_view key, uint64_t minimum, int64_t& target_bytes) {
  if (std::optional<Error> error = separator(reader, ++i, ':')) return *error;
  OOM_TRY(const size_t at, value_at(reader, ++i, key));
  OOM_TRY(const uint64_t mib, to_size(reader, at));
  // The old parser demands more than the minimum, the unified one at least it.
  if (reader.is_unified() ? mib < minimum : mib <= minimum) {
    return bad_value(reader, i,
                     "CachingAllocator option " + std::string(key) + " too small, must be " +
                         (reader.is_unified() ? ">= " : "> ") + std::to_string(minimum),
                     "unit-mib", of_key(key));
  }
  target_bytes = mib_to_bytes(mib);
  return i;
}

Result<size_t> read_max_split(Reader& reader, size_t i, uint64_t minimum) {
  int64_t& target_bytes = reader.settings.max_split_size_bytes;
  OOM_TRY(i, read_mib(reader, i, "max_split_size_mb", minimum, target_bytes));
  if (target_bytes >= kMaxSizeBytes) target_bytes = kUnlimitedBytes;
  return i;
}

Result<size_t> read_large_segment(Reader& reader, size_t i) {
  if (std::optional<Error> error = separator(reader, ++i, ':')) return *error;
  OOM_TRY(const size_t at, value_at(reader, ++i, "large_segment_size_mb"));
  OOM_TRY(const uint64_t mib, to_size(reader, at));
  if (mib <= 10) {
    return bad_value(reader, i, "CachingAllocator option large_segment_size_mb must be > 10 MB", "large-segment");
  }
  reader.settings.large_segment_size_bytes = mib_to_bytes(mib);
  return i;
}

Result<size_t> read_threshold(Reader& reader, size_t i) {
  if (std::optional<Error> error = separator(reader, ++i, ':')) return *error;
  OOM_TRY(const size_t at, value_at(reader, ++i, "garbage_collection_threshold"));
  OOM_TRY(const double threshold, to_double(reader, at));
  if (!(threshold > 0 && threshold < 1.0)) {
    if (reader.is_unified()) {
      return bad_value(reader, i, "garbage_collect_threshold is invalid, set it in (0.0, 1.0)", "threshold");
    }
    return bad_value(reader, i,
                     threshold > 0 ? "garbage_collect_threshold too big, set it 0.0~1.0"
                                   : "garbage_collect_threshold too small, set it 0.0~1.0",
                     "threshold");
  }
  reader.settings.garbage_collection_threshold = threshold;
  return i;
}

// One `B:D` or `>:D` of a round-up list, i at B. Moves to D.
Result<size_t> read_roundup_pair(Reader& reader, size_t i, size_t& last_index) {
  std::array<int64_t, 16>& table = reader.settings.roundup_power2_divisions;
  const size_t boundary_at = i;
  if (std::optional<Error> error = separator(reader, ++i, ':')) return *error;
  if (++i >= reader.tokens.size()) {
    return settings_error(
        reader, i, "settings-syntax",
        reader.is_unified() ? std::string(kOutOfBounds) : "Error parsing roundup_power2_divisions value",
        "roundup-list");
  }
  OOM_TRY(const uint64_t divisions, to_size(reader, i));
  if (divisions != 0 && !std::has_single_bit(divisions)) {
    return bad_value(reader, i,
                     reader.is_unified() ? "For roundups, the divisions has to be power of 2 or 0 to disable roundup "
                                         : "For roundups, the divisons has to be power of 2 or 0 to disable roundup ",
                     "roundup-divisions");
  }
  if (divisions == 0) reader.facts.roundup_list_has_zero = true;
  const int64_t value = static_cast<int64_t>(std::min<uint64_t>(divisions, uint64_t{1} << 62));
  ++reader.facts.roundup_list_pairs;
  if (reader.tokens[boundary_at].text == ">") {
    if (!reader.is_unified() && table[last_index] != value) reader.facts.roundup_fill_overwrites = true;
    std::fill(table.begin() + static_cast<std::ptrdiff_t>(last_index + (reader.is_unified() ? 1 : 0)), table.end(),
              value);
    return i;
  }
  // stoull or stoul: 64 bits either way.
  OOM_TRY(const uint64_t boundary, to_unsigned(reader, boundary_at, false));
  if (!std::has_single_bit(boundary)) {
    return bad_value(reader, boundary_at, "For roundups, the intervals have to be power of 2 ", "roundup-boundary");
  }
  const size_t index = std::min<size_t>(static_cast<size_t>(std::bit_width(boundary)) - 1, table.size() - 1);
  if (!reader.facts.roundup_first_seen)
    std::fill(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(index), value);
  reader.facts.roundup_first_seen = true;
  table[index] = value;
  last_index = index;
  return i;
}

Result<size_t> read_roundup(Reader& reader, size_t i) {
  if (std::optional<Error> error = separator(reader, ++i, ':')) return *error;
  OOM_TRY(const size_t at, value_at(reader, ++i, "roundup_power2_divisions"));
  if (reader.tokens[at].text != "[") {
    OOM_TRY(const uint64_t divisions, to_size(reader, at));
    if (!std::has_single_bit(divisions)) {
      return bad_value(reader, i,
                       reader.is_unified() ? "For roundups, the divisions has to be power of 2 "
                                           : "For roundups, the divisons has to be power of 2 ",
                       "roundup-value");
    }
    reader.settings.roundup_power2_divisions.fill(
        static_cast<int64_t>(std::min<uint64_t>(divisions, uint64_t{1} << 62)));
    return i;
  }
  reader.facts.roundup_first_seen = false;
  size_t last_index = 0;
  while (++i < reader.tokens.size() && reader.tokens[i].text != "]") {
    OOM_TRY(const size_t pair_end, read_roundup_pair(reader, i, last_index));
    i = pair_end;
    if (i + 1 >= reader.tokens.size()) {
      // The old parser reads past its vector here, which is undefined; both mean the bracket is missing.
      return settings_error(reader, i + 1, "settings-syntax", std::string(kOutOfBounds), "close-list");
    }
    if (reader.tokens[i + 1].text != "]") {
      if (std::optional<Error> error = separator(reader, ++i, ',')) return *error;
    }
  }
  if (i >= reader.tokens.size() && reader.is_unified()) {
    return settings_error(reader, i, "settings-syntax",
                          "Expected closing bracket ']' in ConfigTokenizer but reached end of config", "close-list");
  }
  return i;
}

Result<size_t> read_bool(Reader& reader, size_t i, std::string_view key, bool& target) {
  if (std::optional<Error> error = separator(reader, ++i, ':')) return *error;
  OOM_TRY(target, to_bool(reader, ++i, key));
  return i;
}

Result<size_t> read_backend(Reader& reader, size_t i) {
  if (std::optional<Error> error = separator(reader, ++i, ':')) return *error;
  if (++i >= reader.tokens.size()) {
    return settings_error(reader, i, "settings-syntax",
                          reader.is_unified() ? std::string(kOutOfBounds) : "Error parsing backend value", "backend");
  }
  const std::string& name = reader.tokens[i].text;
  if (name != "native" && name != "cudaMallocAsync") {
    return bad_value(reader, i, "Unknown allocator backend, options are native and cudaMallocAsync", "backend");
  }
  reader.settings.backend = name;
  return i;
}

Result<size_t> read_fraction(Reader& reader, size_t i) {
  if (std::optional<Error> error = separator(reader, ++i, ':')) return *error;
  OOM_TRY(const size_t at, value_at(reader, ++i, "per_process_memory_fraction"));
  OOM_TRY(const double fraction, to_double(reader, at));
  if (!(fraction >= 0.0 && fraction <= 1.0)) {
    return bad_value(reader, i, "per_process_memory_fraction is invalid, set it in [0.0, 1.0]", "fraction");
  }
  reader.settings.per_process_memory_fraction = fraction;
  return i;
}

Result<size_t> read_register_threads(Reader& reader, size_t i) {
  if (std::optional<Error> error = separator(reader, ++i, ':')) return *error;
  OOM_TRY(const size_t at, value_at(reader, ++i, "pinned_num_register_threads"));
  OOM_TRY(const uint64_t threads, to_size(reader, at));
  const std::string got = reader.is_unified() ? ", got " + std::to_string(threads) : "";
  if (!std::has_single_bit(threads)) {
    return bad_value(reader, i, "Number of register threads has to be power of 2" + (got.empty() ? " " : got),
                     "register-threads");
  }
  if (threads > 128) {
    return bad_value(reader, i, "Number of register threads should be less than or equal to 128" + got,
                     "register-threads");
  }
  reader.settings.pinned_num_register_threads = static_cast<int64_t>(threads);
  return i;
}

// Pinned (host) sizes: checked, and kept only where AllocatorSettings has a place.
Result<size_t> read_pinned_mib(Reader& reader, size_t i, KeyId id, std::string_view key) {
  if (std::optional<Error> error = separator(reader, ++i, ':')) return *error;
  OOM_TRY(const size_t at, value_at(reader, ++i, key));
  OOM_TRY(const uint64_t mib, to_size(reader, at));
  if (id != KeyId::pinned_reserve_segment_size_mb) return i;
  if (mib == 0) {
    return bad_value(reader, i, "Pinned reserve segment size has to be greater than 0", "size-in-mib");
  }
  reader.settings.pinned_reserve_segment_size_mb = static_cast<int64_t>(std::min(mib, kMostMib));
  return i;
}

// expandable_segments_reserve sets how much address range is reserved, never memory: read past it.
Result<size_t> skip_value(Reader& reader, size_t i) {
  if (std::optional<Error> error = separator(reader, ++i, ':')) return *error;
  OOM_TRY(const size_t at, value_at(reader, ++i, "the key"));
  if (reader.tokens[at].text != "[") return i;
  while (++i < reader.tokens.size() && reader.tokens[i].text != "]") {
  }
  if (i < reader.tokens.size()) return i;
  return settings_error(reader, i, "settings-syntax",
                        "Expected closing bracket ']' in ConfigTokenizer but reached end of config", "close-list");
}

// Reads the value of `key` at token i; returns the index of the value's last token.
Result<size_t> read_value(Reader& reader, const Key& key, size_t i) {
  AllocatorSettings& settings = reader.settings;
  const uint64_t large_mib = static_cast<uint64_t>(settings.large_segment_size_bytes / kMiB);
  bool ignored = false;
  switch (key.id) {
    case KeyId::large_segment_size_mb: return read_large_segment(reader, i);
    case KeyId::max_split_size_mb: return read_max_split(reader, i, large_mib);
    case KeyId::max_non_split_rounding_mb:
      return read_mib(reader, i, key.name, large_mib, settings.max_non_split_rounding_bytes);
    case KeyId::garbage_collection_threshold: return read_threshold(reader, i);
    case KeyId::roundup_power2_divisions: return read_roundup(reader, i);
    case KeyId::backend: return read_backend(reader, i);
    case KeyId::per_process_memory_fraction: return read_fraction(reader, i);
    case KeyId::pinned_num_register_threads: return read_register_threads(reader, i);
    case KeyId::pinned_reserve_segment_size_mb:
    case KeyId::pinned_max_round_threshold_mb:
    case KeyId::pinned_max_cached_size_mb: return read_pinned_mib(reader, i, key.id, key.name);
    case KeyId::expandable_segments: return read_bool(reader, i, key.name, settings.expandable_segments);
    case KeyId::release_lock_on_cudamalloc:
      return read_bool(reader, i, "release_lock_on_cudamalloc", settings.release_lock_on_cudamalloc);
    case KeyId::graph_capture_record_stream_reuse:
      return read_bool(reader, i, key.name, settings.graph_capture_record_stream_reuse);
    case KeyId::throw_on_cudamalloc_oom: return read_bool(reader, i, key.name, settings.throw_on_cudamalloc_oom);
    case KeyId::pinned_use_cuda_host_register:
      return read_bool(reader, i, "pinned_use_cuda_host_register", settings.pinned_use_cuda_host_register);
    case KeyId::pinned_use_background_threads:
      return read_bool(reader, i, key.name, settings.pinned_use_background_threads);
    case KeyId::pinned_free_catch_all: return read_bool(reader, i, key.name, ignored);
    case KeyId::expandable_segments_reserve:
    case KeyId::expandable_segments_reserve_by_class: return skip_value(reader, i);
  }
  return i;
}

void note_key(Reader& reader, const Key& key) {
  if (std::find(reader.seen.begin(), reader.seen.end(), key.id) != reader.seen.end()) {
    warn(reader, {.code = "settings-duplicate-key", .values = {{"key", std::string(key.name)}}});
  }
  reader.seen.push_back(key.id);
}

// One pass over the pairs. Which pass reads which key is what differs between the parsers.
enum class Pass { torch_2_0, unified_common, unified_cuda };

std::optional<Error> run_pass(Reader& reader, Pass pass) {
  for (size_t i = 0; i < reader.tokens.size(); ++i) {
    const std::string name = reader.tokens[i].text;
    const Key* key = find_key(reader, name);
    if (key == nullptr) {
      const std::string what = pass == Pass::torch_2_0 ? "Unrecognized CachingAllocator option: " + name
                               : pass == Pass::unified_common
                                   ? "Unrecognized key '" + name + "' in Accelerator allocator config."
                                   : "Unrecognized key '" + name + "' in CUDA allocator config.";
      const std::pair<std::string_view, Values> hint = unknown_key_hint(reader, name);
      return settings_error(reader, i, "settings-unknown-key", what, hint.first, hint.second);
    }
    const bool is_mine = pass == Pass::torch_2_0 || key->is_common == (pass == Pass::unified_common);
    if (is_mine) note_key(reader, *key);
    // The unified parser has read large_segment_size_mb before its passes; see parse_allocator_settings.
    const bool reads = is_mine && key->id != KeyId::large_segment_size_mb;
    const Result<size_t> end = reads ? read_value(reader, *key, i) : skip_value(reader, i);
    if (!end) return end.error();
    i = *end;
    if (i + 1 < reader.tokens.size()) {
      if (std::optional<Error> error = separator(reader, ++i, ',')) return error;
    }
  }
  return {};
}

}  // namespace

Result<ParsedSettings> parse_allocator_settings(std::string_view conf, SettingsParser parser) {
  Reader reader;
  reader.conf = conf;
  reader.parser = parser;
  if (conf.size() > kLongestConf) {
    return settings_error(reader, 0, "settings-too-long", "error.settings.too-long", "pass-value",
                          {{"bytes", format_count(static_cast<int64_t>(conf.size()))}});
  }
  reader.tokens = tokenize(conf, parser);
  if (reader.is_unified()) {
    // First of all keys, since it is the minimum of two others; looked for at every token, also where a value stands.
    for (size_t i = 0; i < reader.tokens.size(); ++i) {
      if (reader.tokens[i].text != "large_segment_size_mb") continue;
      OOM_TRY(i, read_large_segment(reader, i));
    }
    reader.settings.max_non_split_rounding_bytes = reader.settings.large_segment_size_bytes;
    if (std::optional<Error> error = run_pass(reader, Pass::unified_common)) return *error;
    if (std::optional<Error> error = run_pass(reader, Pass::unified_cuda)) return *error;
  } else {
    if (std::optional<Error> error = run_pass(reader, Pass::torch_2_0)) return *error;
  }
  const auto has = [&](KeyId id) { return std::find(reader.seen.begin(), reader.seen.end(), id) != reader.seen.end(); };
  reader.facts.has_max_split = has(KeyId::max_split_size_mb);
  reader.facts.has_non_split_rounding = has(KeyId::max_non_split_rounding_mb);
  reader.facts.has_roundup = has(KeyId::roundup_power2_divisions);
  ParsedSettings parsed{.settings = std::move(reader.settings), .warnings = std::move(reader.warnings)};
  add_settings_warnings(parsed.settings, reader.facts, parser, parsed.warnings);
  return parsed;
}

}  // namespace oomscope
