// What people paste beside a message: memory_summary(), nvidia-smi, gpustat, free, df, collect_env.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "evidence/text/squeeze.h"
#include "types/text_evidence.h"

namespace oomscope {

// Literals that announce a table, in lower case.
[[nodiscard]] std::span<const std::string_view> table_triggers();

// Whether the trigger is one of rows of nvidia-smi, which may stand without their head. They are read only where no
// listing was found before; the name of the first card stands on the line before.
[[nodiscard]] bool is_row_trigger(size_t index);
void read_rows(std::span<const CleanLine> lines, Surroundings& around);

// The kernel's table of processes, from its head on: "[ pid ] uid tgid total_vm rss ... name". The first one counts.
[[nodiscard]] bool is_process_table(size_t trigger);
void read_process_table(std::string_view text, std::vector<HostProcess>& processes);

// Reads the table that begins at `lines`, if one does. `line_number` is that of the first one; the line before it may
// hold the command that printed it.
void read_table(std::span<const CleanLine> lines, int64_t line_number, std::string_view line_before,
                TextEvidence& evidence);

// gpustat: "[0] Tesla V100 | 44'C, 0 % | 15836 / 16130 MB |", anywhere in the text.
void read_gpustat(std::string_view raw, Surroundings& around);

}  // namespace oomscope
