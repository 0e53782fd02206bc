#include "coll/tuning_file.h"

#include <sys/stat.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <memory>

namespace gpurdma {
namespace {

constexpr std::string_view kBlank = " \t\r";
constexpr std::string_view kUnits = "KMG";

// A word as it may be shown in a message, whatever bytes it holds.
std::string quoted(std::string_view word) {
  constexpr size_t kMost = 40;
  std::string shown = "\"";
  for (const char c : word.substr(0, kMost)) shown += c >= ' ' && c <= '~' ? c : '?';
  return shown + (word.size() > kMost ? "...\"" : "\"");
}

// The words of one line, from left to right.
class Words {
 public:
  explicit Words(std::string_view line) : line_(line.substr(0, line.find('#'))) { skip(); }

  bool left() const { return at_ < line_.size(); }
  size_t column() const { return at_ + 1; }  // of the next word, or of the line's end
  std::string_view peek() const { return line_.substr(at_, line_.find_first_of(kBlank, at_) - at_); }
  std::string_view next() {
    const std::string_view word = peek();
    at_ += word.size();
    skip();
    return word;
  }

 private:
  void skip() { at_ = std::min(line_.find_first_not_of(kBlank, at_), line_.size()); }
  std::string_view line_;
  size_t at_ = 0;
};

// Takes a whole number off the front of `text`. False: there is none, or it is more than SIZE_MAX - 1.
bool take_number(std::string_view& text, size_t& number) {
  const auto digit = [&] { return !text.empty() && text[0] >= '0' && text[0] <= '9'; };
  if (!digit()) return false;
  for (number = 0; digit(); text.remove_prefix(1)) {
    const size_t value = size_t(text[0] - '0');
    if (number > (SIZE_MAX - 1 - value) / 10) return false;
    number = number * 10 + value;
  }
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(char(text[0] & ~0x20));  // k and K alike
  if (unit == std::string_view::npos) return true;
  text.remove_prefix(1);
  const int shift = 10 * int(unit + 1);
  if (number > (SIZE_MAX - 1) >> shift) return false;
  number <<= shift;
  return true;
}

// "2-7", "8-" or "8".
bool parse_range(std::string_view text, Range& range) {
  if (!take_number(text, range.from)) return false;
  range.to = range.from;
  if (text.empty()) return true;
  if (text[0] != '-') return false;
  text.remove_prefix(1);
  range.to = SIZE_MAX;
  return text.empty() || (take_number(text, range.to) && text.empty());
}

class RowParser {
 public:
  explicit RowParser(std::string_view line) : words_(line) {}

  bool blank() const { return !words_.left(); }

  // False: column() and error() say where and what.
  bool parse(TuningRow& row) {
    if (!collective(row)) return false;
    while (words_.left()) {
      column_ = words_.column();
      const std::string_view word = words_.next();
      if (const Pair* pair = find_pair(word); pair ? !value(*pair, row) : !algorithm(word, row)) return false;
    }
    column_ = words_.column();
    return row.algorithm || fail("the line ends without an algorithm; there are " + names(row));
  }
  size_t column() const { return column_; }
  const std::string& error() const { return error_; }

 private:
  // A name and the value behind it: a range or a number.
  struct Pair {
    std::string_view name;
    Range TuningRow::*range;
    size_t least, most;
    void (*set)(TuningRow& row, size_t number);
  };
  static constexpr Pair kPairs[] = {
      {"ranks", &TuningRow::ranks, 1, INT_MAX, nullptr},
      {"nodes", &TuningRow::nodes, 1, INT_MAX, nullptr},
      {"gpus", &TuningRow::gpus, 0, INT_MAX, nullptr},
      {"bytes", &TuningRow::bytes, 0, SIZE_MAX - 1, nullptr},
      {"piece", nullptr, 1, kMostPiece, [](TuningRow& row, size_t number) { row.piece = number; }},
      {"depth", nullptr, 1, kMostDepth, [](TuningRow& row, size_t number) { row.depth = int(number); }},
      {"radix", nullptr, 2, kMostRadix, [](TuningRow& row, size_t number) { row.radix = int(number); }},
  };

  static const Pair* find_pair(std::string_view word) {
    for (const Pair& pair : kPairs)
      if (word == pair.name) return &pair;
    return nullptr;
  }

  static std::string names(const TuningRow& row) { return algorithm_names(row.collective); }

  bool fail(std::string what) {
    error_ = std::move(what);
    return false;
  }

  bool collective(TuningRow& row) {
    column_ = words_.column();
    const std::string_view word = words_.next();
    std::string known;
    for (int i = 0; i < kCollectives; ++i) {
      row.collective = Collective(i);
      if (word == name_of(row.collective)) return true;
      known += std::string(i ? ", " : "") + name_of(row.collective);
    }
    return fail("unknown collective " + quoted(word) + "; there are " + known);
  }

