#include "reduce/host.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "oracle.h"

namespace gpurdma {
namespace {

using test::draw;
using test::oracle;
using test::same;

constexpr size_t kMost = 4099;

template <class Visit>
void for_each_defined(Visit visit) {
  for (int op = 0; op < kOps; ++op) {
    for (int type = 0; type < kTypes; ++type) {
      if (defined(static_cast<Op>(op), static_cast<Type>(type))) visit(static_cast<Op>(op), static_cast<Type>(type));
    }
  }
}

template <class Visit>
void for_each_set(Visit visit) {
  const InstructionSet* sets;
  const size_t count = instruction_sets(&sets);
  for (size_t i = 0; i < count; ++i) visit(sets[i]);
}

// Operands and what they must give, for one op and type.
struct Case {
  Op op;
  Type type;
  size_t size;
  std::vector<char> left, right, expected;

  Case(Op op, Type type) : op(op), type(type), size(size_of(type)) {
    std::mt19937_64 random(1000 * static_cast<int>(op) + static_cast<int>(type));
    left.resize(kMost * size), right.resize(kMost * size), expected.resize(kMost * size);
    for (size_t i = 0; i < kMost; ++i) {
      draw(type, random, &left[i * size]);
      draw(type, random, &right[i * size]);
      if (random() % 4 == 0) std::memcpy(&right[i * size], &left[i * size], size);
      oracle(op, type, &expected[i * size], &left[i * size], &right[i * size]);
    }
  }
};

enum class Form { three_operands, into_left, into_right };

// Guard bytes around an array that starts `offset` elements past a 64-byte boundary.
class Guarded {
 public:
  Guarded(const std::vector<char>& content, size_t bytes, size_t offset_bytes)
      : bytes_(bytes), memory_(bytes + offset_bytes + 256, kGuard) {
    const size_t to_boundary = -reinterpret_cast<uintptr_t>(memory_.data()) % 64;
    at_ = to_boundary + 64 + offset_bytes;
    std::memcpy(data(), content.data(), bytes);
  }
  char* data() { return memory_.data() + at_; }
  bool intact() const {
    for (size_t i = 0; i < memory_.size(); ++i) {
      if ((i < at_ || i >= at_ + bytes_) && memory_[i] != kGuard) return false;
    }
    return true;
  }

