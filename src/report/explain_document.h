// `why --explain`: what is known of a cause, a remedy or a popular claim, without any evidence. The texts are those of
// src/words/, the tables those of src/remedies/; the pages in docs/causes/ and docs/claims.md say more.
#pragma once

#include <string>

#include "base/result.h"
#include "report/document.h"

namespace oomscope {

// The quick table: what is seen, what is likely behind it, what to check first; then all ids.
[[nodiscard]] Document explain_all(Language language);

// The cause, remedy or claim of that id. Error: unknown-id, with the nearest one as its hint.
[[nodiscard]] Result<Document> explain_one(const std::string& id, Language language);

}  // namespace oomscope
