// The recording that every checkout has: a job that failed for lack of one large piece. 4,801 MiB live, 980 MiB wanted,
// a limit of 6,406 MiB.
#pragma once

#include <memory>
#include <string>

#include "evidence/snapshot_reader.h"

namespace oomscope {

inline std::unique_ptr<Snapshot> demo_recording() {
  return std::make_unique<Snapshot>(*read_snapshot_file(std::string(OOMSCOPE_TEST_DATA) + "/demo_oom.pickle.zst"));
}

}  // namespace oomscope
