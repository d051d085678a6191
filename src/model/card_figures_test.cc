#include "model/card_figures.h"

#include <gtest/gtest.h>

#include "base/bytes_text.h"

namespace oomscope {
namespace {

TextMessage message(std::initializer_list<std::pair<Figure, double>> gib) {
  TextMessage out;
  for (const auto& [figure, value] : gib) out.figures[figure] = value * static_cast<double>(kGiB);
  return out;
}

TEST(CardFigures, RowsAddUpToTheCard) {
  TextMessage text = message({{Figure::tried, 1},
                              {Figure::total, 20},
                              {Figure::free, 2},
                              {Figure::allocated, 9},
                              {Figure::reserved_unallocated, 1},
                              {Figure::process_total, 11}});
  text.processes = {{7, 5.0 * kGiB}};
  const CardFigures card = reconcile_card(text);
  EXPECT_EQ(card.reserved, 10 * kGiB);
  EXPECT_EQ(card.own_outside(), 1 * kGiB);
  EXPECT_EQ(card.foreign(), 5 * kGiB);
  EXPECT_EQ(card.not_accounted(), 2 * kGiB);
}

TEST(CardFigures, AListedProcessMayBeThisOne) {
  TextMessage text = message({{Figure::tried, 1},
                              {Figure::total, 24},
                              {Figure::free, 0},
                              {Figure::allocated, 20},
                              {Figure::reserved_unallocated, 2}});
  text.processes = {{7, 22.5 * kGiB}, {8, 1.0 * kGiB}};
  const CardFigures card = reconcile_card(text);
  EXPECT_TRUE(card.has(Contradiction::own_listed_as_other));
  EXPECT_EQ(card.own, static_cast<int64_t>(22.5 * kGiB));
  ASSERT_EQ(card.others.size(), 1U);
  EXPECT_EQ(settled_figures(text, card)[Figure::process_total], 22.5 * kGiB);
}

TEST(CardFigures, WhatTheCardCouldNotHoldTwiceIsThisOne) {
  TextMessage text = message({{Figure::tried, 0.5},
                              {Figure::total, 80},
                              {Figure::free, 0.25},
                              {Figure::allocated, 73},
                              {Figure::reserved_unallocated, 3}});
  text.processes = {{7, 78.5 * kGiB}, {8, 1.0 * kGiB}};  // 2.5 GiB beside the allocator: libraries
  const CardFigures card = reconcile_card(text);
  EXPECT_TRUE(card.has(Contradiction::own_listed_as_other));
  EXPECT_EQ(card.own_outside(), 5 * kGiB / 2);
  EXPECT_EQ(card.foreign(), 1 * kGiB);
}

TEST(CardFigures, AForeignProcessIsNotThisOne) {
  TextMessage text = message({{Figure::tried, 1},
                              {Figure::total, 24},
                              {Figure::free, 0},
                              {Figure::allocated, 2},
                              {Figure::reserved_unallocated, 0}});
  text.processes = {{7, 21.0 * kGiB}};
  const CardFigures card = reconcile_card(text);
  EXPECT_FALSE(card.has(Contradiction::own_listed_as_other));
  EXPECT_EQ(card.foreign(), 21 * kGiB);
}

TEST(CardFigures, ImpossibleFiguresAreLeftAside) {
  TextMessage text = message({{Figure::tried, 1},
                              {Figure::total, 24},
                              {Figure::free, 0},
                              {Figure::allocated, 2},
                              {Figure::reserved_unallocated, 1},
                              {Figure::process_total, 17179869184.0}});
  const CardFigures card = reconcile_card(text);
  EXPECT_TRUE(card.has(Contradiction::impossible_value));
  EXPECT_FALSE(card.own);
}

TEST(CardFigures, ContradictionsAreNamed) {
  EXPECT_TRUE(
      reconcile_card(message({{Figure::tried, 3}, {Figure::total, 2}})).has(Contradiction::request_above_total));
  EXPECT_TRUE(reconcile_card(message({{Figure::tried, 1}, {Figure::free, 3}})).has(Contradiction::free_covers_request));
  EXPECT_TRUE(reconcile_card(message({{Figure::allocated, 7}, {Figure::reserved, 6}}))
                  .has(Contradiction::reserved_below_allocated));
  EXPECT_TRUE(
      reconcile_card(message({{Figure::allocated, 7}, {Figure::total, 6}})).has(Contradiction::allocated_above_total));
  TextMessage zero = message({{Figure::allocated, 7}, {Figure::process_total, 0}});
  EXPECT_TRUE(reconcile_card(zero).has(Contradiction::own_is_zero));
}

}  // namespace
}  // namespace oomscope
