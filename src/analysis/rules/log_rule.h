// What the rules over logs share: short forms for findings, and the changes in the order of the phase.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/rules/rule.h"
#include "analysis/text_facts.h"
#include "remedies/remedy.h"
#include "types/finding.h"

namespace oomscope {

// A finding of a log: claim "log.ID.claim", because "log.ID.because", surer "log.ID.surer" (or empty), the message
// itself as the first evidence, phase and confidence of the facts. `values` fill the placeholders of all three.
[[nodiscard]] Finding log_finding(const TextFacts& facts, std::string id, std::vector<PhraseValue> values = {});

// "12.3 GiB", or "?" where a figure is not known.
[[nodiscard]] PhraseValue size_value(std::string name, const std::optional<int64_t>& bytes);

// {victim}, {held}, {limit} and {cgroup} of lines of the kernel and of listings of limits; empty where nothing says so.
[[nodiscard]] std::vector<PhraseValue> victim_values(const TextFacts& facts);
// What was pasted beside the message speaks for the finding as well: who holds the card, how much host memory there is,
// how large /dev/shm is.
void add_listed_card(const TextFacts& facts, Finding& finding);
void add_listed_host(const TextFacts& facts, Finding& finding);
// The programs that held most of the host, by the kernel's own table.
void add_kernel_table(const TextFacts& facts, Finding& finding);
void add_listed_shm(const TextFacts& facts, Finding& finding);

// What the remedies are asked about.
[[nodiscard]] Circumstances circumstances_of(const TextFacts& facts);

// Those that apply and are not there yet, in this order.
void add_changes(const TextFacts& facts, std::initializer_list<std::string_view> remedies, Finding& finding);

// What lowers the memory that is needed at once, in this phase and at these frames; the best first.
[[nodiscard]] std::vector<std::string_view> remedies_of_phase(const TextFacts& facts);

// One request that is most of the card, or more: bad input, or an intermediate that need not exist.
[[nodiscard]] bool is_oversized_request(const TextFacts& facts);

// Who asked the GPU for memory where it was no allocator of PyTorch: llama.cpp, TensorRT, faiss. Else empty.
[[nodiscard]] std::string_view program_beside_torch(const TextFacts& facts);

// The failure is of this kind and family.
[[nodiscard]] bool failed_as(const CaseFacts& facts, Kind kind);

}  // namespace oomscope
