#include "words/words.h"

#include <gtest/gtest.h>
#include <set>

#include "words/embedded.h"

namespace oomscope {
namespace {

std::multiset<std::string> placeholders(std::string_view text) {
  std::multiset<std::string> names;
  for (size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{', open + 1)) {
    const size_t close = text.find('}', open);
    if (close == std::string_view::npos) break;
    names.emplace(text.substr(open, close - open + 1));
  }
  return names;
}

std::set<std::string> names_only(std::string_view text) {
  const std::multiset<std::string> all = placeholders(text);
  return {all.begin(), all.end()};
}

TEST(Words, AreSortedAndNoKeyTwice) {
  for (const Language language : {Language::english, Language::chinese}) {
    const std::span<const WordEntry> words = embedded_words(language);
    ASSERT_FALSE(words.empty());
    EXPECT_EQ(std::adjacent_find(words.begin(), words.end(),
                                 [](const WordEntry& a, const WordEntry& b) { return a.key >= b.key; }),
              words.end());
  }
}

TEST(Words, BothLanguagesHaveTheSameKeysAndPlaceholders) {
  EXPECT_EQ(word_keys(Language::english), word_keys(Language::chinese));
  for (const std::string& key : word_keys(Language::english)) {
    const auto english = word(key, Language::english);
    const auto chinese = word(key, Language::chinese);
    if (!chinese) continue;  // said above
    EXPECT_EQ(names_only(*english), names_only(*chinese)) << key;
  }
}

TEST(Words, AnEmptyValueIsSaidWhereThereAreWordsForIt) {
  const Phrase place = Phrase{.key = "cause.evidence.state"}.with("bytes", "1 MiB").with("site", "");
  EXPECT_EQ(say(place, Language::english), "1 MiB of state made at (no Python frames)");
  EXPECT_NE(say(place, Language::chinese).find("（没有 Python 帧）"), std::string::npos);
  EXPECT_EQ(say(Phrase{.key = "cause.evidence.state"}.with("bytes", "").with("site", "a.py:1 f"), Language::english),
            " of state made at a.py:1 f");
}

TEST(Words, ChineseEntriesAreChinese) {
  for (const std::string& key : word_keys(Language::chinese)) {
    const std::string_view text = *word(key, Language::chinese);
    const bool has_cjk =
        std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0xE3; });
    const bool is_only_values =
        text.find_first_not_of("{}_abcdefghijklmnopqrstuvwxyz0123456789. ") == std::string_view::npos;
    EXPECT_TRUE(has_cjk || is_only_values) << key << ": " << text;
  }
}

TEST(Words, AnErrorIsSaidWithItsValues) {
  const Error error{.code = "snapshot-damaged",
                    .what = "error.snapshot-damaged",
                    .where = "error.at-byte",
                    .hint = "oomscope verify a.pickle",
                    .values = {{"damage", "error.pickle.ends-in-text"}, {"length", "5"}, {"file", "a"}, {"byte", "7"}}};
  const SaidError said = say(error, Language::english);
  EXPECT_EQ(said.what, "the file ends inside a text of 5 bytes, before any segment or event");
  EXPECT_EQ(said.where, "a, byte 7");
  EXPECT_EQ(said.hint, "oomscope verify a.pickle");
  EXPECT_NE(say(error, Language::chinese).what.find("5 字节"), std::string::npos);
}

TEST(Words, AMissingKeyOrValueStaysVisible) {
  EXPECT_EQ(say("no.such.key", Language::english), "no.such.key");
  EXPECT_EQ(say(Phrase{}, Language::chinese), "");
}

TEST(Words, LanguageOfALocale) {
  EXPECT_EQ(language_of("zh_CN.UTF-8"), Language::chinese);
  EXPECT_EQ(language_of("en_GB"), Language::english);
  EXPECT_EQ(language_of("C"), Language::english);
  EXPECT_EQ(language_of("fr_FR"), std::nullopt);
}

}  // namespace
}  // namespace oomscope
