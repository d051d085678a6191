// What was replayed, told beside the changes that the findings propose.
#pragma once

#include <string>
#include <vector>

#include "analysis/why.h"
#include "types/finding.h"

namespace oomscope {

// The line that sets the allocator so; empty: PyTorch's defaults.
[[nodiscard]] std::string paste_line(const std::string& conf);
// Has a replay of the cause's own transform answered, or said why it cannot?
[[nodiscard]] bool was_tried(const Change& change);

// A change whose remedy was tried as a measure, and that nothing else answers: what the form of it that saves most
// brought.
void add_measures(std::vector<Finding>& findings, const Changes& changes);
// The setting that did best in the replays is a change too: the first where placement is the cause, or where it brings
// as much as all others, else the last.
void add_best_setting(std::vector<Finding>& findings, const Diagnosis& diagnosis, const Changes& changes);

}  // namespace oomscope
