// Under ThreadSanitizer these tests do not run: the software driver, whose threads write what ours read, is not built
// with it, so that it would take every such read for a race. Nothing of the device layer has threads of its own.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#ifdef __SANITIZE_THREAD__
namespace {

class Unseen final : public ::testing::Environment {
 public:
  void SetUp() override {
    std::puts("ThreadSanitizer does not see what the software driver's threads do");
    std::exit(77);  // skipped as a whole; GTEST_SKIP() here would count all tests as passed
  }
};
const ::testing::Environment* const unseen = ::testing::AddGlobalTestEnvironment(new Unseen);

}  // namespace
#endif
