#include "coll/leaders.h"

#include "coll/layout.h"
#include "coll/multiplying.h"
#include "coll/tree.h"

namespace gpurdma {

void leaders_allreduce(Plan& plan, const Group& group, const Call& call, Tuning tuning) {
  if (group.layout() == nullptr) return multiplying_allreduce(plan, group, call, tuning);
  const Layout& layout = *group.layout();
  const int node = layout.node_of(group.place());
  const std::vector<int> inside_ranks = ranks_of(group, layout.members(node));
  const Group inside(layout.index(group.place()), {inside_ranks.data(), inside_ranks.size()});

  tree_reduce(plan, inside, call.own(), call.count, tuning);
  if (inside.place() == 0) {
    std::vector<int> leaders;
    for (int other = 0; other < layout.nodes(); ++other) leaders.push_back(group.rank(layout.members(other)[0]));
    const Buf mine = inside.size() == 1 ? call.own() : Buf::output;
    multiplying_exchange(plan, {node, {leaders.data(), leaders.size()}}, mine, call.count, tuning);
  }
  tree_broadcast(plan, inside, call.count, tuning);
}

}  // namespace gpurdma
