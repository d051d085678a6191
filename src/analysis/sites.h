// Where memory was asked for, said so that it can be compared between recordings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "replay/verify.h"

namespace oomscope {

// The file's name without its folder; what differs from run to run becomes '*': the hash that Inductor names a file
// by, the process number of a notebook. "/tmp/torchinductor_me/ab/cab2…x.py" -> "*.py".
[[nodiscard]] std::string normal_file(std::string_view path);
// Likewise for functions: "torch_dynamo_resume_in_main_at_42" -> "torch_dynamo_resume_in_main_at_*".
[[nodiscard]] std::string normal_function(std::string_view name);

// Live bytes of one line of code (user_frame) at one moment.
struct LiveSite {
  std::string file;  // as recorded; empty: no frame is known, and the rest is empty too
  std::string function;
  uint64_t line = 0;
  bool user_code = false;
  int64_t bytes = 0;
  int64_t count = 0;                  // blocks
  std::vector<uint64_t> callees;      // what the line called to get them, as hashes, ascending
  uint32_t first_event = 0xffffffff;  // the first allocation among them
};

// "train.py:88 forward", or "" without a frame.
[[nodiscard]] std::string site_text(const LiveSite& site);

// Right after `event`: most bytes first, one row a line, sums to the active bytes. Several stacks without a frame are
// one row.
[[nodiscard]] std::vector<LiveSite> live_sites(const Verification& verification, uint32_t event);

// The way from the user's line to the allocation as a hash, the same in every process of a job: names of files and
// functions, and lines. 0 for a stack without frames.
[[nodiscard]] uint64_t request_path(const Snapshot& snapshot, StackId stack);

}  // namespace oomscope
