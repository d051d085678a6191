#include "words/words.h"

#include <algorithm>

#include "words/embedded.h"

namespace oomscope {
namespace {

bool is_one(const Phrase& phrase) {
  return std::any_of(phrase.values.begin(), phrase.values.end(), [](const PhraseValue& value) {
    return value.text == "1" && (value.name == "count" || value.name == "blocks" || value.name == "passes");
  });
}

std::string value_text(const PhraseValue& value, Language language) {
  if (value.phrases.empty() && value.text.empty())
    return std::string(word(value.name + ".none", language).value_or(""));
  if (value.phrases.empty()) return value.text;
  std::string joined;
  for (const Phrase& phrase : value.phrases) {
    if (!joined.empty()) joined += language == Language::chinese ? "；" : "; ";
    joined += say(phrase, language);
  }
  return joined;
}

}  // namespace

std::optional<Language> language_of(std::string_view name) {
  if (name.starts_with("zh")) return Language::chinese;
  if (name.starts_with("en") || name == "C" || name.starts_with("C.") || name == "POSIX") return Language::english;
  return std::nullopt;
}

std::string say(const Phrase& phrase, Language language) {
  if (phrase.empty()) return {};
  std::optional<std::string_view> entry = word(phrase.key, language);
  if (is_one(phrase)) {
    const std::optional<std::string_view> singular = word(phrase.key + ".one", language);
    if (singular) entry = singular;
  }
  if (!entry) return phrase.key;
  std::string said;
  std::string_view rest = *entry;
  while (!rest.empty()) {
    const size_t open = rest.find('{');
    const size_t close = open == std::string_view::npos ? open : rest.find('}', open);
    said += rest.substr(0, close == std::string_view::npos ? rest.size() : open);
    if (close == std::string_view::npos) break;
    const std::string_view name = rest.substr(open + 1, close - open - 1);
    const PhraseValue* found = nullptr;
    for (const PhraseValue& value : phrase.values) {
      if (value.name == name) found = &value;
    }
    said += found ? value_text(*found, language) : std::string(rest.substr(open, close - open + 1));
    rest.remove_prefix(close + 1);
  }
  return said;
}

std::string say(std::string_view key, Language language) {
  return say(Phrase{.key = std::string(key), .values = {}}, language);
}

std::string say(std::string_view key, const Values& values, Language language) {
  Phrase phrase{.key = std::string(key)};
  for (const auto& [name, text] : values) phrase.values.push_back({.name = name, .text = text, .phrases = {}});
  const auto say_sentences = [&](const std::vector<PhraseValue>& with) {
    for (PhraseValue& value : phrase.values) {
      const bool is_sentence = value.text.find('.') != std::string::npos && word(value.text, language).has_value();
      if (is_sentence) value.phrases = {Phrase{.key = value.text, .values = with}};
    }
  };
  say_sentences({});
  const std::vector<PhraseValue> said = phrase.values;  // a sentence that is a value may take others that are
  say_sentences(said);
  return say(phrase, language);
}

SaidError say(const Error& error, Language language) {
  return {.what = say(error.what, error.values, language),
          .where = say(error.where, error.values, language),
          .hint = say(error.hint, error.values, language)};
}

std::vector<std::string> word_keys(Language language) {
  std::vector<std::string> keys;
  for (const WordEntry& entry : embedded_words(language)) keys.emplace_back(entry.key);
  return keys;
}

std::optional<std::string_view> word(std::string_view key, Language language) {
  const std::span<const WordEntry> words = embedded_words(language);
  const auto found =
      std::lower_bound(words.begin(), words.end(), key,
                       [](const WordEntry& entry, std::string_view wanted) { return entry.key < wanted; });
  if (found == words.end() || found->key != key) return std::nullopt;
  return found->text;
}

}  // namespace oomscope
