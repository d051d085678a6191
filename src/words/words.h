// The sentences for people, by key, in each language. The texts are in en/ and zh/, one file an area, with the same
// keys and placeholders (words_test.cc holds them to it); cmake/words.cmake embeds them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "types/phrase.h"

namespace oomscope {

enum class Language : uint8_t { english, chinese };

// "en", "zh", or a locale ("zh_CN.UTF-8", "C"): empty where it names neither.
[[nodiscard]] std::optional<Language> language_of(std::string_view name);

// The sentence with its values filled in; where {count}, {blocks} or {passes} is 1, that of
// KEY.one if there is one. "" for an empty phrase.
// A key without an entry gives the key itself and a placeholder without a value stays as it is: visible, and never a
// crash. An empty value is said as "NAME.none", where there is such an entry.
[[nodiscard]] std::string say(const Phrase& phrase, Language language);
[[nodiscard]] std::string say(std::string_view key, Language language);

// The same with plain values, as caveats and errors have them. A value that is itself a key is said, with them all.
[[nodiscard]] std::string say(std::string_view key, const Values& values, Language language);

// An error's three texts.
struct SaidError {
  std::string what;
  std::string where;
  std::string hint;
};
[[nodiscard]] SaidError say(const Error& error, Language language);

// All keys of a language, sorted, and an entry's raw text.
[[nodiscard]] std::vector<std::string> word_keys(Language language);
[[nodiscard]] std::optional<std::string_view> word(std::string_view key, Language language);

}  // namespace oomscope
