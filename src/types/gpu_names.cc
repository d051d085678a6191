#include "types/gpu_names.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/bytes_text.h"
#include "base/did_you_mean.h"
#include "base/text.h"

namespace oomscope {
namespace {

struct Card {
  std::string_view name;
  std::string_view keys;  // normalised spellings, separated by blanks; one that two cards share is ambiguous
  int64_t total_bytes;
  GpuMemorySource source;
  std::string_view note;
};

constexpr GpuMemorySource kMeasured = GpuMemorySource::measured;
constexpr GpuMemorySource kReported = GpuMemorySource::reported;
constexpr GpuMemorySource kNominal = GpuMemorySource::nominal;
constexpr std::string_view kAsSold = "as sold; the driver reports less";

constexpr int64_t hundredths(int64_t gib_times_100) { return gib_times_100 * kGiB / 100; }
constexpr int64_t sold(int64_t gib) { return gib * kGiB; }

// "owner/repository#number" is a GitHub thread whose OOM message or nvidia-smi output names the card and the total.
constexpr std::array<Card, 88> kCards = {{
    {"H200", "h200 h200141", 150109880320, kMeasured, "cudaMemGetInfo"},
    {"H100 80GB", "h100 h10080", hundredths(7911), kReported, "vllm-project/vllm#27508"},
    {"H100 NVL 94GB", "h100nvl h100nvl94 h10094", sold(94), kNominal, kAsSold},
    {"GH200 96GB", "gh200 gh20096", sold(96), kNominal, kAsSold},
    {"GH200 144GB", "gh200 gh200144", sold(144), kNominal, kAsSold},
    {"H800 80GB", "h800 h80080", sold(80), kNominal, kAsSold},
    {"H20 96GB", "h20 h2096", sold(96), kNominal, kAsSold},
    {"B200 180GB", "b200 b200180", sold(180), kNominal, kAsSold},
    {"GB200 186GB", "gb200 gb200186", sold(186), kNominal, kAsSold},
    {"B300 288GB", "b300 b300288", sold(288), kNominal, kAsSold},
    {"A100 40GB", "a100 a10040", 42298834944, kReported, "deviceQuery in bottlerocket-os/bottlerocket#3873"},
    {"A100 80GB", "a100 a10080", hundredths(7914), kReported, "lianqi1008/Control-GIC#6"},
    {"A800 80GB", "a800 a80080", hundredths(7933), kReported, "hahnyuan/PB-LLM#3"},
    {"A30", "a30 a3024", hundredths(2353), kReported, "google/RB-Modulation#5"},
    {"A40", "a40 a4048", sold(48), kNominal, kAsSold},
    {"A16", "a16 a1616", sold(16), kNominal, "one of its four GPUs, as sold"},
    {"A10", "a10 a1024", sold(24), kNominal, kAsSold},
    {"A10G", "a10g a10g24", hundredths(2220), kReported, "g5 instance in XavierXiao/Dreambooth-Stable-Diffusion#18"},
    {"A2", "a2 a216", sold(16), kNominal, kAsSold},
    {"L40S", "l40s l40s48", hundredths(4442), kReported, "stepfun-ai/Step-Video-T2V#8"},
    {"L40", "l40 l4048", hundredths(4440), kReported, "QwenLM/Qwen3-VL#2097"},
    {"L4", "l4 l424", 23034 * kMiB, kReported,
     "nvidia-smi in lmstudio-ai/lmstudio-bug-tracker#1638; CUDA reports a little less"},
    {"T4", "t4 t416", hundredths(1456), kReported, "Zheng-Chong/CatVTON#133"},
    {"V100 16GB", "v100 v10016", hundredths(1577), kReported, "kaito-project/kaito#976"},
    {"V100 32GB", "v100 v10032", hundredths(3174), kReported, "haotian-liu/LLaVA#812"},
    {"P100 16GB", "p100 p10016", sold(16), kNominal, kAsSold},
    {"P40", "p40 p4024", hundredths(2238), kReported, "LinkSoul-AI/Chinese-Llama-2-7b#56"},
    {"P4", "p4 p48", sold(8), kNominal, kAsSold},
    {"K80", "k80 k8012", sold(12), kNominal, "one of its two GPUs, as sold"},
    {"RTX PRO 6000 Blackwell", "rtxpro6000 pro6000 rtxpro6000blackwell rtxpro600096", sold(96), kNominal, kAsSold},
    {"RTX 6000 Ada", "rtx6000ada 6000ada rtx6000ada48", sold(48), kNominal, kAsSold},
    {"RTX 5000 Ada", "rtx5000ada rtx5000ada32", sold(32), kNominal, kAsSold},
    {"RTX 4000 Ada", "rtx4000ada rtx4000ada20", sold(20), kNominal, kAsSold},
    {"RTX A6000", "rtxa6000 a6000 rtxa600048", sold(48), kNominal, kAsSold},
    {"RTX A5000", "rtxa5000 a5000 rtxa500024", hundredths(2368), kReported, "zai-org/GLM-4#730"},
    {"RTX A4500", "rtxa4500 a4500 rtxa450020", sold(20), kNominal, kAsSold},
    {"RTX A4000", "rtxa4000 a4000 rtxa400016", sold(16), kNominal, kAsSold},
    {"RTX A2000 6GB", "rtxa2000 a2000 rtxa20006", sold(6), kNominal, kAsSold},
    {"RTX A2000 12GB", "rtxa2000 a2000 rtxa200012", sold(12), kNominal, kAsSold},
    {"Quadro RTX 8000", "rtx8000 rtx800048", sold(48), kNominal, kAsSold},
    {"Quadro RTX 6000", "rtx6000 rtx600024", sold(24), kNominal, kAsSold},
    {"RTX 5090", "rtx5090 5090 rtx509032", hundredths(3184), kReported, "vllm-project/vllm#23050, under WSL"},
    {"RTX 5080", "rtx5080 5080 rtx508016", sold(16), kNominal, kAsSold},
    {"RTX 5070 Ti", "rtx5070ti 5070ti rtx5070ti16", sold(16), kNominal, kAsSold},
    {"RTX 5070", "rtx5070 5070 rtx507012", sold(12), kNominal, kAsSold},
    {"RTX 5060 Ti 8GB", "rtx5060ti 5060ti rtx5060ti8", sold(8), kNominal, kAsSold},
    {"RTX 5060 Ti 16GB", "rtx5060ti 5060ti rtx5060ti16", sold(16), kNominal, kAsSold},
    {"RTX 4090", "rtx4090 4090 rtx409024", hundredths(2364), kReported, "ali-vilab/VGen#104"},
    {"RTX 4090 Laptop", "rtx4090laptop 4090laptop rtx4090mobile 4090m", sold(16), kNominal, kAsSold},
    {"RTX 4080 Super", "rtx4080super 4080super", sold(16), kNominal, kAsSold},
    {"RTX 4080", "rtx4080 4080 rtx408016", sold(16), kNominal, kAsSold},
    {"RTX 4080 Laptop", "rtx4080laptop 4080laptop rtx4080mobile 4080m", sold(12), kNominal, kAsSold},
    {"RTX 4070 Ti Super", "rtx4070tisuper 4070tisuper", sold(16), kNominal, kAsSold},
    {"RTX 4070 Ti", "rtx4070ti 4070ti", sold(12), kNominal, kAsSold},
    {"RTX 4070 Super", "rtx4070super 4070super", sold(12), kNominal, kAsSold},
    {"RTX 4070", "rtx4070 4070 rtx407012", sold(12), kNominal, kAsSold},
    {"RTX 4070 Laptop", "rtx4070laptop 4070laptop rtx4070mobile 4070m", sold(8), kNominal, kAsSold},
    {"RTX 4060 Ti 8GB", "rtx4060ti 4060ti rtx4060ti8", sold(8), kNominal, kAsSold},
    {"RTX 4060 Ti 16GB", "rtx4060ti 4060ti rtx4060ti16", sold(16), kNominal, kAsSold},
    {"RTX 4060", "rtx4060 4060 rtx40608", sold(8), kNominal, kAsSold},
    {"RTX 4060 Laptop", "rtx4060laptop 4060laptop rtx4060mobile 4060m", sold(8), kNominal, kAsSold},
    {"RTX 3090 Ti", "rtx3090ti 3090ti", sold(24), kNominal, kAsSold},
    {"RTX 3090", "rtx3090 3090 rtx309024", hundredths(2368), kReported, "3DTopia/OpenLRM#42"},
    {"RTX 3080 Ti", "rtx3080ti 3080ti", sold(12), kNominal, kAsSold},
    {"RTX 3080 10GB", "rtx3080 3080 rtx308010", sold(10), kNominal, kAsSold},
    {"RTX 3080 12GB", "rtx3080 3080 rtx308012", sold(12), kNominal, kAsSold},
    {"RTX 3070 Ti", "rtx3070ti 3070ti", sold(8), kNominal, kAsSold},
    {"RTX 3070", "rtx3070 3070 rtx30708", sold(8), kNominal, kAsSold},
    {"RTX 3060 Ti", "rtx3060ti 3060ti", sold(8), kNominal, kAsSold},
    {"RTX 3060 12GB", "rtx3060 3060 rtx306012", sold(12), kNominal, kAsSold},
    {"RTX 3050", "rtx3050 3050 rtx30508", sold(8), kNominal, kAsSold},
    {"Titan RTX", "titanrtx", sold(24), kNominal, kAsSold},
    {"RTX 2080 Ti", "rtx2080ti 2080ti", sold(11), kNominal, kAsSold},
    {"RTX 2080 Super", "rtx2080super 2080super", sold(8), kNominal, kAsSold},
    {"RTX 2080", "rtx2080 2080 rtx20808", sold(8), kNominal, kAsSold},
    {"RTX 2070 Super", "rtx2070super 2070super", sold(8), kNominal, kAsSold},
    {"RTX 2070", "rtx2070 2070 rtx20708", sold(8), kNominal, kAsSold},
    {"RTX 2060", "rtx2060 2060 rtx20606", sold(6), kNominal, kAsSold},
    {"GTX 1080 Ti", "gtx1080ti 1080ti", sold(11), kNominal, kAsSold},
    {"GTX 1080", "gtx1080 1080 gtx10808", sold(8), kNominal, kAsSold},
    {"GTX 1070 Ti", "gtx1070ti 1070ti", sold(8), kNominal, kAsSold},
    {"GTX 1070", "gtx1070 1070 gtx10708", sold(8), kNominal, kAsSold},
    {"GTX 1660 Ti", "gtx1660ti 1660ti", sold(6), kNominal, kAsSold},
    {"GTX 1660 Super", "gtx1660super 1660super", sold(6), kNominal, kAsSold},
    {"GTX 1660", "gtx1660 1660 gtx16606", sold(6), kNominal, kAsSold},
    {"GTX 1060 6GB", "gtx1060 1060 gtx10606", sold(6), kNominal, kAsSold},
    {"GTX 1650", "gtx1650 1650 gtx16504", sold(4), kNominal, kAsSold},
    {"GTX 1050 Ti", "gtx1050ti 1050ti gtx1050ti4", sold(4), kNominal, kAsSold},
}};

bool is_alnum(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z'); }

// Words of a full product name that do not tell cards apart here.
bool is_noise(std::string_view word) {
  constexpr std::array<std::string_view, 14> kNoise = {"nvidia",   "geforce", "tesla",   "quadro",     "gpu",
                                                       "graphics", "card",    "tensor",  "core",       "generation",
                                                       "gb",       "gib",     "edition", "workstation"};
  return std::find(kNoise.begin(), kNoise.end(), word) != kNoise.end() || word.substr(0, 3) == "sxm" ||
         word.substr(0, 3) == "hbm" || word.substr(0, 4) == "pcie";
}

// Of NVIDIA's table of CUDA GPUs, by words of their names.
constexpr std::array<std::pair<std::string_view, int>, 40> kCapabilities = {{
    {"b300", 103}, {"b200", 100}, {"gb200", 100}, {"gh200", 90}, {"h200", 90}, {"h100", 90},  {"h800", 90},
    {"h20", 90},   {"l40s", 89},  {"l40", 89},    {"l4", 89},    {"a100", 80}, {"a800", 80},  {"a30", 80},
    {"a40", 86},   {"a16", 86},   {"a10", 86},    {"a10g", 86},  {"a2", 86},   {"a6000", 86}, {"a5000", 86},
    {"a4500", 86}, {"a4000", 86}, {"a2000", 86},  {"t4", 75},    {"t4g", 75},  {"v100", 70},  {"v100s", 70},
    {"gv100", 70}, {"p100", 60},  {"gp100", 60},  {"p40", 61},   {"p4", 61},   {"p6", 61},    {"m60", 52},
    {"m40", 52},   {"k80", 37},   {"k40", 35},    {"k40c", 35},  {"k40m", 35},
}};

// Runs of letters and digits, in lower case.
std::vector<std::string> name_words(std::string_view text) {
  std::vector<std::string> words(1);
  for (char c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

// "NVIDIA A100-SXM4-80GB" -> "a10080": lower case, words joined, noise and the GB of a size dropped.
std::string normalise(std::string_view text) {
  std::string key;
  std::string word;
  const auto flush = [&] {
    for (std::string_view unit : {"gib", "gb", "g"}) {
      if (word.size() > unit.size() && word.substr(word.size() - unit.size()) == unit &&
          std::all_of(word.begin(), word.end() - static_cast<std::ptrdiff_t>(unit.size()), is_digit)) {
        word.erase(word.size() - unit.size());
      }
    }
    if (!is_noise(word)) key += word;
    word.clear();
  };
  for (char c : text) {
    const char small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (is_alnum(small)) {
      word += small;
    } else {
      flush();
    }
  }
  flush();
  for (std::string_view prefix : {"nvidia", "geforce", "tesla"}) {
    if (std::string_view(key).substr(0, prefix.size()) == prefix) key.erase(0, prefix.size());
  }
  return key;
}

std::vector<std::string_view> words_of(std::string_view keys) {
  std::vector<std::string_view> words;
  while (!keys.empty()) {
    const size_t blank = std::min(keys.find(' '), keys.size());
    words.push_back(keys.substr(0, blank));
    keys.remove_prefix(std::min(blank + 1, keys.size()));
  }
  return words;
}

std::vector<const Card*> cards_named(std::string_view key) {
  std::vector<const Card*> found;
  for (const Card& card : kCards) {
    const std::vector<std::string_view> words = words_of(card.keys);
    if (std::find(words.begin(), words.end(), key) != words.end()) found.push_back(&card);
  }
  return found;
}

Error ambiguous(std::string_view text, const std::vector<const Card*>& cards) {
  std::string list;
  for (const Card* card : cards) list += (list.empty() ? "" : " / ") + std::string(card->name);
  return Error{.code = "gpu-ambiguous",
               .what = "error.gpu-ambiguous",
               .where = "--gpu",
               .hint = "error.gpu-ambiguous.hint",
               .values = {{"text", std::string(text)}, {"cards", list}, {"card", std::string(cards.front()->name)}}};
}

Error unknown(std::string_view text, std::string_view key) {
  std::vector<std::string_view> keys;
  for (const Card& card : kCards) {
    for (std::string_view word : words_of(card.keys)) keys.push_back(word);
  }
  const std::string_view near = did_you_mean(key, keys);
  const std::vector<const Card*> cards = cards_named(near);
  const std::string card = cards.empty() ? "" : std::string(cards.front()->name);
  return Error{.code = "gpu-unknown",
               .what = "error.gpu-unknown",
               .where = "--gpu",
               .hint = cards.empty() ? "error.gpu-by-size" : "error.gpu-near",
               .values = {{"text", std::string(text.substr(0, 80))}, {"card", card}}};
}

}  // namespace

Result<GpuMemory> resolve_gpu(std::string_view text) {
  const std::string key = normalise(text);
  const std::vector<const Card*> cards = cards_named(key);
  // "8GB" normalises to "8", which names no card; "4090" names one and is hardly a number of bytes.
  if (cards.size() > 1) return ambiguous(text, cards);
  if (cards.size() == 1) {
    const Card& card = *cards.front();
    return GpuMemory{.name = std::string(card.name),
                     .total_bytes = card.total_bytes,
                     .source = card.source,
                     .note = std::string(card.note)};
  }
  const Result<int64_t> size = parse_size(text);
  if (!size) {
    const bool is_name =
        std::any_of(text.begin(), text.end(), [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }) &&
        !is_digit(text.front()) && text.front() != '-' && text.front() != '.';
    if (is_name) return unknown(text, key);
    return size.error();
  }
  if (*size < kMiB) {
    return Error{.code = "bad-size",
                 .what = "error.gpu-too-small-to-be-meant",
                 .where = "--gpu",
                 .hint = "error.gpu-too-small-to-be-meant.hint",
                 .values = {{"bytes", format_bytes(*size)}}};
  }
  return GpuMemory{.name = "--gpu", .total_bytes = *size, .source = GpuMemorySource::given, .note = ""};
}

namespace {

// A letter or two and a number, whole: "p5000" of "p".
bool is_series(std::string_view word, std::string_view letters, size_t least_digits) {
  return word.starts_with(letters) && word.size() >= letters.size() + least_digits &&
         word.find_first_not_of("0123456789", letters.size()) == std::string_view::npos;
}

// Cards of workstations, laptops and boards, named by series; the oldest that shares a name counts.
std::optional<int> capability_of_series(const std::vector<std::string>& words) {
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  if (has("titan")) return has("v") ? 70 : has("rtx") ? 75 : has("xp") ? 61 : 52;
  if (has("xavier")) return 72;
  if (has("orin")) return 87;
  for (const std::string& word : words) {
    if (is_series(word, "mx", 3)) return word >= "mx450" ? 75 : 61;
    if (is_series(word, "p", 3)) return 61;  // Quadro P620 to P6000
    if (is_series(word, "m", 3)) return 52;
    if (is_series(word, "t", 3)) return 75;  // T400 to T2000
  }
  if (has("gt") && has("1030")) return 61;
  if (has("940mx") || has("930mx")) return 50;
  return std::nullopt;
}

}  // namespace

std::optional<int> compute_capability(std::string_view text) {
  const std::vector<std::string> words = name_words(text);
  const auto has = [&](std::string_view word) { return std::find(words.begin(), words.end(), word) != words.end(); };
  // Names of generations decide before numbers that two of them share: "RTX 6000 Ada", "Quadro RTX 6000".
  if (has("blackwell")) return 120;
  if (has("ada")) return 89;
  for (const auto& [name, capability] : kCapabilities) {
    if (has(name)) return capability;
  }
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view number = words[i];
    const bool joined = number.starts_with("rtx") || number.starts_with("gtx");
    const std::string_view series = joined ? number.substr(0, 3) : i > 0 ? std::string_view(words[i - 1]) : "";
    if (joined) number.remove_prefix(3);
    if (number.size() == 3 && series == "gtx" && number[0] == '9') return 52;
    if (number.size() != 4 || number.find_first_not_of("0123456789") != std::string_view::npos) continue;
    if (series == "gtx") return number.starts_with("16") ? 75 : number.starts_with("10") ? 61 : std::optional<int>{};
    if (series != "rtx") continue;
    if (number.ends_with("000") || number[0] == '2') return 75;
    return number[0] == '3' ? 86 : number[0] == '4' ? 89 : number[0] == '5' ? 120 : std::optional<int>{};
  }
  return capability_of_series(words);
}

}  // namespace oomscope
