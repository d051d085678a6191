// Documents as HTML: the same sections as on the terminal, as elements that read and print without a script.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/document.h"

namespace oomscope {

// Text as it stands in an element or in a double-quoted attribute. Control characters and bytes that are not UTF-8
// become visible escapes, as on the terminal.
[[nodiscard]] std::string html_text(std::string_view text);

// `<tag class="…">text</tag>`; no class where it is empty.
[[nodiscard]] std::string html_element(std::string_view tag, std::string_view css_class, std::string_view text);

// One section; headings are <h3>.
[[nodiscard]] std::string html_section(const Section& section);
[[nodiscard]] std::string html_sections(const std::vector<Section>& sections);

}  // namespace oomscope
