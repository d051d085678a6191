// Opens whatever a person names: a snapshot or a text, packed or not, told apart by its first bytes.
#pragma once

#include <string>
#include <variant>

#include "base/result.h"
#include "evidence/snapshot_reader.h"
#include "types/text_evidence.h"

namespace oomscope {

using EvidenceFile = std::variant<Snapshot, TextEvidence>;

// By its first bytes, unpacked where needed. Errors: those of open_file_source.
[[nodiscard]] Result<bool> is_text_file(const std::string& path);

// `path` is opened, `name` is for people. Errors: those of open_file_source and of the reader that fits.
[[nodiscard]] Result<EvidenceFile> read_evidence_file(const std::string& path, const std::string& name);

}  // namespace oomscope
