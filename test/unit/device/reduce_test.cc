// Reductions by kernels: the same bits as on the host.
#include <algorithm>
#include <string>

#include "../reduce/oracle.h"
#include "reduce/host.h"
#include "rig.h"

namespace gpurdma::test {
namespace {

bool knows(Rig& rig) { return rig.gpus->reduces(0, Op::sum, Type::float32); }

#define GPURDMA_NEEDS_KERNELS(rig) \
  if (!knows(rig)) GTEST_SKIP() << "this build has no kernels: nvcc is missing"

enum class Form { three_operands, into_left, into_right };

// Reductions of one op and type at many counts and alignments, asked for together.
class Matrix {
 public:
  Matrix(Op op, Type type) : op_(op), type_(type), size_(size_of(type)), left_(kMost * size_), right_(kMost * size_) {
    std::mt19937_64 random(uint64_t(op) * 100 + uint64_t(type));
    for (size_t i = 0; i < kMost; ++i) {
      draw(type, random, &left_[i * size_]);
      draw(type, random, &right_[i * size_]);
      if (random() % 4 == 0) std::memcpy(&right_[i * size_], &left_[i * size_], size_);
    }
    for (const size_t count : {1, 2, 5, 16, 67, 1000, 4099}) {
      for (const size_t d : {0, 1, 3}) {
        for (const size_t l : {0, 1, 3}) {
          for (const size_t r : {0, 1, 3}) add(Form::three_operands, count, d, l, r);
          add(Form::into_left, count, d, d, l);
          add(Form::into_right, count, d, l, d);
        }
      }
    }
  }

  std::string run(Rig& rig) {
    const Buffer left(Buffer::Kind::device, left_.size()), right(Buffer::Kind::device, right_.size()),
        out(Buffer::Kind::device, expected_.size());
    left.write(left_);
    right.write(right_);
    out.write(before_);
    std::vector<GpuToken> tokens;
    for (const Case& c : cases_) {
      tokens.push_back(rig.next());
      char* const dst = out.data() + c.at;
      const Status status = rig.gpus->reduce(
          0, op_, type_, dst, c.form == Form::into_left ? dst : left.data() + c.left * size_,
          c.form == Form::into_right ? dst : right.data() + c.right * size_, c.count, &rig, tokens.back());
      if (status != Status::ok) return text(status);
    }
    for (const GpuToken token : tokens) {
      const Status status = rig.wait(token);
      if (status != Status::ok) return text(status);
    }
    if (left.read() != left_ || right.read() != right_) return "an operand was changed";
    return compare(out.read());
  }

 private:
  static constexpr size_t kMost = 4099 + 3, kGuard = 64;  // elements, bytes
  struct Case {
    Form form;
    size_t at, left, right, count;  // at: bytes
  };

  void add(Form form, size_t count, size_t d, size_t l, size_t r) {
    const size_t at = (before_.size() + 63) / 64 * 64 + kGuard + d * size_;
    cases_.push_back({form, at, l, r, count});
    before_.resize(at + count * size_ + kGuard, 'x');
    const Bytes& operand = form == Form::into_right ? right_ : left_;
    const size_t from = form == Form::into_right ? r : l;
    if (form != Form::three_operands) std::copy_n(&operand[from * size_], count * size_, &before_[at]);
    expected_.resize(before_.size(), 'x');
    host_reduce(op_, type_)(&expected_[at], &left_[l * size_], &right_[r * size_], count);
  }

  std::string compare(const Bytes& got) const {
    size_t guard = 0;
    for (const Case& c : cases_) {
      for (; guard < c.at; ++guard) {
        if (got[guard] != 'x') return "wrote outside its output";
      }
      for (size_t i = 0; i < c.count; ++i, guard += size_) {
        if (!same(type_, &got[guard], &expected_[guard]))
          return "element " + std::to_string(i) + " of " + std::to_string(c.count) + " is wrong, form " +
                 std::to_string(int(c.form)) + ", offsets " + std::to_string(c.at / size_ % 16) + " " +
                 std::to_string(c.left) + " " + std::to_string(c.right);
      }
    }
    for (; guard < got.size(); ++guard) {
      if (got[guard] != 'x') return "wrote outside its output";
    }
    return "";
  }

