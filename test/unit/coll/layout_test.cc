#include "coll/layout.h"

#include <gtest/gtest.h>

#include <string>

#include "coll/node_spec.h"

namespace gpurdma {
namespace {

Span<const uint32_t> span(const std::vector<uint32_t>& nodes) { return {nodes.data(), nodes.size()}; }

std::vector<int> members(const Layout& layout, int node) {
  const Span<const int> places = layout.members(node);
  return {places.begin(), places.end()};
}

TEST(Layout, NodesAreNumberedByTheirFirstPlace) {
  const Layout layout(span({70, 5, 70, 9, 5, 70}));
  EXPECT_EQ(layout.places(), 6);
  EXPECT_EQ(layout.nodes(), 3);
  EXPECT_EQ(members(layout, 0), (std::vector<int>{0, 2, 5}));
  EXPECT_EQ(members(layout, 1), (std::vector<int>{1, 4}));
  EXPECT_EQ(members(layout, 2), (std::vector<int>{3}));
  EXPECT_EQ(layout.smallest(), 1);
  for (int place = 0; place < 6; ++place) {
    EXPECT_EQ(layout.members(layout.node_of(place))[layout.index(place)], place);
  }
}

TEST(Layouts, EqualOnesAreOne) {
  Layouts layouts;
  EXPECT_EQ(layouts.intern(span({3, 3, 3})), nullptr);
  const auto first = layouts.intern(span({1, 2, 1}));
  EXPECT_EQ(layouts.intern(span({2, 1, 2})), first) << "which numbers the nodes had does not matter";
  const auto other = layouts.intern(span({1, 1, 2}));
  EXPECT_NE(other, first);
  EXPECT_NE(layouts.intern(span({1, 2})), first);
  EXPECT_EQ(layouts.size(), 2u);
}

TEST(Layouts, TheLastUserReleasesALayout) {
  Layouts layouts;
  std::vector<std::shared_ptr<const Layout>> users;
  for (int i = 0; i < 10000; ++i) users.push_back(layouts.intern(span({1, 2, 1})));
  EXPECT_EQ(layouts.size(), 1u);
  users.resize(1);
  EXPECT_EQ(layouts.size(), 1u);
  users.clear();
  EXPECT_EQ(layouts.size(), 0u);
}

std::string nodes(const char* words, int ranks) {
  NodeSpec spec;
  if (!NodeSpec::parse(words, &spec)) return "bad";
  std::string text;
  for (uint32_t node : spec.nodes(ranks)) text += std::to_string(node);
  return text;
}

TEST(NodeSpec, BlocksListsAndModulo) {
  EXPECT_EQ(nodes("2", 7), "0011223");
  EXPECT_EQ(nodes("3,1,2", 10), "0001223344");
  EXPECT_EQ(nodes("%3", 7), "0120120");
  EXPECT_EQ(nodes("100", 4), "0000");
  EXPECT_EQ(nodes("", 4), "0000");
  EXPECT_EQ(nodes(nullptr, 4), "0000");
}

TEST(NodeSpec, RefusesWhatMakesNoSense) {
  for (const char* words : {"0", "%", "%0", "%1,2", ",", "1,", ",1", "1,,2", "1,0", "-1", "x", "1x", " 1", "1 ", "%%2",
                            "99999999999999999999", "4294967297"})
    EXPECT_EQ(nodes(words, 1), "bad") << words;
}

}  // namespace
}  // namespace gpurdma
