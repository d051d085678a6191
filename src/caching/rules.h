// RuleSet: what differs between PyTorch releases, as switches of the one engine.
//
// Source: c10/cuda/CUDACachingAllocator.cpp, torch 2.1 to 2.13, and what tools/oracle found the releases to do
// (docs/fidelity.md). A snapshot does not say which release wrote it;
// replay tries the rule sets and keeps the one that reproduces the recording (src/replay/verify.h).
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "types/allocator_settings.h"

namespace oomscope {

// What decides between free blocks of one stream and one size.
enum class TieBreak {
  address,               // up to torch 2.11: lowest address
  block_counter,         // 2.12: the block that was built first
  custom_block_counter,  // main in May 2026: block_counter in pools with their own segment allocator, else address
  segment_counter,       // 2.13 on: the segment that was obtained first, then address
};

// When pools that opted in with use_on_oom are searched.
enum class UseOnOom { never, last, early };

// Expandable segments in private pools. A pool with its own segment allocator never has them.
enum class PrivateExpandable {
  no,             // to torch 2.4
  refuse_custom,  // 2.7 to 2.9: yes, but asking the driver for such a pool is an error (2.6: its allocator is not
                  // asked)
  yes,            // 2.10 on
};

struct RuleSet {
  std::string_view name;  // as `--rules` takes it
  std::string_view first_release = "2.11";
  std::string_view last_release = "2.11";
  bool large_segment_option = true;  // large_segment_size_mb exists
  SettingsParser parser = SettingsParser::unified;
  TieBreak tie_break = TieBreak::address;
  bool one_division_rounds = true;         // false (to 2.1): roundup_power2_divisions:1 leaves sizes unrounded
  bool non_split_rounding_option = true;   // false: the bound for oversize blocks is 20 MiB whatever the settings say
  bool newest_scope_first = true;          // which open pool scope an allocation goes to
  bool only_capture_suspends = false;      // true (2.13 on): only the capture of a call's own stream suspends events
  bool suspended_release_asserts = false;  // true (to 2.4): empty_cache while suspended is an error; else it is partial
  bool uses_end_with_capture = true;       // false (to 2.1): record_stream inside a capture needs an event behind it
  bool expandable_per_request = true;      // false: the process-wide setting decides how a block is split
  PrivateExpandable private_expandable = PrivateExpandable::yes;
  UseOnOom use_on_oom = UseOnOom::early;
  bool no_split_pools = true;
  bool reclaim_skips_expandable = true;     // false: release_available and GC may trip an assertion; we then stop there
  bool gc_needs_fraction_below_one = true;  // false: any set_per_process_memory_fraction call switches GC on
  bool preemptive_rejection = false;        // throw_on_cudamalloc_oom exists
  bool unmap_lowers_pool_count = true;
};

// All rule sets, newest measured first: the order in which replay tries them.
const std::array<RuleSet, 9>& all_rule_sets();
const RuleSet& default_rule_set();  // torch-2.11, the one proved on recordings
// By name or by a release that it holds for ("torch-2.6", "2.5", "torch-2.3.1+cu121"); empty if unknown.
std::optional<RuleSet> find_rule_set(std::string_view name);

}  // namespace oomscope
