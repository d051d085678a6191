#include "caching/rules.h"

#include <charconv>
#include <utility>

namespace oomscope {
namespace {

constexpr RuleSet kTorch211{.name = "torch-2.11"};

constexpr RuleSet torch_212() {
  RuleSet rules = kTorch211;
  rules.name = "torch-2.12";
  rules.first_release = "2.12";
  rules.last_release = "2.12";
  rules.tie_break = TieBreak::block_counter;
  rules.preemptive_rejection = true;
  return rules;
}

constexpr RuleSet torch_212_custom() {
  RuleSet rules = torch_212();
  rules.name = "torch-2.12-custom";
  rules.first_release = "2.12";
  rules.last_release = "2.12";
  rules.tie_break = TieBreak::custom_block_counter;
  return rules;
}

constexpr RuleSet torch_213() {
  RuleSet rules = torch_212();
  rules.name = "torch-2.13";
  rules.first_release = "2.13";
  rules.last_release = "2.15";
  rules.tie_break = TieBreak::segment_counter;
  rules.only_capture_suspends = true;
  return rules;
}

constexpr RuleSet torch_210() {
  RuleSet rules = kTorch211;
  rules.name = "torch-2.10";
  rules.first_release = "2.10";
  rules.last_release = "2.10";
  rules.large_segment_option = false;
  rules.use_on_oom = UseOnOom::last;
  return rules;
}

constexpr RuleSet torch_29() {
  RuleSet rules = torch_210();
  rules.name = "torch-2.9";
  rules.first_release = "2.9";
  rules.last_release = "2.9";
  rules.parser = SettingsParser::torch_2_0;
  rules.newest_scope_first = false;
  rules.expandable_per_request = false;
  rules.no_split_pools = false;
  rules.gc_needs_fraction_below_one = false;
  rules.private_expandable = PrivateExpandable::refuse_custom;
  return rules;
}

constexpr RuleSet torch_26() {
  RuleSet rules = torch_29();
  rules.name = "torch-2.6";
  rules.first_release = "2.5";
  rules.last_release = "2.8";
  return rules;
}

constexpr RuleSet torch_24() {
  RuleSet rules = torch_26();
  rules.name = "torch-2.4";
  rules.first_release = "2.2";
  rules.last_release = "2.4";
  rules.private_expandable = PrivateExpandable::no;
  rules.suspended_release_asserts = true;
  rules.non_split_rounding_option = false;
  rules.reclaim_skips_expandable = false;
  rules.use_on_oom = UseOnOom::never;
  rules.unmap_lowers_pool_count = false;
  return rules;
}

constexpr RuleSet torch_21() {
  RuleSet rules = torch_24();
  rules.name = "torch-2.1";
  rules.first_release = "1.13";
  rules.last_release = "2.1";
  rules.one_division_rounds = false;
  rules.uses_end_with_capture = false;
  return rules;
}

constexpr std::array<RuleSet, 9> kAll = {kTorch211,  torch_213(), torch_212(), torch_212_custom(), torch_210(),
                                         torch_29(), torch_26(),  torch_24(),  torch_21()};

using Release = std::pair<int, int>;  // major, minor

// "2.3", "2.3.1", "2.3.1+cu121"; empty for what is no release.
std::optional<Release> release_of(std::string_view text) {
  Release release;
  const char* end = text.data() + text.size();
  const std::from_chars_result major = std::from_chars(text.data(), end, release.first);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const std::from_chars_result minor = std::from_chars(major.ptr + 1, end, release.second);
  if (minor.ec != std::errc{}) return std::nullopt;
  if (minor.ptr != end && *minor.ptr != '.' && *minor.ptr != '+') return std::nullopt;
  return release;
}

}  // namespace

const std::array<RuleSet, 9>& all_rule_sets() { return kAll; }

const RuleSet& default_rule_set() { return kAll[0]; }

std::optional<RuleSet> find_rule_set(std::string_view name) {
  constexpr std::string_view kPrefix = "torch-";
  if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
  for (const RuleSet& rules : kAll) {
    if (rules.name.substr(kPrefix.size()) == name) return rules;
  }
  const std::optional<Release> release = release_of(name);
  if (!release) return std::nullopt;
  for (const RuleSet& rules : kAll) {
    if (release_of(rules.first_release) <= release && release <= release_of(rules.last_release)) return rules;
  }
  return std::nullopt;
}

}  // namespace oomscope
