// Reads a log of any length in one pass and little memory: what it says about memory, as TextEvidence.
//
//   bytes --TriggerScan--> places that may hold a message --CleanText--> a piece of some KiB --Matcher--> TextMessage
//
// Only the places are looked at closely, so the cost is that of the scan. A literal that occurs very often is looked at
// closely only so many times and then in the last part of the text alone; the evidence says so.
//
// Text may be UTF-8 or UTF-16 (by its mark), or anything whose ASCII is ASCII.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pickle/byte_source.h"
#include "types/text_evidence.h"

namespace oomscope {

// Fails only where not one byte can be read.
[[nodiscard]] Result<TextEvidence> read_text_source(std::unique_ptr<ByteSource> source, const std::string& name);
[[nodiscard]] TextEvidence read_text(std::string_view text, const std::string& name);

// Whether somebody who types this as an argument means the text itself: it holds a message that we know.
[[nodiscard]] bool looks_like_message(std::string_view text);

}  // namespace oomscope