  bool algorithm(std::string_view word, TuningRow& row) {
    if (row.algorithm)
      return fail("expected one of ranks, nodes, gpus, bytes, piece, depth, radix, not " + quoted(word));
    row.algorithm = find_algorithm(row.collective, std::string(word).c_str());
    // As C strings a word with a NUL in it could be a name.
    if (row.algorithm && word == row.algorithm->name) return true;
    return fail("unknown algorithm " + quoted(word) + "; there are " + names(row));
  }

  bool value(const Pair& pair, TuningRow& row) {
    const size_t bit = size_t{1} << (&pair - kPairs);
    if (seen_ & bit) return fail(std::string(pair.name) + " is given twice");
    seen_ |= bit;
    column_ = words_.column();
    std::string_view word = words_.next();
    const std::string shown = word.empty() ? "the end of the line" : quoted(word);
    const std::string limits = " from " + in_units(pair.least) + " to " + in_units(pair.most);
    if (pair.range) {
      Range& range = row.*pair.range;
      if (!parse_range(word, range)) return fail("expected a range, as 2-7, 8K- or 8, not " + shown);
      if (range.to < range.from) return fail("the range " + shown + " ends before it begins");
      const size_t end = range.to == SIZE_MAX ? range.from : range.to;
      return (range.from >= pair.least && end <= pair.most) || fail("expected a range" + limits + ", not " + shown);
    }
    size_t number = 0;
    if (!take_number(word, number) || !word.empty() || number < pair.least || number > pair.most)
      return fail("expected a number" + limits + ", not " + shown);
    pair.set(row, number);
    return true;
  }

  Words words_;
  unsigned seen_ = 0;  // a bit for each pair
  size_t column_ = 1;
  std::string error_;
};

struct FileClose {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// "": all is well.
std::string read_file(const char* path, std::string& text) {
  struct stat info;
  // Opening a pipe would wait for somebody to write to it, in MPI_Init.
  if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) return "is not a regular file";
  const std::unique_ptr<std::FILE, FileClose> file(std::fopen(path, "rb"));
  if (!file) return std::string("cannot be opened: ") + std::strerror(errno);
  char part[16384];
  while (const size_t n = std::fread(part, 1, sizeof part, file.get())) {
    text.append(part, n);
    if (text.size() > kMostTuningBytes)
      return "is too large for a tuning file: more than " + in_units(kMostTuningBytes);
  }
  return std::ferror(file.get()) ? std::string("cannot be read: ") + std::strerror(errno) : "";
}

std::string to_text(const Range& range) {
  const std::string from = in_units(range.from);
  if (range.to == SIZE_MAX) return from + "-";
  return range.to == range.from ? from : from + "-" + in_units(range.to);
}

}  // namespace

ParsedTuning parse_tuning(std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  ParsedTuning parsed;
  for (size_t line = 1; !text.empty(); ++line) {
    const size_t length = std::min(text.find('\n'), text.size());
    RowParser parser(text.substr(0, length));
    TuningRow row;
    if (!parser.blank()) {
      if (!parser.parse(row)) {
        parsed.error = std::to_string(line) + ":" + std::to_string(parser.column()) + ": " + parser.error();
        return parsed;
      }
      parsed.rows.push_back(row);
    }
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return parsed;
}

ParsedTuning read_tuning(const char* path) {
  std::string text;
  ParsedTuning parsed;
  const std::string trouble = read_file(path, text);
  if (!trouble.empty()) {
    parsed.error = std::string(path) + ": " + trouble;
    return parsed;
  }
  parsed = parse_tuning(text);
  if (!parsed.error.empty()) parsed.error = std::string(path) + ":" + parsed.error;
  return parsed;
}

std::string in_units(size_t number) {
  std::string unit;
  for (const char next : kUnits) {
    if (number == 0 || number % 1024 != 0) break;
    number /= 1024;
    unit = next;
  }
  return std::to_string(number) + unit;
}

std::string to_line(const TuningRow& row) {
  std::string line = name_of(row.collective);
  line += "  ranks " + to_text(row.ranks);
  if (row.nodes.from > 1 || row.nodes.to != SIZE_MAX) line += "  nodes " + to_text(row.nodes);
  if (row.gpus.from > 0 || row.gpus.to != SIZE_MAX) line += "  gpus " + to_text(row.gpus);
  line += "  bytes " + to_text(row.bytes) + "  " + row.algorithm->name;
  line += "  piece " + in_units(row.piece) + "  depth " + std::to_string(row.depth);
  if (row.radix != 2) line += "  radix " + std::to_string(row.radix);
  return line;
}

}  // namespace gpurdma
