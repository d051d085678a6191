// A RecordingView as the bytes that the page decodes: see docs/formats/report-page.md ("oomscope.view/1").
#pragma once

#include <string>

#include "analysis/recording_view.h"
#include "words/words.h"

namespace oomscope {

struct ViewLabel {
  std::string name;  // of the file or the rank, for people
  Language language = Language::english;
};

// gzip of: "OOMVIEW1", the header's length (4 bytes, little-endian), the header (JSON), the columns.
[[nodiscard]] std::string view_payload(const RecordingView& view, const ViewLabel& label);

[[nodiscard]] std::string base64(const std::string& bytes);

// Fixed colours, told apart with any colour vision: "#4477aa". By category, then the rounding.
[[nodiscard]] std::string_view category_colour(size_t category);
// By rank among the sites; what is beyond is the rest.
[[nodiscard]] std::string_view site_colour(size_t rank, size_t sites);
// The category for people; behind the last one the rounding.
[[nodiscard]] std::string category_name(const RecordingView& view, size_t category, Language language);

}  // namespace oomscope
