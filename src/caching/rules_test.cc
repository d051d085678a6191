#include "caching/rules.h"

#include <gtest/gtest.h>

#include <set>

namespace oomscope {
namespace {

TEST(RuleSets, DefaultIsTheOneProvedOnRecordings) { EXPECT_EQ(default_rule_set().name, "torch-2.11"); }

TEST(RuleSets, AreFoundByNameAndByRelease) {
  EXPECT_EQ(find_rule_set("torch-2.6")->name, "torch-2.6");
  EXPECT_EQ(find_rule_set("2.6")->name, "torch-2.6");
}

TEST(RuleSets, AreFoundByEveryReleaseThatTheyHoldFor) {
  EXPECT_EQ(find_rule_set("torch-1.13")->name, "torch-2.1");
  EXPECT_EQ(find_rule_set("2.0")->name, "torch-2.1");
  EXPECT_EQ(find_rule_set("torch-2.3")->name, "torch-2.4");
  EXPECT_EQ(find_rule_set("2.3.1")->name, "torch-2.4");
  EXPECT_EQ(find_rule_set("torch-2.3.1+cu121")->name, "torch-2.4");
  EXPECT_EQ(find_rule_set("2.8")->name, "torch-2.6");
  EXPECT_EQ(find_rule_set("2.12.1")->name, "torch-2.12");
  EXPECT_EQ(find_rule_set("torch-2.15")->name, "torch-2.13");
}

TEST(RuleSets, NoReleaseIsLeftOutBetweenTheFirstAndTheLast) {
  for (int minor = 0; minor <= 15; ++minor) EXPECT_TRUE(find_rule_set("2." + std::to_string(minor))) << minor;
}

TEST(RuleSets, UnknownNameIsNoRuleSet) {
  EXPECT_FALSE(find_rule_set("torch-9.9").has_value());
  EXPECT_FALSE(find_rule_set("").has_value());
  for (const char* name : {"2.99", "1.12", "2", "2.", "2.3x", "torch-torch-2.6", "-2.6"}) {
    EXPECT_FALSE(find_rule_set(name).has_value()) << name;
  }
}

TEST(RuleSets, HaveDistinctNames) {
  std::set<std::string_view> names;
  for (const RuleSet& rules : all_rule_sets()) names.insert(rules.name);
  EXPECT_EQ(names.size(), all_rule_sets().size());
}

TEST(RuleSets, TieBreakFollowsTheReleases) {
  EXPECT_EQ(find_rule_set("2.1")->tie_break, TieBreak::address);
  EXPECT_EQ(find_rule_set("2.11")->tie_break, TieBreak::address);
  EXPECT_EQ(find_rule_set("2.12")->tie_break, TieBreak::block_counter);
  EXPECT_EQ(find_rule_set("2.12-custom")->tie_break, TieBreak::custom_block_counter);
  EXPECT_EQ(find_rule_set("2.13")->tie_break, TieBreak::segment_counter);
}

TEST(RuleSets, NewParserCameWithTorch210) {
  EXPECT_EQ(find_rule_set("2.6")->parser, SettingsParser::torch_2_0);
  EXPECT_EQ(find_rule_set("2.9")->parser, SettingsParser::torch_2_0);
  EXPECT_EQ(find_rule_set("2.10")->parser, SettingsParser::unified);
}

TEST(RuleSets, PrivatePoolsBecameExpandableWithTorch26) {
  EXPECT_EQ(find_rule_set("2.4")->private_expandable, PrivateExpandable::no);
  EXPECT_EQ(find_rule_set("2.6")->private_expandable, PrivateExpandable::refuse_custom);
  EXPECT_EQ(find_rule_set("2.9")->private_expandable, PrivateExpandable::refuse_custom);
  EXPECT_EQ(find_rule_set("2.11")->private_expandable, PrivateExpandable::yes);
}

TEST(RuleSets, ReleaseWhileSuspendedWasAnAssertionUpToTorch24) {
  EXPECT_TRUE(find_rule_set("2.1")->suspended_release_asserts);
  EXPECT_TRUE(find_rule_set("2.4")->suspended_release_asserts);
  EXPECT_FALSE(find_rule_set("2.6")->suspended_release_asserts);
}

TEST(RuleSets, UseOnOomMovedForwardWithTorch211) {
  EXPECT_EQ(find_rule_set("2.4")->use_on_oom, UseOnOom::never);
  EXPECT_EQ(find_rule_set("2.9")->use_on_oom, UseOnOom::last);
  EXPECT_EQ(find_rule_set("2.10")->use_on_oom, UseOnOom::last);
  EXPECT_EQ(find_rule_set("2.11")->use_on_oom, UseOnOom::early);
}

TEST(RuleSets, NewestScopeComesFirstSinceTorch210) {
  EXPECT_FALSE(find_rule_set("2.9")->newest_scope_first);
  EXPECT_TRUE(find_rule_set("2.10")->newest_scope_first);
}

TEST(RuleSets, OnlyACaptureSuspendsSinceTorch213) {
  EXPECT_FALSE(find_rule_set("2.12")->only_capture_suspends);
  EXPECT_TRUE(find_rule_set("2.13")->only_capture_suspends);
}

TEST(RuleSets, CollectionNeedsAFractionBelowOneSinceTorch210) {
  EXPECT_FALSE(find_rule_set("2.9")->gc_needs_fraction_below_one);
  EXPECT_TRUE(find_rule_set("2.10")->gc_needs_fraction_below_one);
}

TEST(RuleSets, ReleaseAvailableSkipsExpandableBlocksAfterTorch24) {
  EXPECT_FALSE(find_rule_set("2.4")->reclaim_skips_expandable);
  EXPECT_TRUE(find_rule_set("2.6")->reclaim_skips_expandable);
}

TEST(RuleSets, LargeSegmentSizeCameWithTorch211) {
  EXPECT_FALSE(find_rule_set("2.10")->large_segment_option);
  EXPECT_TRUE(find_rule_set("2.11")->large_segment_option);
}

TEST(RuleSets, NonSplitRoundingCameAfterTorch24) {
  EXPECT_FALSE(find_rule_set("2.4")->non_split_rounding_option);
  EXPECT_TRUE(find_rule_set("2.6")->non_split_rounding_option);
}

}  // namespace
}  // namespace oomscope
