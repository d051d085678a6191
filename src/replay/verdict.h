// The verdict on a failed request: avoidable, unavoidable, or undecided, each with its proof.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "replay/bounds.h"
#include "replay/sweep.h"
#include "replay/verify.h"

namespace oomscope {

enum class VerdictKind : uint8_t {
  avoidable,    // a setting or an explicit placement serves it within the capacity
  unavoidable,  // more bytes are live at once than there are: no allocator can
  undecided,    // neither was shown
};

// What a verdict's proof is called where it is no conf.
inline constexpr std::string_view kDefaultsProof = "PyTorch's defaults";
inline constexpr std::string_view kPackingProof = "packing";
inline constexpr std::string_view kFloorProof = "floor";

struct Verdict {
  uint32_t event = 0;  // of the failed request; unavoidable in a what-if: of the most bytes that the job has live
  VerdictKind verdict = VerdictKind::undecided;
  // avoidable: what the proof leaves of the capacity; unavoidable: what is missing at least; undecided: by how much the
  // best placement that was found exceeds the capacity.
  int64_t bytes = 0;
  std::string proof;               // a conf, or one of the names below; empty: undecided
  int64_t capacity_low_bytes = 0;  // what the allocator could reserve at most, as far as known
  int64_t capacity_high_bytes = 0;
};

// What the process's allocator could reserve when `event` (an oom entry) failed: the limit if there is one, else what
// it held and what the card had free.
struct Capacity {
  int64_t low_bytes = 0;
  int64_t high_bytes = 0;
  bool is_limit = false;  // else the card was full
};

struct FailedRequest {
  uint32_t event = 0;
  int64_t size_bytes = 0;    // rounded
  size_t failure_index = 0;  // into RequestStream::failures; used to look up what the runs did with it
  bool recorded = true;      // an oom entry; else the stop of a what-if replay, which the runs answer by completing
  bool try_packing = true;   // costs a packing of all that lives until then
};

[[nodiscard]] const char* name_of(VerdictKind kind);

// `runs` were replayed under capacity.low_bytes. Errors: lifetimes that overflow.
[[nodiscard]] Result<Verdict> judge(const Verification& verification, const FailedRequest& failed,
                                    const Capacity& capacity, const std::vector<SweepRun>& runs);

// The height of an explicit placement of all lifetimes, checked by code that shares nothing with the packer.
struct CheckedPacking {
  int64_t height_bytes = 0;
  std::string method;
};
[[nodiscard]] Result<CheckedPacking> checked_packing(std::span<const Lifetime> rounded);

}  // namespace oomscope
