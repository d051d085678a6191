// SNAPSHOT.marks.json: the steps and phases of a run beside a snapshot that cannot carry them (before torch 2.8).
//
// {"schema": "oomscope.marks/1", "marks": [{"name": "oomscope.step:3", "stage": "START", "time_us": 1730000000000000}]}
// Names are those of record_function scopes, stage is START or END, times are Unix time in microseconds as the events
// have them. The marks are the process's: they hold for each of its devices.
#pragma once

#include <string>
#include <string_view>

#include "types/snapshot.h"

namespace oomscope {

// Adds the marks to the annotations, for all devices. False: the text is no such file, or a part of it makes
// no sense; then nothing is added.
bool add_marks(std::string_view text, Snapshot& snapshot);

// The marks that lie beside the snapshot, unless it has such annotations of its own. A file that cannot be used leaves
// a caveat.
void add_marks_beside(const std::string& snapshot_path, Snapshot& snapshot);

}  // namespace oomscope
