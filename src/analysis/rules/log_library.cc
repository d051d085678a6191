// A library failed to allocate: memory, or something else behind its message.
#include "analysis/rules/log_rules.h"

namespace oomscope {

std::vector<Finding> find_log_library(const CaseFacts& facts) {
  if (!failed_as(facts, Kind::gpu_lib_alloc_failed)) return {};
  const TextFacts& text = *facts.text;
  const std::string_view id = text.failure->id;
  const bool is_cudnn = id.starts_with("cudnn");
  const bool is_blas = id.starts_with("cublas") || id.starts_with("culib");
  Finding finding = log_finding(text, is_cudnn ? "library-cudnn" : is_blas ? "library-cublas" : "library-memory");
  finding.id = "library-failure";
  if (is_cudnn) add_changes(text, {"match-versions", "smaller-batch", "other-gpu", "check-launch"}, finding);
  if (is_blas)
    add_changes(text, {"smaller-batch", "check-indices", "other-gpu", "model-parallel", "check-launch"}, finding);
  if (id.starts_with("bitsandbytes"))
    add_changes(text, {"smaller-batch", "match-versions", "lighter-optimizer"}, finding);
  add_changes(text, {"smaller-batch", "lower-limit", "other-gpu"}, finding);
  add_listed_card(text, finding);
  return {finding};
}

}  // namespace oomscope
