#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "gpurdma.h"

namespace {

gpurdma_settings_t defaults() {
  gpurdma_settings_t settings;
  gpurdma_settings_default(&settings);
  return settings;
}

std::string complaint(const gpurdma_settings_t& settings) {
  char message[256] = "";
  return gpurdma_settings_check(&settings, message, sizeof message) == GPURDMA_OK ? "" : message;
}

uint64_t key(const gpurdma_settings_t& settings, int named) { return gpurdma_key(&settings, named, "node", 0); }

gpurdma_verdict_t decide(const std::vector<uint64_t>& keys, int scope = GPURDMA_SCOPE_AUTO) {
  gpurdma_verdict_t verdict;
  gpurdma_decide(keys.data(), int(keys.size()), scope, &verdict);
  return verdict;
}

TEST(Settings, DefaultsAreGood) { EXPECT_EQ(complaint(defaults()), ""); }

TEST(Settings, ABadValueIsNamedWithWhatIsAllowed) {
  gpurdma_settings_t s = defaults();
  s.algorithm = "magic";
  EXPECT_EQ(complaint(s),
            std::string("setting coll_gpurdma_algorithm is \"magic\"; allowed are auto, ") + gpurdma_algorithm_names());
  s = defaults();
  s.depth = -1;
  EXPECT_EQ(complaint(s), "setting coll_gpurdma_depth is -1; allowed are 0 (the table decides) and 1 to 1024 slots");
  s = defaults();
  s.priority = 101;
  EXPECT_NE(complaint(s), "");
  s = defaults();
  s.deadline_s = -0.5;
  EXPECT_NE(complaint(s), "");
  s = defaults();
  s.radix = 1;
  EXPECT_EQ(complaint(s), "setting coll_gpurdma_radix is 1; allowed are 0 (the table decides) and 2 to 64");
  s = defaults();
  s.tuning = "allreduce ring\nallreduce ring depth x\n";
  EXPECT_EQ(complaint(s), "setting coll_gpurdma_tuning: 2:22: expected a number from 1 to 1K, not \"x\"");
  s = defaults();
  s.test_nodes = "2,0";
  EXPECT_EQ(
      complaint(s),
      "setting coll_gpurdma_test_nodes is \"2,0\"; allowed are nothing, N (blocks of N ranks), N,M,... (blocks of "
      "these sizes, the last one repeated), %N (rank modulo N)");
  s = defaults();
  s.verbose = 5;
  EXPECT_NE(complaint(s), "");
}

TEST(Settings, ATuningFileIsReadIntoItsRows) {
  char path[] = "/tmp/gpurdma-settings-XXXXXX", message[256] = "";
  const int handle = mkstemp(path);
  const std::string text = "# two ranks\nallreduce   ranks 2 ring  # fast\n";
  ASSERT_EQ(write(handle, text.data(), text.size()), ssize_t(text.size()));
  close(handle);
  char* rows = nullptr;
  EXPECT_EQ(gpurdma_tuning_read(path, &rows, message, sizeof message), GPURDMA_OK);
  EXPECT_STREQ(rows, "allreduce  ranks 2  bytes 0-  ring  piece 32K  depth 8\n");
  free(rows);
  unlink(path);
  rows = nullptr;
  EXPECT_EQ(gpurdma_tuning_read(path, &rows, message, sizeof message), GPURDMA_INVALID);
  EXPECT_EQ(rows, nullptr);
  EXPECT_EQ(std::string(message),
            "setting coll_gpurdma_tuning: " + std::string(path) + ": cannot be opened: No such file or directory");
}

TEST(Activation, NamedOrAlways) {
  const gpurdma_settings_t s = defaults();
  const uint64_t quiet = key(s, 0), named = key(s, 1);
  EXPECT_NE(quiet, 0u);
  EXPECT_FALSE(decide({quiet, quiet}).active);
  EXPECT_TRUE(decide({quiet, named, quiet}).active);  // one rank that names it is enough, and all see it
  EXPECT_TRUE(decide({quiet, quiet}, GPURDMA_SCOPE_ALWAYS).active);
  EXPECT_FALSE(decide({named, named}, GPURDMA_SCOPE_NEVER).active);
}

TEST(Activation, AKeyTellsTheNode) {
  gpurdma_settings_t s = defaults();
  const auto node = [&](const char* name, uint32_t rank) { return gpurdma_key_node(gpurdma_key(&s, 1, name, rank)); };
  EXPECT_EQ(node("n1", 0), node("n1", 7));
  EXPECT_NE(node("n1", 0), node("n2", 0));
  EXPECT_TRUE(decide({gpurdma_key(&s, 1, "n1", 0), gpurdma_key(&s, 1, "n2", 1)}).active);
  s.test_nodes = "%3";
  EXPECT_EQ(node("n1", 4), node("n2", 1));
  EXPECT_NE(node("n1", 4), node("n1", 5));
}

TEST(Activation, AKeyTellsWhetherThereIsAGpu) {
  gpurdma_settings_t s = defaults();
  s.gpu = GPURDMA_GPU_NO;
  EXPECT_FALSE(gpurdma_key_gpu(key(s, 1)));
  s.gpu = GPURDMA_GPU_YES;
  EXPECT_TRUE(gpurdma_key_gpu(key(s, 1)));
  EXPECT_STREQ(decide({key(defaults(), 0), key(s, 0)}).reason, "rank 1 has a GPU");
}

TEST(Activation, ARankThatIsNotAbleIsNamed) {
  const gpurdma_settings_t s = defaults();
  const uint64_t named = key(s, 1);
  const gpurdma_verdict_t verdict = decide({named, named, 0, named});
  EXPECT_FALSE(verdict.active);
  EXPECT_TRUE(verdict.surprising) << "the user asked for gpurdma";
  EXPECT_FALSE(decide({key(s, 0), 0}).surprising) << "nobody did";
  EXPECT_STREQ(verdict.reason, "gpurdma is missing or could not start on rank 2");
}

// All combinations of three processes: the verdict is active or not by the rules alone, in whatever order they come.
TEST(Activation, TruthTable) {
  struct Kind {
    const char* name;
    uint64_t key;
    int group;    // that agree with each other; 0: not able
    bool wanted;  // named, or with a GPU
  };
  const gpurdma_settings_t s = defaults();
  gpurdma_settings_t ring = s;
  ring.algorithm = "ring";
  gpurdma_settings_t gpu = s;
  gpu.gpu = GPURDMA_GPU_YES;
  const uint64_t kOtherVersion = uint64_t{1} << 30;
  const std::vector<Kind> kinds = {{"absent", 0, 0, false},
                                   {"quiet", key(s, 0), 1, false},
                                   {"named", key(s, 1), 1, true},
                                   {"with a GPU", key(gpu, 0), 1, true},
                                   {"other settings", key(ring, 1), 2, true},
                                   {"other version", key(s, 1) ^ kOtherVersion, 3, true}};
  for (const int scope : {GPURDMA_SCOPE_AUTO, GPURDMA_SCOPE_ALWAYS, GPURDMA_SCOPE_NEVER}) {
    for (const Kind& a : kinds) {
      for (const Kind& b : kinds) {
        for (const Kind& c : kinds) {
          const bool able = a.group && b.group && c.group;
          const bool agree = a.group == b.group && b.group == c.group;
          const bool wanted = scope == GPURDMA_SCOPE_ALWAYS || a.wanted || b.wanted || c.wanted;
          const gpurdma_verdict_t verdict = decide({a.key, b.key, c.key}, scope);
          const std::string what = std::string(a.name) + ", " + b.name + ", " + c.name + ", scope " +
                                   std::to_string(scope) + ": " + verdict.reason;
          EXPECT_EQ(verdict.active != 0, scope != GPURDMA_SCOPE_NEVER && able && agree && wanted) << what;
          EXPECT_FALSE(verdict.active && verdict.surprising) << what;
          if (able) {
            EXPECT_EQ(verdict.surprising != 0, scope != GPURDMA_SCOPE_NEVER && !agree) << what;
          }
          EXPECT_NE(verdict.reason[0], '\0');
        }
      }
    }
  }
}

// Whatever decides what runs must be the same on all ranks.
TEST(Activation, EverySettingThatChoosesMustAgree) {
  const gpurdma_settings_t base = defaults();
  std::vector<gpurdma_settings_t> others(8, base);
  others[0].scope = GPURDMA_SCOPE_ALWAYS;
  others[1].algorithm = "ring";
  others[2].piece = 4096;
  others[3].depth = 2;
  others[4].priority = 5;
  others[5].radix = 4;
  others[6].tuning = "allreduce ranks 2 ring";
  others[7].test_nodes = "2";
  for (const gpurdma_settings_t& other : others) {
    const gpurdma_verdict_t verdict = decide({key(base, 1), key(other, 1)});
    EXPECT_FALSE(verdict.active);
    EXPECT_TRUE(verdict.surprising);
    EXPECT_NE(std::string(verdict.reason).find("rank 1 has other settings"), std::string::npos);
  }
  gpurdma_settings_t harmless = base;
  harmless.verbose = 3;
  harmless.tuning = "# nothing\n";
  harmless.deadline_s = 7;
  EXPECT_TRUE(decide({key(base, 1), key(harmless, 1)}).active);
}

}  // namespace
