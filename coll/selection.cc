#include "coll/selection.h"

#include <algorithm>

namespace gpurdma {
namespace {

bool fits(const TuningRow& row, const Question& question) {
  return row.collective == question.collective && row.ranks.holds(size_t(question.ranks)) &&
         row.nodes.holds(size_t(question.nodes)) && row.gpus.holds(size_t(question.gpus)) &&
         row.bytes.holds(question.bytes) && row.algorithm->takes(question.ranks);
}

}  // namespace

Choice select(Span<const TuningRow> table, const Question& question, const Forced& forced) {
  const TuningRow* row = table.begin();
  while (!fits(*row, question)) ++row;

  const Algorithm* algorithm = row->algorithm;
  if (forced.algorithm && forced.algorithm->collective == question.collective &&
      forced.algorithm->takes(question.ranks))
    algorithm = forced.algorithm;
  const size_t count = question.bytes / question.element_bytes;
  const size_t wanted = (forced.piece > 0 ? forced.piece : row->piece) / question.element_bytes;
  const size_t least = (count + kMostPieces - 1) / kMostPieces;
  return {algorithm,
          {std::max({wanted, least, size_t{1}}), forced.depth > 0 ? forced.depth : row->depth,
           forced.radix > 0 ? forced.radix : row->radix}};
}

std::vector<TuningRow> before_builtin(std::vector<TuningRow> rows) {
  const Span<const TuningRow> builtin = builtin_tuning();
  rows.insert(rows.end(), builtin.begin(), builtin.end());
  return rows;
}

}  // namespace gpurdma
