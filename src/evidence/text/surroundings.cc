#include "evidence/text/surroundings.h"

#include "evidence/text/limits.h"
#include "evidence/text/measures.h"
#include "evidence/text/patterns.h"
#include "evidence/text/squeeze.h"
#include "evidence/text/tables.h"
#include "types/gpu_names.h"

namespace oomscope {
namespace {

// A setting that is in force: in the command line, the environment, a file of variables or in code. PyTorch's own hint
// ("try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid ...") is none. `squeezed` has no blanks,
// since the hint may be wrapped anywhere.
bool sets_expandable_segments(re2::StringPiece squeezed) {
  static const re2::RE2 setting(
      R"re(((?i:try|consider|recommend|suggest)\w{0,12}?PYTORCH_(?:CUDA_|HIP_)?)?(?:ALLOC_CONF["'\\\])]*[=:,]?(?:value:)?|allocator_settings\()["'\\]*)re"
      R"re((?:\w+:[\w.>|:\[\]-]+?,)*expandable_segments:True(["'`]?(?:to|and)avoid)?)re",
      bytes_options());
  re2::StringPiece hint;
  re2::StringPiece purpose;
  while (re2::RE2::FindAndConsume(&squeezed, setting, &hint, &purpose)) {
    if (hint.empty() && purpose.empty()) return true;
  }
  return false;
}

// collect_env tells a CUDA user "ROCM used to build PyTorch: N/A", which names it and means the contrary.
bool names_rocm(re2::StringPiece text) {
  static const re2::RE2 named(
      R"(/opt/rocm|\+rocm\d|\bHIP error|\bhipError|\bhipErrorOutOfMemory|MIOpen|PYTORCH_HIP_ALLOC_CONF|\bgfx\d{3,4}\b|)"
      R"((?i:rocm used to build pytorch|rocm version|hip runtime version)\s*:\s*\d)",
      bytes_options());
  return re2::RE2::PartialMatch(text, named);
}

// "PyTorch version: 2.3.1+cu121", "torch==2.1"; "ROCM used to build PyTorch: 6.1" is ROCm's own.
std::string find_torch_version(re2::StringPiece text) {
  static const re2::RE2 version(
      R"((used to build Py)?(?i:pytorch version|torch version|torch\.__version__|torch\s*==|torch\s*:)\s*[:=]?\s*v?)"
      R"((\d\.\d{1,2}(?:\.\d+)?(?:[.+\w]{0,40}))|\btorch[ -](\d\.\d{1,2}\.\d+(?:\+\w+)?))",
      bytes_options());
  std::string of_another;
  std::string named;
  std::string joined;
  while (re2::RE2::FindAndConsume(&text, version, &of_another, &named, &joined)) {
    if (of_another.empty()) return named.empty() ? joined : named;
  }
  return {};
}

bool names_sgd(re2::StringPiece text) {
  static const re2::RE2 sgd(
      R"((?i:\boptim(?:izer)?(?:[_.-]?(?:name|type))?["']?\s*[:=]\s*["']?(?:torch\.optim\.)?sgd\b)|)"
      R"(\boptim\.SGD\(|torch/optim/sgd\.py)",
      bytes_options());
  return re2::RE2::PartialMatch(text, sgd);
}

// "C:\\Users\\me>python train.py": without PowerShell's "PS" before it.
bool has_cmd_prompt(re2::StringPiece text) {
  static const re2::RE2 prompt(R"((?m:^(?:\([\w. -]{1,40}\) )?[A-Z]:\\[^\n<>|"]{0,200}>\s*\S))", bytes_options());
  return re2::RE2::PartialMatch(text, prompt);
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

// "batch shape: torch.Size([32, 3, 224, 224])", in 32-bit floats: what most loaders hand out.
std::optional<double> printed_batch_bytes(re2::StringPiece text) {
  static const re2::RE2 shape(
      R"((?i:\b(?:batch|inputs?|images?|imgs?|data|samples?)\b)[^\n]{0,40}?torch\.Size\(\[(\d{1,9}(?:, \d{1,9}){1,5})\]\))",
      bytes_options());
  std::string sizes;
  if (!re2::RE2::PartialMatch(text, shape, &sizes)) return std::nullopt;
  double bytes = sizeof(float);
  re2::StringPiece rest(sizes);
  static const re2::RE2 number(R"((\d+))", bytes_options());
  for (int64_t size = 0; re2::RE2::FindAndConsume(&rest, number, &size);) bytes *= static_cast<double>(size);
  return bytes > 0 ? std::optional<double>(bytes) : std::nullopt;
}

// The samples of one batch of training on one card, by the last of what the text says of one card, else of any. Those
// of evaluation, of all cards together and of all micro-batches are other numbers.
std::optional<int> printed_batch_size(re2::StringPiece text) {
  static const re2::RE2 size(
      R"((?i:(def [^\n]{0,200})?((?:(?:total|global|effective)[ _](?:train )?)?[\w.-]*)batch[_ -]?size([\w ]{0,24}?)["']?\s*(?:[:=]\s*|\.{2,}\s*|\s)(\d{1,6})\b))",
      bytes_options());
  static const re2::RE2 other(R"((?i:eval|val_|valid|test|global|total|effective|accum|max|min))", bytes_options());
  static const re2::RE2 of_a_card(R"((?i:per[_ ](?:device|gpu)|micro))", bytes_options());
  constexpr int kMostLooks = 100;
  std::string is_default;  // of a function's parameter
  std::string before;
  std::string behind;
  int number = 0;
  std::optional<int> any;
  for (int i = 0; i < kMostLooks && re2::RE2::FindAndConsume(&text, size, &is_default, &before, &behind, &number);
       ++i) {
    if (!is_default.empty() || number == 0 || re2::RE2::PartialMatch(before, other)) continue;
    if (re2::RE2::PartialMatch(before + " " + behind, of_a_card)) return number;
    if (!any) any = number;
  }
  return any;
}

