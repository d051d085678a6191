// Two recordings, whatever they say: scaling refuses them, or tells what runs at other values ask for and what fits;
// measures change that; and none of it takes longer than their requests explain.
//
// An input is a number as text and a line's end, so many bytes of the first recording, and the second.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "evidence/snapshot_reader.h"
#include "plan/advice.h"
#include "plan/fit.h"
#include "replay/verify.h"

namespace {

using namespace oomscope;

std::unique_ptr<Snapshot> read(std::string_view bytes) {
  const SnapshotReadOptions options{.max_memory_bytes = int64_t{256} << 20, .use_template = true};
  Result<Snapshot> snapshot = read_snapshot_bytes(std::as_bytes(std::span(bytes)), "fuzz", options);
  return snapshot.has_value() ? std::make_unique<Snapshot>(std::move(*snapshot)) : nullptr;
}

void answer(const ScalingModel& model, const Verification& base) {
  FitQuestion question{
      .rules = base.config.rules, .settings = base.config.settings, .cap_bytes = {}, .at = {}, .progress = {}};
  question.at = model.base_value() * 2;
  question.cap_bytes = replay_what_if(requests_at(model, *question.at),
                                      {.rules = question.rules, .settings = question.settings, .cap_bytes = {}})
                           .peak_reserved;
  (void)find_fit(model, question);
  const Structure structure = find_structure(base.timeline);
  const Job job = make_job(base, structure, requests_at(model, *question.at));
  const WhatIf what_if{.rules = question.rules, .settings = question.settings, .cap_bytes = question.cap_bytes};
  (void)find_sets(job, what_if, evaluate_measures(job, what_if, {}, 1), {""}, {}, 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string_view head = input.substr(0, input.find('\n'));
  const std::string_view both = input.substr(std::min(size, head.size() + 1));
  size_t length = 0;
  std::from_chars(head.data(), head.data() + head.size(), length);
  const std::unique_ptr<Snapshot> first = read(both.substr(0, length));
  const std::unique_ptr<Snapshot> second = read(both.substr(std::min(length, both.size())));
  if (first == nullptr || second == nullptr || first->traces.empty() || second->traces.empty()) return 0;
  const auto begin = std::chrono::steady_clock::now();
  const std::unique_ptr<Verification> small = verify(*first, 0);
  const std::unique_ptr<Verification> large = verify(*second, 0);
  const std::vector<ScalingInput> inputs = {{.verification = small.get(), .path = "first"},
                                            {.verification = large.get(), .path = "second"}};
  (void)scale(inputs, std::nullopt);  // reads the values
  const Result<ScalingModel> model = scale(inputs, {{1, 2}});
  if (model.has_value()) answer(*model, *inputs[model->recordings.back()].verification);
  constexpr std::chrono::seconds kLimit{20};  // under sanitizers, on a busy machine; inputs have 64 KiB
  if (std::chrono::steady_clock::now() - begin > kLimit) __builtin_trap();
  return 0;
}
