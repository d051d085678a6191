// A library failed to allocate: memory, or something else behind its message.
#include <array>
#include <utility>

#include "analysis/rules/log_rules.h"

namespace oomscope {
namespace {

// The library as its makers write it, by the status that it gave.
std::string_view library_of(const TextMessage& message) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kNames = {{{"CUBLAS", "cuBLAS"},
                                                                                    {"CUSOLVER", "cuSOLVER"},
                                                                                    {"CUSPARSE", "cuSPARSE"},
                                                                                    {"CUFFT", "cuFFT"},
                                                                                    {"CURAND", "cuRAND"},
                                                                                    {"HIPBLAS", "hipBLAS"},
                                                                                    {"rocblas", "rocBLAS"},
                                                                                    {"miopen", "MIOpen"},
                                                                                    {"cublas", "cuBLAS"}}};
  for (const auto& [status, name] : kNames) {
    if (message.what.starts_with(status)) return name;
  }
  return message.id.starts_with("cublas") ? "cuBLAS" : std::string_view{};
}

}  // namespace

std::vector<Finding> find_log_library(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::gpu_lib_alloc_failed)) return {};
  const TextFacts& text = *facts.text;
  const std::string_view id = text.failure->id;
  const bool is_cudnn = id.starts_with("cudnn");
  const bool may_be_mismatch = text.failure->what == "CUDNN_STATUS_NOT_INITIALIZED";
  const std::string_view library = library_of(*text.failure);
  const PhraseValue name{.name = "library", .text = std::string(library), .phrases = {}};
  Finding finding = log_finding(text,
                                may_be_mismatch    ? "library-cudnn"
                                : is_cudnn         ? "library-cudnn-memory"
                                : !library.empty() ? "library-handle"
                                                   : "library-memory",
                                {name});
  finding.id = "library-failure";
  if (is_cudnn && !may_be_mismatch)
    add_changes(text, {"smaller-batch", "other-gpu", "free-other-processes", "match-versions"}, finding);
  if (is_cudnn) add_changes(text, {"match-versions", "smaller-batch", "other-gpu", "check-launch"}, finding);
  if (!library.empty())
    add_changes(text, {"smaller-batch", "check-indices", "other-gpu", "model-parallel", "check-launch"}, finding);
  if (id.starts_with("bitsandbytes"))
    add_changes(text, {"smaller-batch", "match-versions", "lighter-optimizer"}, finding);
  add_changes(text, {"smaller-batch", "lower-limit", "other-gpu"}, finding);
  add_listed_card(text, finding);
  return {finding};
}

}  // namespace oomscope