// The loader's arguments in code, a configuration or a command line.
void read_loader(re2::StringPiece text, Surroundings& around) {
  static const re2::RE2 workers(R"((?:\bnum[_-]|_num_|--)workers["']?\s*[:= ]\s*(\d{1,4})\b)", bytes_options());
  static const re2::RE2 prefetch(R"(\bprefetch[_-]factor["']?\s*[:= ]\s*(\d{1,4})\b)", bytes_options());
  static const re2::RE2 pinned(R"(\bpin[_-]memory["']?\s*[:= ]\s*(True|False)\b)", bytes_options());
  int number = 0;
  std::string word;
  if (!around.num_workers && re2::RE2::PartialMatch(text, workers, &number)) around.num_workers = number;
  if (!around.prefetch_factor && re2::RE2::PartialMatch(text, prefetch, &number)) around.prefetch_factor = number;
  if (!around.batch_size) around.batch_size = printed_batch_size(text);
  if (!around.pin_memory && re2::RE2::PartialMatch(text, pinned, &word)) around.pin_memory = word == "True";
  static const re2::RE2 processes(R"(\bnproc[_-]per[_-]node["']?\s*[:= ]\s*(\d{1,4})\b)", bytes_options());
  if (!around.ranks_on_host && re2::RE2::PartialMatch(text, processes, &number) && number > 0)
    around.ranks_on_host = number;
  if (!around.batch_bytes) around.batch_bytes = printed_batch_bytes(text);
}

}  // namespace

void look_around(std::string_view raw, Surroundings& around) {
  static const re2::RE2 cuda(R"((?i:CUDA used to build PyTorch|CUDA version)\s*:\s*(\d+\.\d+))", bytes_options());
  const re2::StringPiece subject(raw.data(), raw.size());
  if (around.torch_version.empty()) around.torch_version = find_torch_version(subject);
  if (around.cuda_version.empty()) (void)re2::RE2::PartialMatch(subject, cuda, &around.cuda_version);
  read_gpustat(raw, around);
  read_loader(subject, around);
  around.is_windows |=
      contains(raw, ":\\") && (contains(raw, ".py\"") || contains(raw, ".dll") || contains(raw, "WinError"));
  around.is_windows |= contains(raw, "Microsoft Windows") || contains(raw, "PS C:\\") || contains(raw, "C:/Users/") ||
                       contains(raw, "C:\\") || contains(raw, "expandable_segments not supported");
  around.is_cmd |= has_cmd_prompt(subject);
  around.is_image_build |= contains(raw, "Dockerfile") || contains(raw, "docker build") || contains(raw, "\nRUN ") ||
                           contains(raw, "[internal] load build");
  around.is_wsl |= contains(raw, "WSL") || contains(raw, "/mnt/c/") || contains(raw, "microsoft-standard");
  around.is_notebook |= contains(raw, "ipykernel") || contains(raw, "<ipython-input") || contains(raw, "/content/") ||
                        contains(raw, "----> ") || contains(raw, "Cell In[") || contains(raw, "Cell In [") ||
                        contains(raw, "/kaggle/");
  around.is_container |= contains(raw, "docker") || contains(raw, "kubepods") || contains(raw, "/.dockerenv") ||
                         contains(raw, "OOMKilled") || contains(raw, "containerd");
  around.is_slurm |= contains(raw, "slurm") || contains(raw, "srun:") || contains(raw, "#SBATCH") ||
                     contains(raw, "sbatch ") || contains(raw, "SLURM_");
  around.is_rocm |= names_rocm(subject);
  around.has_sgd |= names_sgd(subject);
  // A break leaves one of the three whole.
  const bool may_set = contains(raw, "ALLOC_CONF") || contains(raw, "expandable") || contains(raw, "segments");
  if (!around.expandable_segments && may_set) {
    const std::string squeezed = clean_text(raw).squeezed;
    around.expandable_segments =
        sets_expandable_segments(squeezed) || contains(squeezed, "expandable_segmentsisenabled");
  }
  if (around.gpu_name.empty()) find_gpu_name(subject, around);
  find_measures(raw, around.in_force);
  find_limits(raw, around.limits);
  const bool is_llama = contains(raw, "ggml") || contains(raw, "llama_model_load") || contains(raw, "llama.cpp") ||
                        contains(raw, "llama runner");
  if (around.framework.empty() && is_llama) around.framework = "llama.cpp";
  if (around.framework.empty() && (contains(raw, "/pytorch_lightning") || contains(raw, "Sanity Checking")))
    around.framework = "lightning";
  if (around.framework.empty()) {
    for (std::string_view name : {"vllm", "deepspeed", "lightning", "accelerate", "transformers"}) {
      if (contains(raw, std::string("/") + std::string(name)) && around.framework.empty()) around.framework = name;
    }
  }
}

}  // namespace oomscope