  const Op op_;
  const Type type_;
  const size_t size_;
  Bytes left_, right_, before_, expected_;
  std::vector<Case> cases_;
};

TEST(DeviceReduce, EveryOpTypeFormCountAndAlignment) {
  const Device device;
  Rig rig;
  const Buffer buffer(Buffer::Kind::device, 8);
  ASSERT_EQ(rig.gpus->place(buffer.data()), 0);
  GPURDMA_NEEDS_KERNELS(rig);
  int kernels = 0;
  for (int op = 0; op < kOps; ++op) {
    for (int type = 0; type < kTypes; ++type) {
      const bool wide = Type(type) == Type::long_double || Type(type) == Type::complex_long_double ||
                        Type(type) == Type::loc_long_double_int;
      EXPECT_EQ(rig.gpus->reduces(0, Op(op), Type(type)), defined(Op(op), Type(type)) && !wide)
          << name_of(Op(op)) << " " << name_of(Type(type));
      if (!rig.gpus->reduces(0, Op(op), Type(type))) continue;
      ++kernels;
      EXPECT_EQ(Matrix(Op(op), Type(type)).run(rig), "") << name_of(Op(op)) << " " << name_of(Type(type));
    }
  }
  EXPECT_GT(kernels, 100);
}

TEST(DeviceReduce, SeveralInOneLaunchAndPinnedOperands) {
  const Device device;
  Rig rig;
  constexpr int n = 40, count = 1000;
  const Buffer left(Buffer::Kind::device, n * count * 4), out(Buffer::Kind::device, n * count * 4);
  ASSERT_EQ(rig.enter(rig.gpus->place(left.data())), Status::ok);
  GPURDMA_NEEDS_KERNELS(rig);
  ASSERT_TRUE(rig.gpus->reduces(0, Op::bxor, Type::int32));
  const size_t bytes = left.bytes();
  auto* const right = static_cast<char*>(rig.gpus->take_pinned(bytes));
  ASSERT_NE(right, nullptr);
  const Bytes content = random_bytes(bytes, 5), others = random_bytes(bytes, 6);
  left.write(content);
  std::copy(others.begin(), others.end(), right);
  emu_reset_counts();
  std::vector<GpuToken> tokens;
  for (int i = 0; i < n; ++i) {
    const int at = i * count * 4;
    tokens.push_back(rig.next());
    ASSERT_EQ(rig.gpus->reduce(0, Op::bxor, Type::int32, out.data() + at, left.data() + at, right + at, count, &rig,
                               tokens.back()),
              Status::ok);
  }
  for (const GpuToken token : tokens) EXPECT_EQ(rig.wait(token), Status::ok);
  emu_counts counts;
  emu_get_counts(&counts);
  EXPECT_EQ(counts.launches.copies, 3u);
  EXPECT_EQ(counts.waits, 0u);
  Bytes expected(bytes);
  for (size_t i = 0; i < bytes; ++i) expected[i] = char(content[i] ^ others[i]);
  EXPECT_EQ(out.read(), expected);
  rig.gpus->give_pinned(right, bytes);
  const GpuToken empty = rig.next();
  ASSERT_EQ(rig.gpus->reduce(0, Op::sum, Type::int32, out.data(), out.data(), out.data(), 0, &rig, empty), Status::ok);
  EXPECT_EQ(rig.wait(empty), Status::ok);
}

TEST(DeviceReduce, NotWhereTheSettingOrTheDriverRefuses) {
  const Device device;
  const Buffer buffer(Buffer::Kind::device, 8);
  GpuSettings settings;
  settings.kernels = false;
  Rig without(settings);
  ASSERT_EQ(without.enter(without.gpus->place(buffer.data())), Status::ok);
  EXPECT_FALSE(knows(without));

  Rig plain;
  ASSERT_EQ(plain.gpus->place(buffer.data()), 0);
  GPURDMA_NEEDS_KERNELS(plain);
  const Lines lines;
  emu_fail("cuModuleLoadData:1+:CUDA_ERROR_NO_BINARY_FOR_GPU");
  Rig refused;
  ASSERT_EQ(refused.enter(refused.gpus->place(buffer.data())), Status::ok);
  EXPECT_FALSE(knows(refused));
  EXPECT_FALSE(refused.gpus->reduces(0, Op::max, Type::int8));
  emu_fail(nullptr);
  EXPECT_EQ(lines.size(), 1u) << lines.all();
  EXPECT_NE(lines.all().find("--with-cuda-arch"), std::string::npos) << lines.all();
}

}  // namespace
}  // namespace gpurdma::test