 private:
  static constexpr char kGuard = 0x5a;
  size_t bytes_, at_;
  std::vector<char> memory_;
};

// Runs one call and returns what is wrong with it, or "".
std::string check(const Case& c, Reduce reduce, size_t count, Form form, size_t offset) {
  const size_t bytes = count * c.size;
  Guarded left(c.left, bytes, offset * c.size);
  Guarded right(c.right, bytes, (form == Form::three_operands ? 2 * offset : offset) * c.size);
  Guarded other(c.left, bytes, 3 * offset * c.size);
  Guarded& out = form == Form::into_left ? left : form == Form::into_right ? right : other;
  reduce(out.data(), left.data(), right.data(), count);
  if (!left.intact() || !right.intact() || !other.intact()) return "wrote outside its output";
  if (form != Form::into_left && std::memcmp(left.data(), c.left.data(), bytes)) return "changed left";
  if (form != Form::into_right && std::memcmp(right.data(), c.right.data(), bytes)) return "changed right";
  for (size_t i = 0; i < count; ++i) {
    if (!same(c.type, out.data() + i * c.size, &c.expected[i * c.size]))
      return "wrong at element " + std::to_string(i) + " of " + std::to_string(count);
  }
  return "";
}

TEST(HostReduce, EveryOpTypeSetCountFormAndAlignment) {
  for_each_defined([](Op op, Type type) {
    const Case c(op, type);
    for_each_set([&](const InstructionSet& set) {
      const Reduce reduce = set.reduce(op, type);
      ASSERT_NE(reduce, nullptr) << set.name << " " << name_of(op) << " " << name_of(type);
      for (Form form : {Form::three_operands, Form::into_left, Form::into_right}) {
        const auto run = [&](size_t count, size_t offset) {
          EXPECT_EQ(check(c, reduce, count, form, offset), "")
              << set.name << " " << name_of(op) << " " << name_of(type) << " form " << static_cast<int>(form)
              << " offset " << offset;
        };
        for (size_t count = 0; count < 68; ++count) run(count, count % 4);
        for (size_t offset : {0, 1, 3}) run(1000, offset), run(kMost, offset);
      }
    });
  });
}

TEST(HostReduce, NothingWhereTheOpIsNotDefined) {
  for (int op = 0; op < kOps; ++op) {
    for (int type = 0; type < kTypes; ++type) {
      const bool expected = defined(static_cast<Op>(op), static_cast<Type>(type));
      for_each_set([&](const InstructionSet& set) {
        EXPECT_EQ(set.reduce(static_cast<Op>(op), static_cast<Type>(type)) != nullptr, expected) << op << " " << type;
      });
      EXPECT_EQ(host_reduce(static_cast<Op>(op), static_cast<Type>(type)) != nullptr, expected) << op << " " << type;
    }
  }
}

TEST(HostReduce, TakesTheFastestSet) {
  const InstructionSet* sets;
  const size_t count = instruction_sets(&sets);
  ASSERT_GE(count, 1u);
  EXPECT_STREQ(sets[0].name, "baseline");
  for_each_defined([&](Op op, Type type) { EXPECT_EQ(host_reduce(op, type), sets[count - 1].reduce(op, type)); });
}

// Every value of the 16-bit floats with a few partners: all of conversion, and much of rounding.
TEST(HostReduce, SixteenBitFloatsExhaustively) {
  std::vector<uint16_t> all(65536), partner(65536), expected(65536), result(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::mt19937_64 random(16);
  for (Type type : {Type::float16, Type::bfloat16}) {
    for (Op op : {Op::sum, Op::prod, Op::max, Op::min}) {
      for (int round = 0; round < 4; ++round) {
        // Round 0 is 1.0 throughout, where products change nothing and sums round.
        for (auto& x : partner) x = round ? static_cast<uint16_t>(random()) : type == Type::float16 ? 0x3c00 : 0x3f80;
        for (size_t i = 0; i < all.size(); ++i) oracle(op, type, &expected[i], &all[i], &partner[i]);
        for_each_set([&](const InstructionSet& set) {
          set.reduce(op, type)(result.data(), all.data(), partner.data(), all.size());
          for (size_t i = 0; i < all.size(); ++i) {
            ASSERT_TRUE(same(type, &result[i], &expected[i]))
                << set.name << " " << name_of(op) << " " << name_of(type) << std::hex << " " << all[i] << " "
                << partner[i] << " gave " << result[i] << " not " << expected[i];
            ASSERT_TRUE(op != Op::prod || round > 0 || same(type, &result[i], &all[i])) << all[i];
          }
        });
      }
    }
  }
}

template <class T>
T reduce_two(const InstructionSet& set, Op op, Type type, T left, T right) {
  T result;
  set.reduce(op, type)(&result, &left, &right, 1);
  return result;
}

TEST(HostReduce, MinAndMaxAtTheEdgeOfSignedness) {
  constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
  for_each_set([&](const InstructionSet& set) {
    EXPECT_EQ(reduce_two<int64_t>(set, Op::min, Type::int64, 0, 1), 0);
    EXPECT_EQ(reduce_two<int64_t>(set, Op::min, Type::int64, 0, -1), -1);
    EXPECT_EQ(reduce_two<uint64_t>(set, Op::min, Type::uint64, most, 0), 0u);
    EXPECT_EQ(reduce_two<uint64_t>(set, Op::max, Type::uint64, 0, most), most);
    EXPECT_EQ(reduce_two<uint64_t>(set, Op::max, Type::uint64, 1, uint64_t{1} << 63), uint64_t{1} << 63);
    EXPECT_EQ(reduce_two<int8_t>(set, Op::sum, Type::int8, 127, 1), -128);
    EXPECT_EQ(reduce_two<uint16_t>(set, Op::prod, Type::uint16, 65535, 65535), 1);
  });
}

TEST(HostReduce, NanWinsAndEqualOperandsGiveTheLeftOne) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  for_each_set([&](const InstructionSet& set) {
    for (Op op : {Op::max, Op::min, Op::sum, Op::prod}) {
      for (double number : {0.0, -1.0, infinity, -infinity}) {
        EXPECT_TRUE(std::isnan(reduce_two(set, op, Type::float64, nan, number))) << set.name << name_of(op);
        EXPECT_TRUE(std::isnan(reduce_two(set, op, Type::float64, number, nan))) << set.name << name_of(op);
      }
    }
    for (Op op : {Op::max, Op::min}) {
      EXPECT_FALSE(std::signbit(reduce_two(set, op, Type::float64, 0.0, -0.0))) << set.name << name_of(op);
      EXPECT_TRUE(std::signbit(reduce_two(set, op, Type::float64, -0.0, 0.0))) << set.name << name_of(op);
    }
  });
}

struct DoubleInt {
  double value;
  int index;
};

TEST(HostReduce, PairsTakeTheLowerIndexOfEqualsAndNanFirst) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for_each_set([&](const InstructionSet& set) {
    for (Op op : {Op::maxloc, Op::minloc}) {
      const auto index = [&](DoubleInt left, DoubleInt right) {
        return reduce_two(set, op, Type::loc_double_int, left, right).index;
      };
      EXPECT_EQ(index({2, 7}, {2, 3}), 3);
      EXPECT_EQ(index({2, -3}, {2, 3}), -3);
      EXPECT_EQ(index({0.0, 5}, {-0.0, 4}), 4);
      EXPECT_EQ(index({nan, 9}, {2, 3}), 9);
      EXPECT_EQ(index({2, 3}, {nan, 9}), 9);
      EXPECT_EQ(index({nan, 9}, {nan, 8}), 8);
      EXPECT_EQ(index({1, 1}, {2, 0}), op == Op::maxloc ? 0 : 1);
    }
  });
}

}  // namespace
}  // namespace gpurdma
