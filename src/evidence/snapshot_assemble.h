// From the reader's tables to a Snapshot: which rows are segments of the device, which trace is whose, what the
// settings say, and the caveats.
#pragma once

#include "base/result.h"
#include "evidence/snapshot_machine.h"
#include "evidence/snapshot_rows.h"
#include "types/snapshot.h"

namespace oomscope {

// Fails where the pickle is no snapshot; the Error has no `where`. `is_damaged`: it did not come to its end.
Result<Snapshot> assemble_snapshot(ReaderTables& tables, const SnapshotMachine::Top& top, bool is_damaged);

}  // namespace oomscope
