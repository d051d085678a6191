// Phrase: a sentence for people that has no language yet, as an entry of the catalogue in src/words/ and its values.
//
// Findings, remedies and caveats of rules carry phrases; the report alone turns them into text, in English or Chinese
// (words/words.h), so that no rule knows a language and --json stays English.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace oomscope {

struct Phrase;

// What stands for {name}: finished text that is the same in each language (a size, a path, a function), or phrases,
// which are joined as a list.
struct PhraseValue {
  std::string name;
  std::string text;
  std::vector<Phrase> phrases;
};

struct Phrase {
  std::string key;  // "cause.graph-kept.claim"; empty: nothing to say
  std::vector<PhraseValue> values = {};

  [[nodiscard]] bool empty() const { return key.empty(); }
  // To be chained: Phrase{.key = "…"}.with("bytes", format_mib(n)).
  Phrase&& with(std::string name, std::string text) && {
    values.push_back({.name = std::move(name), .text = std::move(text), .phrases = {}});
    return std::move(*this);
  }
  Phrase&& with(std::string name, std::vector<Phrase> phrases) && {
    values.push_back({.name = std::move(name), .text = {}, .phrases = std::move(phrases)});
    return std::move(*this);
  }
  Phrase&& with(std::string name, Phrase phrase) && {
    return std::move(*this).with(std::move(name), std::vector<Phrase>{std::move(phrase)});
  }
};

}  // namespace oomscope
